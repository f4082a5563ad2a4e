"""`trtpatch compile` and `cache warm`, on a machine with neither GPU nor driver."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.command import invoke
from tests.reloads import Project, edit
from tests.tiny_model import save_tiny
from trtpatch.ahead import plan_ahead, units_of
from trtpatch.compiler.bundle import Bundle
from trtpatch.errors import CompileError
from trtpatch.executors import gpu_found
from trtpatch.loaded import Loaded
from trtpatch.unit import make_unit

pytestmark = pytest.mark.skipif(gpu_found(), reason="a GPU would build the engine")


@pytest.fixture
def project(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setenv("TRTPATCH_CACHE", str(cache))
    monkeypatch.chdir(tmp_path)
    return Project(tmp_path, engine="kind: trt")


def compile_bundle(*more: str) -> str:
    command = ("compile", "pipeline.yaml", "--arch", "sm_75,sm_90,sm_75", "-o", "out/bundle")
    return invoke(*command, *more).stdout


def test_every_kernel_of_the_chain_is_compiled_for_every_architecture(project: Project) -> None:
    text = compile_bundle()
    assert len([line for line in text.splitlines() if line.startswith("decode_tiny")]) == 2
    bundle = Bundle.read(Path("out/bundle"))
    assert bundle.archs == ("sm_75", "sm_90")
    loaded = plan_ahead(project.pipeline)
    units = list(units_of(loaded))
    loaded.engine.close()
    names = ["begin", "resize_letterbox", "decode_tiny", "select_nms"]
    assert [unit.name for unit in units] == names
    for unit in units:
        for arch in bundle.archs:
            assert bundle.cubin_for(unit, arch=arch).code.startswith(b"\x7fELF")
    assert f"out/bundle: {2 * len(units)} cubins" in text


def test_json_has_what_each_kernel_uses(project: Project) -> None:
    rows = json.loads(compile_bundle("--json"))
    (row,) = (row for row in rows if (row["patch"], row["arch"]) == ("decode_tiny", "sm_90"))
    (kernel,) = row["kernels"]
    assert kernel["name"] == "decode_tiny"
    assert kernel["registers"] > 0
    assert kernel["spill_bytes"] == 0


@pytest.mark.parametrize(
    ("change", "different"),
    [
        (lambda p: edit(p.header, "1.0f", "2.0f"), "mine/decode_tiny/gain.cuh"),
        (lambda p: edit(p.kernel, "int label = 0;", "int label = 1;"), "decode_tiny/kernel.cu"),
        (
            lambda p: edit(p.contract, "block: 128}", "block: 128}\noptions: {fast_math: true}"),
            "the compiler's options",
        ),
        (
            lambda p: save_tiny(p.pipeline.with_name("tiny.onnx"), batch=1, size=(64, 64)),
            "Args of decode_tiny (shapes and parameters)",
        ),
    ],
)
def test_what_is_edited_since_is_refused_and_named(
    project: Project, change: object, different: str
) -> None:
    compile_bundle()
    change(project)  # type: ignore[operator]
    loaded = plan_ahead(project.pipeline)
    (unit,) = (unit for unit in units_of(loaded) if unit.name == "decode_tiny")
    with pytest.raises(CompileError) as caught:
        Bundle.read(Path("out/bundle")).cubin_for(unit, arch="sm_75")
    assert different in str(caught.value)
    assert "trtpatch compile pipeline.yaml --arch sm_75,sm_90 -o out/bundle" in str(caught.value)
    compile_bundle()
    assert Bundle.read(Path("out/bundle")).cubin_for(unit, arch="sm_75")


def test_the_pipeline_file_names_its_bundle_relative_to_itself(project: Project) -> None:
    edit(project.pipeline, "kind: trt", "kind: ort")
    project.pipeline.write_text(project.pipeline.read_text() + "bundle: out/bundle\n")
    compile_bundle()
    loaded = Loaded(project.pipeline, executor="gpu")
    assert loaded.bundle is not None
    assert loaded.bundle.folder == project.pipeline.parent / "out/bundle"
    assert Loaded(project.pipeline, executor="cpu").bundle is None


def test_an_engine_that_runs_in_several_shapes(project: Project) -> None:
    save_tiny(project.pipeline.with_name("tiny.onnx"))
    profile = "profile: {min: [1, 3, 64, 64], opt: [2, 3, 96, 96], max: [2, 3, 96, 96]}"
    edit(project.pipeline, "kind: trt", f"kind: trt, {profile}")
    project.pipeline.write_text(project.pipeline.read_text() + "size: auto\n")
    loaded = plan_ahead(project.pipeline)
    units = list(units_of(loaded))
    assert loaded.shapes.all()[0] == loaded.shapes.largest
    assert len(loaded.shapes.all()) == 2 * 9  # one side of 96 px, the other of 64 to 96 by 8
    random = np.random.default_rng(0)
    seen = set()
    for _ in range(60):
        height, width = random.integers(1, 400, (2, random.integers(1, 3)))
        seen.add(loaded.shapes.shape_for([*zip(height.tolist(), width.tolist(), strict=True)]))
    assert len(seen) > 9
    for shape in seen:
        assert all(make_unit(step) in units for step in loaded.bind(shape).plan.patch_steps)


@pytest.mark.parametrize(
    ("arch", "said"),
    [
        ("sm_90,90", "'90' is no GPU architecture; one is written sm_90"),
        ("sm_35", "does not compile for sm_35"),
        (",", "--arch: expected architectures such as sm_75,sm_86,sm_90, found none"),
    ],
)
def test_architectures_that_are_none(project: Project, arch: str, said: str) -> None:
    command = ("compile", "pipeline.yaml", "--arch", arch, "-o", "bundle")
    assert said in invoke(*command, code=2).stderr
    assert not Path("bundle/bundle.json").exists()


def test_a_kernel_that_does_not_compile_is_told_with_its_place(project: Project) -> None:
    edit(project.kernel, "int label = 0;", "int label = zero;")
    command = ("compile", "pipeline.yaml", "--arch", "sm_90", "-o", "bundle")
    said = invoke(*command, code=2).stderr
    assert 'mine/decode_tiny/kernel.cu:8:17: identifier "zero" is undefined' in said


def test_a_tensorrt_plan_tells_its_tensors_on_a_gpu_alone(project: Project) -> None:
    plan = project.pipeline.with_name("tiny.plan")
    plan.write_bytes(b"ftrt" + bytes(100))
    edit(project.pipeline, "path: tiny.onnx, kind: trt", "path: tiny.plan")
    command = ("compile", "pipeline.yaml", "--arch", "sm_90", "-o", "bundle")
    assert "runs on a GPU" in invoke(*command, code=2).stderr


def test_a_warm_cache_is_what_the_pipeline_looks_for(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRTPATCH_CACHE", str(tmp_path / "cache"))
    command = ("cache", "warm", "pipeline.yaml", "--arch", "sm_75,sm_90")
    assert "8 compiled, 0 were there" in invoke(*command).stdout
    assert "0 compiled, 8 were there" in invoke(*command).stdout
    edit(project.header, "1.0f", "2.0f")
    assert "2 compiled, 6 were there" in invoke(*command).stdout
    edit(project.header, "2.0f", "1.0f")
    assert "0 compiled, 8 were there" in invoke(*command).stdout
    rows = json.loads(invoke("cache", "list", "kernels", "--json").stdout)
    assert sorted({row["name"] for row in rows}) == [
        "begin",
        "decode_tiny",
        "resize_letterbox",
        "select_nms",
    ]
    assert {row["target"] for row in rows} == {"sm_75", "sm_90"}
    assert all(row["made_by"].startswith("NVRTC ") for row in rows)


def test_warming_for_this_gpu_needs_one(project: Project) -> None:
    assert "give --arch" in invoke("cache", "warm", "pipeline.yaml", code=2).stderr
