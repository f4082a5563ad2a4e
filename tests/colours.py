"""Pictures of coloured rectangles, and pipelines that find them on this machine."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import trtpatch
from tests.tiny_model import save_tiny

EXECUTORS = ["cpu", "host"]


def picture(seed: int, height: int = 96, width: int = 128) -> np.ndarray:
    """Coloured rectangles on grey."""
    draw = np.random.default_rng(seed)
    pixels = np.full((height, width, 3), 90, np.uint8)
    for color in range(3):
        y, x = draw.integers(0, height - 24), draw.integers(0, width - 24)
        pixels[y : y + 24, x : x + 24] = np.eye(3, dtype=np.uint8)[color] * 255
    return pixels


def pipeline_file(folder: Path, *, batch: int = 2, more: str = "") -> Path:
    save_tiny(folder / "tiny.onnx", batch="N", size=(64, 64))
    path = folder / "pipeline.yaml"
    text = f"engine: {{path: tiny.onnx, kind: ort}}\nbatch: {batch}\n{more}"
    path.write_text(text, encoding="utf-8")
    return path


def as_lists(found: trtpatch.Detections) -> tuple:
    return found.boxes.tolist(), found.scores.tolist(), found.labels.tolist()
