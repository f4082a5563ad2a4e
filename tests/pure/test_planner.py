"""From contracts and real shapes to buffers, launches and `Args`."""

import itertools
from pathlib import Path

import numpy as np
import pytest

from trtpatch.catalog import Catalog, Patch
from trtpatch.engines import Tensor
from trtpatch.errors import MatchError
from trtpatch.plan import ALIGNMENT, EngineStep, PatchStep, Plan
from trtpatch.planner import make_plan, plan_patches
from trtpatch.unit import make_unit, pack


def yolox_plan(batch: int = 2, head: tuple[int, ...] = (3549, 85)) -> Plan:
    catalog = Catalog()
    return make_plan(
        [
            catalog.patch("resize_letterbox"),
            None,
            catalog.patch("decode_yolox"),
            catalog.patch("select_nms"),
        ],
        inputs={"image": (Tensor("images", "float32", (batch, 3, 416, 416)),)},
        outputs={"head": (Tensor("output", "float32", (batch, *head)),)},
        params={"select_nms": {"iou_threshold": 0.65}},
        batch=batch,
    )


def test_tensors_flow_from_step_to_step() -> None:
    plan = yolox_plan()
    resize, engine, decode, select = plan.steps
    assert isinstance(resize, PatchStep)
    assert isinstance(engine, EngineStep)
    assert isinstance(decode, PatchStep)
    assert isinstance(select, PatchStep)
    buffers = {
        tensor.name: tensor.buffers[0]
        for step in (resize, decode, select)
        for tensor in step.tensors
    }
    assert engine.inputs == {"images": buffers["image"]}
    assert engine.outputs == {"output": buffers["head"]}
    assert decode.sizes["C"] == 80
    assert decode.sizes["model_H"] == 416
    assert plan.results == ("detections",)
    assert plan.buffers[buffers["detections_boxes"]].shape == (2, 300, 4)


def test_regions_hold_what_they_say_and_nothing_overlaps() -> None:
    plan = yolox_plan()
    assert plan.buffers["frame_images"].region == "frame"
    assert plan.buffers["decode_yolox.candidates_count"].region == "cleared"
    assert plan.buffers["select_nms.detections_boxes"].region == "result"
    by_region: dict[str, list[tuple[int, int]]] = {}
    for b in plan.buffers.values():
        assert b.offset % ALIGNMENT == 0
        by_region.setdefault(b.region, []).append((b.offset, b.offset + b.nbytes))
    for spans in by_region.values():
        spans.sort()
        assert all(a[1] <= b[0] for a, b in itertools.pairwise(spans))


def test_runtime_parameters_live_in_the_frame_region() -> None:
    plan = yolox_plan()
    settings = {setting.name: setting for _, setting in plan.settings}
    assert settings["iou_threshold"].value == 0.65
    assert plan.buffers[settings["iou_threshold"].buffer].region == "frame"


def test_what_sizes_were_worked_out_from_is_the_most_that_can_be_set() -> None:
    (step,) = (step for step in yolox_plan().patch_steps if step.name == "select_nms")
    settings = {setting.name: setting for setting in step.settings}
    assert settings["max_detections"].room
    assert step.check(settings["max_detections"], 300) == 300
    with pytest.raises(ValueError, match="room for 300, found 301"):
        step.check(settings["max_detections"], 301)
    assert not settings["pre_nms_topk"].room
    assert step.check(settings["pre_nms_topk"], 2**63 - 1) == 2**31 - 1


def test_a_shape_that_does_not_fit_names_both_sides() -> None:
    with pytest.raises(
        MatchError, match=r"decode_yolox/patch.yaml:\d+:5: decode_yolox: 'A == .*' does not hold"
    ):
        yolox_plan(head=(1000, 85))
    with pytest.raises(MatchError, match=r"head: expected .*3 axes, found"):
        yolox_plan(head=(9,))


