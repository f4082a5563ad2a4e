"""What the tests on a GPU share: they are skipped where there is none."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import trtpatch
from tests.reloads import Project
from tests.tiny_pipelines import Load, loader
from trtpatch.executors import gpu_found
from trtpatch.pipeline import Pipeline


@pytest.fixture(scope="session", autouse=True)
def gpu() -> None:
    if not gpu_found():
        pytest.skip("no GPU, or CuPy is not installed")


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """Pipelines of the tiny detector."""
    return loader(tmp_path)


@pytest.fixture
def project(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """With TensorRT-RTX, all in one graph; else with ONNX Runtime between two."""
    pytest.importorskip("onnx")
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
