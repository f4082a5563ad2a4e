"""Plans built by the real TensorRT-RTX, without a GPU, and what is known of them then."""

import json
import logging
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.tiny_model import save_tiny
from trtpatch.engines import open_engine
from trtpatch.engines.build import build, cached_build
from trtpatch.engines.device import find_gpu
from trtpatch.engines.flavours import available, choose
from trtpatch.engines.inspection import inspect
from trtpatch.engines.options import BuildOptions
from trtpatch.engines.planfile import read_plan
from trtpatch.errors import EngineError

rtx = pytest.importorskip("tensorrt_rtx")

FLOAT = TensorProto.FLOAT


def save(path: Path, *nodes, domains=(), weights=None, **values) -> Path:
    """A small model from input `x` to output `y`; `values` are their shapes."""
    inputs = [helper.make_tensor_value_info("x", FLOAT, values.get("x", (1, 3, 8, 8)))]
    outputs = [helper.make_tensor_value_info("y", FLOAT, values.get("y", (1, 3, 8, 8)))]
    initializers = [] if weights is None else [numpy_helper.from_array(weights, "w")]
    graph = helper.make_graph(list(nodes), "g", inputs, outputs, initializers)
    opsets = [helper.make_opsetid("", 17), *(helper.make_opsetid(d, 1) for d in domains)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    helper.set_model_props(model, {"names": "{0: 'cat', 1: 'dog'}", "stride": "8"})
    onnx.save(model, path)
    return path


@pytest.fixture
def relu(tmp_path) -> Path:
    return save(tmp_path / "relu.onnx", helper.make_node("Relu", ["x"], ["y"]))


def plans(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("*.plan"))


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("yolox_nano_416", None),
        ("face_detection_yunet_2023mar", None),
        ("yunet_n_dynamic", (2, 3, 320, 416)),
        ("ppocrv6_det_tiny", {"x": (1, 3, 320, 320)}),
    ],
)
def test_real_models_are_built(assets, tmp_path, name, shape):
    data = build(assets / "models" / f"{name}.onnx", BuildOptions(input_shape=shape))
    path = tmp_path / "model.plan"
    path.write_bytes(data)
    file = read_plan(path)
    assert file.plan == data
    assert str(file.header) == f"TensorRT-RTX {rtx.__version__}"
    assert file.header.size == len(data)


def test_bounds_for_open_sizes(assets):
    path = assets / "models" / "yunet_n_dynamic.onnx"
    bounds = ((1, 3, 32, 32), (1, 3, 320, 320), (4, 3, 640, 640))
    assert build(path, BuildOptions(profile={"input": bounds}))[:4] == b"vtrt"
    assert build(path, BuildOptions(profile=bounds))[:4] == b"vtrt"
    with pytest.raises(EngineError, match=r"leaves sizes open.*input_shape: \[1, 3, 640, 640\]"):
        build(path)
    with pytest.raises(EngineError, match="no input is called 'images'; it has input float32"):
        build(path, BuildOptions(profile={"images": bounds}))


@pytest.mark.parametrize(
    "options",
    [
        BuildOptions(input_shape=(-1, 3, 64, 96), batch=8),
        BuildOptions(profile=((1, 3, 32, 32), (2, 3, 64, 64), (4, 3, 128, 128))),
        BuildOptions(
            input_shape=(-1, 3, -1, 64), profile=((1, 3, 32, 64),) * 2 + ((8, 3, 64, 64),)
        ),
    ],
)
def test_a_batch_and_sizes_that_stay_open(tmp_path, options):
    path = save_tiny(tmp_path / "tiny.onnx")
    plan = read_plan(cached_build(path, options, cache_dir=tmp_path))
    assert (plan.header.family, plan.metadata.stride) == ("tensorrt_rtx", 8)
    with pytest.raises(EngineError, match=r"leaves sizes open.*input_shape: .*profile: "):
        build(path, BuildOptions(batch=8))


def test_what_the_exporter_wrote_goes_before_the_plan(relu, tmp_path):
    data = build(relu)
    length = int.from_bytes(data[:4], "little")
    assert json.loads(data[4 : 4 + length]) == {"names": {"0": "cat", "1": "dog"}, "stride": 8}
    assert data[4 + length : 8 + length] == b"vtrt"
    (tmp_path / "relu.engine").write_bytes(data)
    file = read_plan(tmp_path / "relu.engine")
    assert (file.metadata.names, file.metadata.stride) == (("cat", "dog"), 8)


