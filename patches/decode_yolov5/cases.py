"""Heads that matter to decode_yolov5."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from trtpatch.verify import Case


def cases() -> Iterator[Case]:
    yield Case("320 px, 80 classes", {"head": head(1, 6300, 80)})
    for dtype in (np.float32, np.float16):
        name = np.dtype(dtype).name
        yield Case(f"rows of 16 bytes, {name}", {"head": head(7, 35, 11, dtype=dtype)})
        yield Case(f"rows of 85, {name}", {"head": head(2, 97, 80, dtype=dtype)})
        yield Case(f"one class, {name}", {"head": head(2, 33, 1, dtype=dtype)})
        yield Case(f"one anchor, {name}", {"head": head(1, 1, 1, dtype=dtype)})
    yield Case("no candidate", {"head": head(2, 64, 4)}, {"score_threshold": 1.0})
    yield Case("all pass", {"head": head(2, 2100, 4)}, {"score_threshold": 0.0})
    yield Case("equal classes", {"head": np.full((1, 40, 40), 0.75, np.float32)})
    yield Case("at the threshold", {"head": np.full((1, 40, 7), 0.5, np.float32)})
    yield Case("negative scores", {"head": head(1, 40, 4) * 8 - 7}, {"score_threshold": 0.0})
    yield Case("not finite", {"head": not_finite()})


def head(
    images: int, anchors: int, classes: int, *, dtype: type[np.floating] = np.float32
) -> np.ndarray:
    """`[images, anchors, 5 + classes]`: boxes in 640 px, a tenth of the scores above 0.25."""
    random = np.random.default_rng(anchors)
    boxes = random.uniform(1, 640, (images, anchors, 4))
    objectness = random.uniform(0.7, 1, (images, anchors, 1))
    scores = random.uniform(0, 0.25, (images, anchors, classes))
    scores[random.random(scores.shape) < 0.1 / classes] += 0.5
    return np.concatenate([boxes, objectness, scores], axis=2).astype(dtype)


def not_finite() -> np.ndarray:
    """NaN and infinity in scores and boxes, of anchors above the threshold and below it."""
    head = np.full((2, 64, 15), 0.75, np.float32)
    head[0, 20:, 4] = 0.1
    head[0, 1, 8] = head[0, 2, 5] = head[0, 3, 14] = head[0, 4, 4] = np.nan
    head[0, 5, 2] = head[0, 6, 0] = np.nan
    head[0, 7, 7] = head[0, 8, 3] = np.inf
    head[0, 9, 6] = -np.inf
    head[0, 30, 2] = head[0, 31, 9] = np.nan
    head[0, 32, 5:] = -np.inf
    head[0, 33, 5], head[0, 33, 4] = np.inf, 0
    head[0, 10, 0] = head[0, 10, 2] = np.inf
    return head
