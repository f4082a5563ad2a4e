"""Recorded outputs whose boxes are known by hand, in a folder with all that it takes to run."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from trtpatch.engines import EngineInfo, Tensor
from trtpatch.engines.metadata import Metadata
from trtpatch.engines.recorded import RecordedFrame, save_recording

ANCHORS, CLASSES = 21, 2
WIDTH, HEIGHT = 64, 32
"""Into 32 x 32 model pixels: half the size, 8 rows of padding at the top."""


def head() -> np.ndarray:
    """A YOLOv8 head: a box, a worse one upon it, and one whose score is not a number."""
    out = np.zeros((1, 4 + CLASSES, ANCHORS), np.float32)
    out[0, :4, 3] = 16, 16, 8, 4
    out[0, 5, 3] = 0.75
    out[0, :4, 4] = 16, 16, 8, 4.5
    out[0, 5, 4] = 0.5
    out[0, 4, 9] = np.nan
    return out


def write_recording(folder: Path) -> Path:
    """A recording of three frames, a pipeline file and two pictures."""
    info = EngineInfo(
        kind="ort",
        path="tiny.onnx",
        flavour="onnxruntime",
        version="1.0",
        inputs=(Tensor("images", "float32", (1, 3, 32, 32)),),
        outputs=(Tensor("output0", "float32", (1, 4 + CLASSES, ANCHORS)),),
        metadata=Metadata(names=("cat", "dog"), stride=32),
    )
    frame = RecordedFrame({"output0": head()}, np.array([[HEIGHT, WIDTH]], np.int32))
    save_recording(folder / "tiny.npz", info=info, frames=[frame] * 3)
    (folder / "p.yaml").write_text("engine: {path: tiny.npz}\nexecutor: cpu\n")
    for name in ("a.png", "b.png"):
        Image.new("RGB", (WIDTH, HEIGHT), (60, 90, 30)).save(folder / name)
    return folder


def deny(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `os.access` say no for one name; a superuser's says yes to anything."""
    monkeypatch.setattr(os, "access", lambda path, *_, **__: Path(path).name != name)
