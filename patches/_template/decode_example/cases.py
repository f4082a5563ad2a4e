"""Heads that matter to decode_example."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from trtpatch.verify import Case


def cases() -> Iterator[Case]:
    yield Case("80 classes", {"head": head(2, 300, 80)})
    yield Case("half precision", {"head": head(2, 35, 3, np.float16)})
    yield Case("one anchor, one class", {"head": head(1, 1, 1)})
    yield Case("no candidate", {"head": head(2, 35, 3)}, {"score_threshold": 1.0})
    yield Case("all pass", {"head": head(2, 35, 3)}, {"score_threshold": 0.0})
    equal = head(1, 35, 3)
    equal[..., 4:] = 0.25
    yield Case("equal to the threshold", {"head": equal})
    not_finite = head(1, 35, 3)
    not_finite[0, :10, 4] = 0.9
    not_finite[0, 3, 5] = not_finite[0, 4, 2] = np.nan
    not_finite[0, 5, 0], not_finite[0, 6, 6] = np.inf, -np.inf
    yield Case("not finite", {"head": not_finite})


def head(
    images: int, anchors: int, classes: int, dtype: type[np.floating] = np.float32
) -> np.ndarray:
    """`[images, anchors, 4 + classes]`: boxes anywhere, a few high scores."""
    random = np.random.default_rng(anchors)
    corner = random.uniform(0, 600, (images, anchors, 2))
    scores = random.random((images, anchors, classes)) ** 4
    return np.concatenate([corner, corner + 40, scores], axis=2).astype(dtype)
