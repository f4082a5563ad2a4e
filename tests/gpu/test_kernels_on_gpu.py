"""Kernels on a GPU: kept, bundled, refused."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import trtpatch
from tests.nvrtc.units import unit
from tests.reloads import PICTURE, Project, best, edit
from trtpatch.compiler.compile import Compile, Cubin, compile_unit, cubin_for
from trtpatch.compiler.cubins import Cubins
from trtpatch.errors import CompileError
from trtpatch.executors.kernels import Kernels
from trtpatch.pipeline import Pipeline
from trtpatch.plan import PatchStep

pytest.importorskip("onnx")


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


def test_compiling_for_a_gpu_and_for_the_cache_is_the_same(own_arch: str, tmp_path: Path) -> None:
    cubins = Cubins(tmp_path / "kernels")
    first = cubin_for(unit(), arch=own_arch, cubins=cubins)
    assert cubin_for(unit(), arch=own_arch, cubins=cubins) == first


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