@pytest.mark.parametrize("lead", [True, False])
def test_real_plans_that_were_damaged(relu, tmp_path, lead):
    data = build(relu)
    plan = data if lead else data[4 + int.from_bytes(data[:4], "little") :]
    path = tmp_path / "damaged.engine"
    for damaged, message in (
        (plan[:-1], "truncated"),
        (plan[: len(plan) // 2], "truncated"),
        (plan.replace(b"\n", b"\r\n"), "text-mode write"),
        (plan.decode("utf-8", "replace").encode(), "decoded and written as text"),
        (plan + b"\n", "damaged"),
    ):
        path.write_bytes(damaged)
        with pytest.raises(EngineError, match=f"damaged.engine: .*{message}"):
            open_engine(path, gpu=False)


class TestCache:
    def test_a_second_build_is_none(self, relu, tmp_path, caplog):
        with caplog.at_level(logging.INFO, "trtpatch.engines"):
            first = cached_build(relu, cache_dir=tmp_path / "cache")
            written = first.stat().st_mtime_ns
            assert cached_build(relu, cache_dir=tmp_path / "cache") == first
        assert first.stat().st_mtime_ns == written
        assert caplog.text.count("building") == 1
        assert f"relu-tensorrt_rtx-{rtx.__version__}-any-" in first.name

    def test_what_makes_another_plan(self, relu, tmp_path, monkeypatch):
        cache = tmp_path / "cache"
        for options in (
            BuildOptions(),
            BuildOptions(tf32=False),
            BuildOptions(input_shape=(1, 3, 16, 16)),
            BuildOptions(input_shape={"x": (2, 3, 16, 16)}),
            BuildOptions(compute_capabilities=("SM89", "SM120")),
        ):
            cached_build(relu, options, cache_dir=cache)
        save(relu, helper.make_node("Sigmoid", ["x"], ["y"]))
        cached_build(relu, cache_dir=cache)
        monkeypatch.setenv("NVIDIA_TF32_OVERRIDE", "0")
        cached_build(relu, cache_dir=cache)
        assert len(plans(cache)) == 7

    def test_other_weights_in_a_file_of_their_own(self, tmp_path):
        """The ONNX file itself stays the same, byte for byte."""
        path, texts = tmp_path / "m.onnx", []
        node = helper.make_node("MatMul", ["x", "w"], ["y"])
        for fill in (1, 2):
            weights = np.full((8, 8), fill, np.float32)
            save(path, node, weights=weights)
            onnx.save(
                onnx.load(path),
                path,
                save_as_external_data=True,
                location="w.bin",
                size_threshold=0,
            )
            texts.append(path.read_bytes())
            cached_build(path, cache_dir=tmp_path / "cache")
            (tmp_path / "w.bin").unlink()
        assert texts[0] == texts[1]
        assert len(plans(tmp_path / "cache")) == 2

    def test_a_damaged_entry_is_built_again(self, relu, tmp_path, caplog):
        plan = cached_build(relu, cache_dir=tmp_path)
        good = plan.read_bytes()
        plan.write_bytes(good[:-10])
        assert cached_build(relu, cache_dir=tmp_path) == plan
        assert plan.read_bytes() == good
        assert "truncated" in caplog.text

    def test_where_it_lies(self, relu, tmp_path, monkeypatch):
        monkeypatch.setenv("TRTPATCH_CACHE", str(tmp_path / "mine ü"))
        assert cached_build(relu).parent == tmp_path / "mine ü" / "engines"
        monkeypatch.delenv("TRTPATCH_CACHE")
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
        assert cached_build(relu).parent == tmp_path / "xdg" / "trtpatch" / "engines"

    def test_a_folder_that_cannot_be_made(self, relu, tmp_path, monkeypatch, caplog):
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
        (tmp_path / "taken").write_text("a file stands where the folder should")
        plan = cached_build(relu, cache_dir=tmp_path / "taken" / "cache")
        assert read_plan(plan).header.family == "tensorrt_rtx"
        assert [r.levelname for r in caplog.records if "cannot be used" in r.message] == ["WARNING"]

    def test_processes_that_start_at_once(self, relu, tmp_path):
        with ProcessPoolExecutor(4, mp_context=get_context("spawn")) as pool:
            jobs = [pool.submit(cached_build, relu, cache_dir=tmp_path / "cache") for _ in range(4)]
            assert len({job.result() for job in jobs}) == 1
        assert len(list((tmp_path / "cache").iterdir())) == 1
        assert cached_build(relu, cache_dir=tmp_path / "cache").stat().st_size > 1000


class TestRefusals:
    def test_a_plugin_is_named(self, tmp_path):
        node = helper.make_node("EfficientNMS_TRT", ["x"], ["y"], name="nms", domain="nvinfer")
        path = save(tmp_path / "m.onnx", node, domains=["nvinfer"])
        with pytest.raises(EngineError) as error:
            build(path)
        assert "node 'nms', operator or plugin 'EfficientNMS_TRT'" in str(error.value)

    def test_tensorrts_own_log_is_quoted(self, assets):
        with pytest.raises(
            EngineError, match=r"(?s)cannot build it.*TensorRT's log:.*  error: .*workspace"
        ):
            build(assets / "models/yolox_nano_416.onnx", BuildOptions(workspace_bytes=1 << 20))

    def test_a_compute_capability_that_it_does_not_know(self, relu):
        with pytest.raises(EngineError, match=r"does not build for 'SM42'; it knows .*SM89"):
            build(relu, BuildOptions(compute_capabilities=("SM42",)))

    def test_a_network_that_contradicts_itself(self, tmp_path):
        node = helper.make_node("MatMul", ["x", "w"], ["y"])
        path = save(tmp_path / "m.onnx", node, weights=np.ones((5, 5), np.float32))
        with pytest.raises(EngineError, match=r"m\.onnx: TensorRT-RTX .* cannot (read|build) it"):
            build(path)

    def test_a_file_that_is_no_onnx(self, tmp_path):
        (tmp_path / "m.onnx").write_bytes(b"\xff\xd8\xff\xe0" + bytes(100))
        with pytest.raises(EngineError, match="it is a JPEG picture"):
            build(tmp_path / "m.onnx")


def test_float16_that_cannot_be_had_is_reported(relu, tmp_path, caplog):
    told = "float16 asked for, float32 delivered"
    plan = cached_build(relu, BuildOptions(float16=True), cache_dir=tmp_path)
    assert told in read_plan(plan).metadata.extra["trtpatch.notes"]
    assert told not in caplog.text, "loading the plan tells it"
    build(relu, BuildOptions(float16=True))
    assert told in caplog.text


def test_the_flavour_is_found():
    found = {one.flavour.module: one for one in available()}
    assert list(found) == ["tensorrt", "tensorrt_rtx", "tensorrt_lean", "tensorrt_dispatch"]
    here = found["tensorrt_rtx"]
    assert (here.version, here.builds, here.why_not) == (rtx.__version__, True, "")
    assert Path(here.library).name.startswith("libtensorrt_rtx.so")
    assert choose("auto", family="tensorrt_rtx") == here
    for other in found.values():
        if other.why_not:
            assert f"pip install {other.flavour.packages}" in other.why_not
            with pytest.raises(EngineError, match="not installed"):
                choose(other.flavour.module)
    with pytest.raises(EngineError, match="no TensorRT flavour is called 'tensorrtx'"):
        choose("tensorrtx")


def test_a_flavour_that_only_runs_plans_is_no_builder(relu):
    for name in ("tensorrt_lean", "tensorrt_dispatch"):
        with pytest.raises(EngineError, match=f"{name} runs plans and builds none"):
            open_engine(relu, gpu=True, flavour=name)


def test_a_plan_of_another_flavour_is_not_tried(relu, tmp_path):
    plan = cached_build(relu, cache_dir=tmp_path)
    with pytest.raises(EngineError, match=r"built by TensorRT-RTX .*, which TensorRT lean"):
        open_engine(plan, gpu=True, flavour="tensorrt_lean")


@pytest.fixture
def no_gpu() -> None:
    try:
        find_gpu()
    except EngineError:
        return
    pytest.skip("there is a GPU; tests/gpu runs the engine")


@pytest.mark.usefixtures("no_gpu")
def test_without_a_gpu_a_plan_is_refused_and_does_not_crash(relu, tmp_path):
    plan = cached_build(relu, cache_dir=tmp_path)
    with pytest.raises(EngineError, match=r"needs a GPU, but "):
        open_engine(plan, gpu=True)
    with pytest.raises(EngineError, match=r"relu\.onnx: needs a GPU, but "):
        open_engine(relu, gpu=True, cache_dir=tmp_path)


@pytest.mark.usefixtures("no_gpu")
def test_without_a_gpu_inspect_tells_what_the_header_tells(relu, tmp_path):
    info = inspect(cached_build(relu, cache_dir=tmp_path))
    assert (info.kind, info.flavour, info.version) == ("trt", "tensorrt_rtx", rtx.__version__)
    assert info.metadata.names == ("cat", "dog")
    assert info.notes[0] == f"built with TensorRT-RTX {rtx.__version__}"
    assert "inputs and outputs are not known: " in info.notes[1]
