"""Heads that matter to decode_yolov8_obb."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from trtpatch.verify import Case

ALL = {"score_threshold": 0.0}


def cases() -> Iterator[Case]:
    yield Case("15 classes", {"head": head(2, 15, 2100)}, ALL)
    for dtype in (np.float32, np.float16):
        name = np.dtype(dtype).name
        yield Case(f"35 anchors, {name}", {"head": head(7, 3, 35, dtype=dtype)}, ALL)
        yield Case(f"one anchor, {name}", {"head": head(1, 1, 1, dtype=dtype)}, ALL)
    straight = head(1, 2, 40)
    straight[0, -1] = np.tile(np.float32([0, np.pi / 2, np.pi, -np.pi / 2]), 10)
    yield Case("straight", {"head": straight}, ALL)
    yield Case("no candidate", {"head": head(1, 2, 40)}, {"score_threshold": 1.0})
    yield Case("at the threshold", {"head": np.full((1, 6, 40), 0.25, np.float32)}, every(0.25))
    angles = head(1, 2, 40)
    angles[0, -1, :20] = np.nan
    angles[0, 2, 15:25] = np.nan
    angles[0, 5, 30] = np.nan
    angles[0, -1, 35] = np.inf
    yield Case("not finite", {"head": angles}, ALL)


def every(threshold: float) -> dict[str, float]:
    return {"score_threshold": float(np.nextafter(np.float32(threshold), np.float32(0)))}


def head(
    images: int, classes: int, anchors: int, *, dtype: type[np.floating] = np.float32
) -> np.ndarray:
    """`[images, 4 + classes + 1, anchors]`: boxes in 640 px, scores in 0..1, angles all around."""
    random = np.random.default_rng(anchors)
    boxes = random.uniform(1, 640, (images, 4, anchors))
    scores = random.uniform(0, 1, (images, classes, anchors))
    angles = random.uniform(-4, 4, (images, 1, anchors))
    return np.concatenate([boxes, scores, angles], axis=1).astype(dtype)
