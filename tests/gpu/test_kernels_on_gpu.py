"""Kernels on a GPU: kept, bundled, reloaded, refused, and on two GPUs at once."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import trtpatch
from tests.nvrtc.units import unit
from tests.reloads import PICTURE, Project, edit
from trtpatch.compiler.compile import Compile, Cubin, compile_unit, cubin_for
from trtpatch.compiler.cubins import Cubins
from trtpatch.errors import CompileError, InputError, SpecError
from trtpatch.executors.kernels import Kernels
from trtpatch.pipeline import Pipeline
from trtpatch.plan import PatchStep

pytest.importorskip("onnx")


@pytest.fixture
def project(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """With TensorRT-RTX, all in one graph; else with ONNX Runtime between two."""
    monkeypatch.setenv("TRTPATCH_CACHE", str(cache))
    try:
        import tensorrt_rtx  # noqa: F401
    except ImportError:
        pytest.importorskip("onnxruntime")
        return Project(tmp_path, more="executor: gpu\n")
    return Project(tmp_path, engine="kind: trt, tf32: false", more="executor: gpu\n")


@pytest.fixture
def pipeline(project: Project) -> Iterator[Pipeline]:
    with trtpatch.load(project.pipeline) as loaded:
        yield loaded


def best(pipeline: Pipeline, picture: Any = PICTURE) -> float:
    return float(pipeline(picture)[0].scores[0])


def run(project: Project, **environment: str) -> list[str]:
    """`trtpatch -v run` in a process of its own; what it says on stderr."""
    photo = project.pipeline.with_name("photo.png")
    Image.fromarray(PICTURE).save(photo)
    command = [sys.executable, "-m", "trtpatch", "-v", "run", str(project.pipeline), str(photo)]
    done = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, **environment}
    )
    assert done.returncode == 0, done.stderr
    assert "found" in done.stdout
    return done.stderr.splitlines()


# ---- The cache.


def test_the_second_start_compiles_nothing(project: Project, tmp_path: Path) -> None:
    def compiled() -> list[str]:
        said = run(project, TRTPATCH_CACHE=str(tmp_path / "fresh"))
        return [line.split()[2] for line in said if line.startswith("info: compiled ")]

    assert compiled() == ["begin", "resize_letterbox", "decode_tiny", "select_nms"]
    assert compiled() == []
    edit(project.header, "1.0f", "0.5f")
    assert compiled() == ["decode_tiny"]
    assert compiled() == []


# ---- Reload.


def test_an_edit_takes_effect_and_the_engine_is_kept(project: Project, pipeline: Pipeline) -> None:
    first = best(pipeline)
    engine, contexts = pipeline._loaded.engine, dict(pipeline._ready.engines)
    misses = pipeline._ready._cubins.misses
    held = pipeline(PICTURE)
    edit(project.header, "1.0f", "0.5f")
    assert best(pipeline) == first
    pipeline.reload()
    assert best(pipeline) == first / 2
    assert float(held[0].scores[0]) == first
    assert pipeline._loaded.engine is engine
    assert pipeline._ready.engines == contexts
    assert pipeline._ready._cubins.misses <= misses + 1
    edit(project.header, "0.5f", "1.0f")
    pipeline.reload()
    assert best(pipeline) == first


def test_an_edited_contract_and_parameter_take_effect(project: Project, pipeline: Pipeline) -> None:
    assert len(pipeline(PICTURE)[0]) > 1
    edit(project.registry, "max_detections: 300", "max_detections: 1")
    pipeline.reload()
    assert len(pipeline(PICTURE)[0]) == 1
    edit(project.contract, "default: 0.25", "default: 2.0")
    pipeline.reload()
    assert len(pipeline(PICTURE)[0]) == 0
    pipeline.set(score_threshold=0.3)
    edit(project.contract, "block: 128", "block: 64")
    pipeline.reload()
    assert len(pipeline(PICTURE)[0]) == 1


@pytest.mark.parametrize(
    ("file", "old", "new", "error", "said"),
    [
        ("kernel", "int label = 0;", "int label = zero;", CompileError, "kernel.cu:8:17"),
        ("header", "1.0f", "one", CompileError, "gain.cuh:1:24"),
        ("contract", "block: 128", "block: 128, shared: 9000000", CompileError, "shared memory"),
        ("contract", "block: 128", "blok: 128", SpecError, "Did you mean 'block'?"),
        ("pipeline", "path: tiny.onnx", "path: other.onnx", SpecError, "Load the pipeline again"),
    ],
)
def test_a_mistake_leaves_the_old_one_running(
    project: Project,
    pipeline: Pipeline,
    file: str,
    old: str,
    new: str,
    error: type[Exception],
    said: str,
) -> None:
    first = best(pipeline)
    edit(getattr(project, file), old, new)
    with pytest.raises(error) as caught:
        pipeline.reload()
    assert said in str(caught.value)
    assert best(pipeline) == first
    edit(getattr(project, file), new, old)
    edit(project.header, "1.0f", "0.5f")
    pipeline.reload()
    assert best(pipeline) == first / 2


def test_frames_go_on_meanwhile_and_each_is_old_or_new(
    project: Project, pipeline: Pipeline
) -> None:
    pipeline.set(score_threshold=0.01)
    gains = ("1.0f", "0.5f", "0.25f", "0.125f")
    expected = {np.float32(best(pipeline)) * np.float32(gain[:-1]) for gain in gains}
    seen: set[np.float32] = set()
    stop = threading.Event()

    def run_frames() -> None:
        while not stop.is_set():
            seen.add(np.float32(best(pipeline)))

    thread = threading.Thread(target=run_frames)
    thread.start()
    try:
        for old, new in itertools.pairwise(gains):
            edit(project.header, old, new)
            pipeline.reload()
    finally:
        stop.set()
        thread.join()
    assert len(seen) > 1
    assert seen <= expected


def test_a_hundred_reloads_leave_no_memory_behind(project: Project, pipeline: Pipeline) -> None:
    import cupy

    pool = cupy.get_default_memory_pool()
    for number in range(100):
        if number == 20:
            before = pool.used_bytes(), cupy.cuda.runtime.memGetInfo()[0]
        pipeline.reload()
        best(pipeline)
    assert pool.used_bytes() <= before[0]
    assert before[1] - cupy.cuda.runtime.memGetInfo()[0] < 64 * 2**20


# ---- Bundles.


def bundle(project: Project, *archs: str) -> None:
    """Compile a bundle in a process that sees no GPU, and name it in the pipeline file."""
    command = [sys.executable, "-m", "trtpatch", "compile", "pipeline.yaml", "-o", "bundle"]
    done = subprocess.run(
        [*command, "--arch", ",".join(archs)],
        cwd=project.pipeline.parent,
        env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    if "bundle:" not in project.pipeline.read_text():
        project.pipeline.write_text(f"{project.pipeline.read_text()}bundle: bundle\n")


@pytest.fixture
def own_arch() -> str:
    import cupy

    return f"sm_{cupy.cuda.Device().compute_capability}"


def test_a_bundle_made_without_a_gpu_is_what_a_pipeline_on_one_wants(
    project: Project, own_arch: str, tmp_path: Path
) -> None:
    pytest.importorskip("onnxruntime")
    with trtpatch.load(project.pipeline) as compiled:
        expected = compiled(PICTURE)[0]
    bundle(project, "sm_75", own_arch)
    said = run(project, TRTPATCH_CACHE=str(tmp_path / "fresh"))
    assert not [line for line in said if line.startswith("info: compiled ")]
    with trtpatch.load(project.pipeline) as bundled:
        found = bundled(PICTURE)[0]
        np.testing.assert_array_equal(found.boxes, expected.boxes)
        np.testing.assert_array_equal(found.scores, expected.scores)
        assert bundled._ready._cubins.misses == bundled._ready._cubins.hits == 0

        edit(project.header, "1.0f", "0.5f")
        with pytest.raises(CompileError, match=r"Different: mine/decode_tiny/gain\.cuh"):
            bundled.reload()
        assert best(bundled) == expected.scores[0]
        bundle(project, own_arch)
        bundled.reload()
        assert best(bundled) == expected.scores[0] / 2


def test_a_bundle_for_other_gpus_is_refused(project: Project) -> None:
    pytest.importorskip("onnxruntime")
    bundle(project, "sm_75")
    with pytest.raises(CompileError, match="has kernels for sm_75, and this GPU is sm_"):
        trtpatch.load(project.pipeline)


# ---- What the driver does not load.


def other_arch(text: object, *, arch: str) -> Cubin:
    """A cubin for an old GPU, said to be for this one."""
    code = compile_unit(unit(), arch="sm_75").code
    return Cubin("decode_mine", arch, code, "NVRTC 99.9.9", "", ())


def garbage(text: object, *, arch: str) -> Cubin:
    return Cubin("decode_mine", arch, bytes(1000), "NVRTC 12.0.0", "", ())


@pytest.mark.parametrize(
    ("source", "remedy"),
    [(other_arch, "Install a newer driver"), (garbage, "trtpatch cache clear")],
)
def test_a_cubin_that_does_not_load_is_told(
    project: Project, pipeline: Pipeline, source: Compile, remedy: str, own_arch: str
) -> None:
    import cupy

    if own_arch == "sm_75":
        pytest.skip("this GPU loads what is made for sm_75")
    step = next(one for one in pipeline.plan.steps if isinstance(one, PatchStep))
    with pytest.raises(CompileError) as caught:
        Kernels(cupy.cuda.Device(), source).load(step)
    said = str(caught.value)
    assert said.startswith("patch decode_mine: the driver, which serves CUDA ")
    assert "CUDA_ERROR_" in said
    assert remedy in said
    assert best(pipeline)


# ---- Two GPUs.


def test_two_pipelines_on_two_gpus_each_have_their_own(project: Project, tmp_path: Path) -> None:
    import cupy

    if cupy.cuda.runtime.getDeviceCount() < 2:
        pytest.skip("one GPU")
    (tmp_path / "second").mkdir()
    engine = project.pipeline.read_text().partition("tiny.onnx, ")[2].partition("}")[0]
    second = Project(tmp_path / "second", engine=engine, more="executor: gpu\ndevice: 1\n")
    with trtpatch.load(project.pipeline) as a, trtpatch.load(second.pipeline) as b:
        first = best(a)
        results: dict[int, list[float]] = {0: [], 1: []}

        def run_frames(number: int, pipeline: Pipeline) -> None:
            for _ in range(50):
                results[number].append(best(pipeline))

        threads = [threading.Thread(target=partial(run_frames, n, p)) for n, p in ((0, a), (1, b))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert set(results[0]) == {first}
        np.testing.assert_allclose(results[1], first, atol=1e-6)
        for here, there in ((a, 1), (b, 0)):
            with cupy.cuda.Device(there):
                frame = cupy.asarray(PICTURE)
            with pytest.raises(InputError, match=f"image 1 of 1: it lies on GPU {there}, but this"):
                here(frame)
            with cupy.cuda.Device(1 - there):
                assert best(here, cupy.asarray(PICTURE)) == pytest.approx(first)
        edit(second.header, "1.0f", "0.5f")
        b.reload()
        assert best(b) == pytest.approx(first / 2)
        assert best(a) == first


def test_compiling_for_a_gpu_and_for_the_cache_is_the_same(own_arch: str, tmp_path: Path) -> None:
    cubins = Cubins(tmp_path / "kernels")
    first = cubin_for(unit(), arch=own_arch, cubins=cubins)
    assert cubin_for(unit(), arch=own_arch, cubins=cubins) == first