def test_a_dtype_that_the_kernel_cannot_read_is_refused() -> None:
    catalog = Catalog()
    with pytest.raises(MatchError, match="takes head as float32 or float16; the chain gives int8"):
        make_plan(
            [catalog.patch("resize_letterbox"), None, catalog.patch("decode_yolov8")],
            inputs={"image": (Tensor("images", "float32", (1, 3, 64, 64)),)},
            outputs={"head": (Tensor("o", "int8", (1, 84, 84)),)},
            params={},
            batch=1,
        )


def test_a_type_that_no_buffer_can_have_is_named() -> None:
    outputs = {"head": (Tensor("o", "float32", (1, 84, 84)),)}
    with pytest.raises(MatchError, match=r"more bfloat16 \[1, 8\] is of a type that no buffer"):
        make_plan(
            [None],
            inputs={},
            outputs={**outputs, "more": (Tensor("more", "bfloat16", (1, 8)),)},
            params={},
            batch=1,
        )


def test_an_engine_input_that_nothing_writes_is_named() -> None:
    catalog = Catalog()
    with pytest.raises(MatchError, match="input sizes int64 .* is written by no patch"):
        make_plan(
            [catalog.patch("resize_letterbox"), None, catalog.patch("select_nms")],
            inputs={
                "image": (Tensor("images", "float32", (1, 3, 64, 64)),),
                "sizes": (Tensor("sizes", "int64", (1, 2)),),
            },
            outputs={"head": (Tensor("o", "float32", (1, 84, 84)),)},
            params={},
            batch=1,
        )


def test_a_port_that_nothing_gives_is_named() -> None:
    with pytest.raises(MatchError, match="takes the port 'candidates', which no earlier step"):
        make_plan(
            [Catalog().patch("resize_letterbox"), None, Catalog().patch("select_nms")],
            inputs={"image": (Tensor("images", "float32", (1, 3, 64, 64)),)},
            outputs={"head": (Tensor("o", "float32", (1, 84, 84)),)},
            params={},
            batch=1,
        )


def write_patch(folder: Path, contract: str, kernel: str = "") -> Patch:
    folder.mkdir()
    (folder / "patch.yaml").write_text(contract, encoding="utf-8")
    (folder / "kernel.cu").write_text(kernel, encoding="utf-8")
    return Patch.read(folder)


GROUPED = """\
summary: Levels
kind: decode
inputs:
  boxes: {dtype: float16, shape: [N, 4 * R, H, W], levels: [H, W]}
  classes: {dtype: float32, shape: [N, C, H, W], levels: [H, W]}
outputs:
  total: {dtype: float32, shape: [N, A]}
params:
  strides: {type: [int], default: [8, 16], help: x}
  weights: {type: [float], default: [1, 0.1], help: x}
  none: {type: [float], default: [], help: x}
  mode: {type: choice, choices: [fast, extra-slow], default: extra-slow, help: x}
  limit: {type: int, default: 9223372036854775807, help: x}
  threshold: {type: float, default: 0.1, runtime: true, help: x}
sizes: {A: sum(H * W), K: "min(A, limit)"}
launch:
  - {entry: decode_levels, over: [N, A], per_thread: 4, block: 128}
  - {entry: decode_levels, grid: [N, 7], block: [32, 8], shared: 4 * A}
"""


def levels(*, second: tuple[int, int] = (4, 4)) -> Plan:
    patch = Patch(
        "decode_levels",
        Path("x/decode_levels"),
        *write_spec(GROUPED),
    )
    return plan_patches(
        [patch],
        inputs={
            "boxes": (
                Tensor("b0", "float16", (2, 64, 8, 8)),
                Tensor("b1", "float16", (2, 64, 4, 4)),
            ),
            "classes": (
                Tensor("c0", "float32", (2, 80, 8, 8)),
                Tensor("c1", "float32", (2, 80, *second)),
            ),
        },
        outputs={},
        params={},
        batch=2,
    )


