"""A TensorRT-RTX engine with open batch and size in several shapes, against ONNX Runtime."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import trtpatch
from tests.tiny_model import picture, save_tiny
from trtpatch.errors import EngineError

pytest.importorskip("cupy")
pytest.importorskip("tensorrt_rtx")

PROFILE = "profile: {min: [1, 3, 32, 32], opt: [4, 3, 128, 128], max: [8, 3, 256, 256]}"
PICTURES = [picture(100 + 13 * i, 150 - 7 * i, seed=i) for i in range(7)]
SIZES = ((128, 128), (64, 64), (96, 160))


@pytest.fixture
def load(tmp_path: Path) -> Any:
    save_tiny(tmp_path / "tiny.onnx")

    def make(kind: str, engine: str, text: str = "") -> trtpatch.Pipeline:
        path = tmp_path / f"{kind}.yaml"
        path.write_text(f"engine: {{path: tiny.onnx, kind: {kind}, tf32: false, {engine}}}\n{text}")
        return trtpatch.load(path, executor="cpu" if kind == "ort" else "gpu")

    return make


def same(found: Any, expected: Any) -> None:
    assert len(expected)
    assert sorted(found.anchors.tolist()) == sorted(expected.anchors.tolist())
    order, other = (np.argsort(one.anchors) for one in (found, expected))
    np.testing.assert_allclose(found.scores[order], expected.scores[other], atol=1e-3)
    np.testing.assert_allclose(found.boxes[order], expected.boxes[other], atol=0.5)


@pytest.mark.parametrize("graph", ["off", "required"])
def test_batches_of_every_length(load: Any, graph: str) -> None:
    text = "batch: 4\nshapes: 2\n"
    engine = "input_shape: [-1, 3, 128, 128]"
    with load("ort", engine, text) as cpu, load("trt", engine, f"{text}graph: {graph}\n") as gpu:
        expected = list(cpu(PICTURES))
        for count in (7, 1, 2, 3, 4, 1):
            for found, wanted in zip(gpu(PICTURES[:count]), expected, strict=False):
                same(found, wanted)
            assert len(gpu._ready) <= 2


def test_several_sizes_side_by_side(load: Any) -> None:
    with load("ort", PROFILE) as cpu, load("trt", PROFILE) as gpu:
        for _ in range(2):
            for size in SIZES:
                for found, expected in zip(
                    gpu(PICTURES[:3], size=size), cpu(PICTURES[:3], size=size), strict=True
                ):
                    same(found, expected)
        assert len(gpu._ready) == 4
        late = [gpu(PICTURES[:3], size=size) for size in SIZES]
        for results, size in zip(late, SIZES, strict=True):
            for found, expected in zip(results, cpu(PICTURES[:3], size=size), strict=True):
                same(found, expected)
        with pytest.raises(EngineError, match=r"max \[8, 3, 256, 256\]"):
            gpu(PICTURES[0], size=(512, 512))


def test_the_smallest_size_that_holds_the_pictures(load: Any) -> None:
    text = "size: auto\nbatch: 2\n"
    with load("ort", PROFILE, text) as cpu, load("trt", PROFILE, text) as gpu:
        for found, expected in zip(gpu.stream(PICTURES), cpu(PICTURES), strict=True):
            same(found, expected)


def test_runtime_parameters_hold_in_every_shape(load: Any) -> None:
    with load("ort", PROFILE) as cpu, load("trt", PROFILE) as gpu:
        gpu(PICTURES[0])
        for pipeline in (cpu, gpu):
            pipeline.set(score_threshold=0.9)
        for size in SIZES:
            same(gpu(PICTURES[0], size=size)[0], cpu(PICTURES[0], size=size)[0])
