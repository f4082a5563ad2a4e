"""Heads that matter to decode_yolov8."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from trtpatch.verify import Case


def cases() -> Iterator[Case]:
    yield Case("640 px, 80 classes", {"head": head(1, 80, 8400)})
    further = head(2, 3 + 32, 2100)
    further[:, 7:] = 9.0  # would be the best class
    yield Case("32 further columns", {"head": further}, {"K": 32})
    yield Case("float16", {"head": head(2, 80, 2100, dtype=np.float16)})
    for dtype in (np.float32, np.float16):
        name = np.dtype(dtype).name
        yield Case(f"35 anchors, {name}", {"head": head(7, 3, 35, dtype=dtype)})
        yield Case(f"one class, {name}", {"head": head(2, 1, 33, dtype=dtype)})
        yield Case(f"one anchor, {name}", {"head": head(1, 1, 1, dtype=dtype)})
    yield Case("no candidate", {"head": head(2, 4, 64)}, {"score_threshold": 1.0})
    yield Case("all pass", {"head": head(2, 4, 2100)}, {"score_threshold": 0.0})
    yield Case("equal classes", {"head": np.full((1, 44, 40), 0.5, np.float32)})
    yield Case("at the threshold", {"head": np.full((1, 6, 40), 0.25, np.float32)})
    yield Case("negative scores", {"head": head(1, 4, 40) * 8 - 7}, {"score_threshold": 0.0})
    yield Case("not finite", {"head": not_finite()})


def head(
    images: int, classes: int, anchors: int, *, dtype: type[np.floating] = np.float32
) -> np.ndarray:
    """`[images, 4 + classes, anchors]`: boxes in 640 px, scores in 0..1, a tenth above 0.25."""
    random = np.random.default_rng(anchors)
    boxes = random.uniform(1, 640, (images, 4, anchors))
    scores = random.uniform(0, 1, (images, classes, anchors)) * 0.25
    scores[random.random(scores.shape) < 0.1 / classes] += 0.5
    return np.concatenate([boxes, scores], axis=1).astype(dtype)


def not_finite() -> np.ndarray:
    """NaN and infinity in scores and boxes, of anchors above the threshold and below it."""
    head = np.full((2, 14, 64), 0.5, np.float32)
    head[0, 4:, 20:] = 0.1
    head[0, 4 + 3, 1] = head[0, 4, 2] = head[0, 13, 3] = np.nan
    head[0, 2, 4] = head[0, 0, 5] = np.nan
    head[0, 5, 6] = head[0, 3, 7] = np.inf
    head[0, 6, 8] = -np.inf
    head[0, 2, 30] = head[0, 9, 31] = np.nan
    head[0, 4:, 32] = -np.inf
    head[0, 0, 33] = head[0, 2, 33] = np.inf
    return head