def write_spec(text: str) -> tuple:
    from trtpatch.spec import yamlfile
    from trtpatch.spec.patch import PatchSpec
    from trtpatch.spec.validate import validate

    document = yamlfile.parse(text, file="x/decode_levels/patch.yaml")
    return validate(PatchSpec, document), document


def test_levels_of_a_group_become_tuples() -> None:
    step = next(levels().patch_steps)
    assert step.sizes["H"] == (8, 4)
    assert step.sizes["A"] == step.sizes["K"] == 80
    assert step.launches[0].grid == (1, 2, 1)
    assert step.launches[1].grid == (7, 2, 1)
    assert step.launches[1].block == (32, 8, 1)
    assert step.launches[1].shared_bytes == 320


def test_groups_whose_levels_differ_are_refused() -> None:
    with pytest.raises(MatchError, match=r"levels of classes have H = \(8, 5\)"):
        levels(second=(5, 4))


def test_args_of_numpy_have_the_layout_of_the_compilers(tmp_path: Path) -> None:
    """The oracle is the C++ compiler's own offsetof."""
    import re
    import shutil
    import subprocess

    step = next(levels().patch_steps)
    write_patch(tmp_path / "decode_levels", GROUPED)
    step = PatchStep(
        Patch.read(tmp_path / "decode_levels"),
        step.sizes,
        step.params,
        step.settings,
        step.tensors,
        step.launches,
    )
    unit = make_unit(step)
    struct = re.search(r"struct Args \{.*?\n\};", unit.text, re.DOTALL)
    assert struct
    names = unit.args_dtype.names
    assert names
    prints = "".join(f'printf("%zu ", offsetof(Args, {name}));' for name in names)
    source = tmp_path / "offsets.cpp"
    source.write_text(
        "#include <cstddef>\n#include <cstdio>\nstruct float16 { unsigned short bits; };\n"
        f'{struct[0]}\nint main() {{ {prints} printf("%zu", sizeof(Args)); }}\n',
        encoding="utf-8",
    )
    compiler = shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("no C++ compiler")
    subprocess.run([compiler, "-std=c++17", source, "-o", tmp_path / "offsets"], check=True)
    found = subprocess.run([tmp_path / "offsets"], capture_output=True, text=True, check=True)
    *offsets, size = map(int, found.stdout.split())
    assert offsets == [unit.args_dtype.fields[name][1] for name in names]  # type: ignore[index]
    assert size == unit.args_dtype.itemsize
    for text in (
        "none_count = 0;",
        "mode_extra_slow = 1;",
        "mode = 1;",
        "limit = 9223372036854775807LL;",
    ):
        assert text in unit.text

    addresses = {name: 4096 * (i + 1) for i, name in enumerate(levels().buffers)}
    args = pack(unit, step, addresses.__getitem__)
    assert args["boxes"][0].tolist() == [addresses["boxes.0"], addresses["boxes.1"]]
    assert args["strides"][0].tolist() == [8, 16]
    np.testing.assert_array_equal(args["weights"][0], np.float32([1, 0.1]))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("block: 128", "block: 2048", "a block of 2048 threads; expected 1 to 1024"),
        ("block: 128", "block: [1, 1, 65]", "a block of 65 threads; .* along z at most 64"),
        ("over: [N, A]", "over: [70000 * N, A]", "grid .* is larger than CUDA's"),
        ("sum(H * W)", "NN", r"/patch\.yaml:\d+:\d+: .*symbol 'NN' has no value. Did you mean 'N'"),
        ("shape: [N, A]", "shape: [N, A - 100]", "'A - 100' is -20, not a size"),
        ("per_thread: 4", "per_thread: 0", "block or per_thread is 0"),
    ],
)
def test_sizes_that_cuda_does_not_have(
    old: str, new: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert old in GROUPED
    monkeypatch.setitem(globals(), "GROUPED", GROUPED.replace(old, new))
    with pytest.raises(MatchError, match=message):
        levels()
