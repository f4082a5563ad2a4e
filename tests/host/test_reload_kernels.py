"""An edited kernel in a running pipeline, on executor `host`: only it is compiled again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import trtpatch
from tests.reloads import Project, best, edit, mistake_leaves_the_old_one_running
from trtpatch.errors import CompileError
from trtpatch.pipeline import Pipeline

pytest.importorskip("onnxruntime")


@pytest.fixture
def project(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setenv("TRTPATCH_CACHE", str(cache))
    return Project(tmp_path, more="executor: host\n")


@pytest.fixture
def pipeline(project: Project) -> Iterator[Pipeline]:
    with trtpatch.load(project.pipeline) as loaded:
        yield loaded


def compiled(pipeline: Pipeline) -> int:
    """How many kernels were not in the cache, so far."""
    return pipeline._ready._cubins.misses


def test_an_edit_compiles_its_patch_alone(project: Project, pipeline: Pipeline) -> None:
    first, misses = best(pipeline), compiled(pipeline)
    pipeline.reload()
    assert compiled(pipeline) == misses

    edit(project.header, "1.0f", "1.0f / 2")
    pipeline.reload()
    assert best(pipeline) == first / 2
    assert compiled(pipeline) == misses + 1

    edit(project.kernel, "const float score = GAIN", "const float score = 0.5f * GAIN")
    pipeline.set(score_threshold=0.01)
    pipeline.reload()
    assert best(pipeline) == first / 4
    assert compiled(pipeline) == misses + 2

    edit(project.header, "1.0f / 2", "1.0f")
    edit(project.kernel, "const float score = 0.5f * GAIN", "const float score = GAIN")
    pipeline.reload()
    assert best(pipeline) == first
    assert compiled(pipeline) == misses + 2


@pytest.mark.parametrize(
    ("file", "old", "new", "said"),
    [
        ("kernel", "int label = 0;", "int label = zero;", "decode_tiny/kernel.cu:8"),
        ("header", "1.0f;", "one;", "decode_tiny/gain.cuh:1"),
        ("kernel", "gain.cuh", "gian.cuh", "Did you mean 'gain.cuh'?"),
        ("contract", "entry: decode_tiny", "entry: decode_tinny", "decode_tinny"),
    ],
)
def test_what_does_not_compile_leaves_the_old_one_running(
    project: Project, pipeline: Pipeline, file: str, old: str, new: str, said: str
) -> None:
    mistake_leaves_the_old_one_running(
        project, pipeline, file=file, old=old, new=new, error=CompileError, said=said
    )
