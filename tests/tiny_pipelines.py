"""Pipelines of the tiny detector, which load quickly, and pictures for them."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import trtpatch
from tests.tiny_model import picture, save_tiny

PICTURES = [picture(60 + 31 * i, 200 - 17 * i, seed=i) for i in range(6)]

Load = Callable[..., trtpatch.Pipeline]


def loader(folder: Path) -> Load:
    """What loads pipelines on the GPU, with more lines in the file, and more keys of the engine."""
    save_tiny(folder / "tiny.onnx")
    names = itertools.count()

    def load(
        text: str = "", kind: str = "trt", engine: str = "input_shape: [2, 3, 96, 128]"
    ) -> trtpatch.Pipeline:
        path = folder / f"{next(names)}.yaml"
        path.write_text(f"engine: {{path: tiny.onnx, kind: {kind}, {engine}}}\n" + text)
        return trtpatch.load(path, executor="gpu")

    return load


def assert_same_bits(found: Any, expected: Any) -> None:
    for one, other in zip(found, expected, strict=True):
        for name in ("boxes", "scores", "labels", "anchors"):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
        assert one.counters == other.counters
