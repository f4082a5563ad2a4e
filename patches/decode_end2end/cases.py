"""Heads that matter to decode_end2end."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from trtpatch.verify import Case


def cases() -> Iterator[Case]:
    for dtype in (np.float32, np.float16):
        name = np.dtype(dtype).name
        yield Case(f"300 rows, {name}", {"head": head(2, 300, dtype)})
        yield Case(f"35 rows, {name}", {"head": head(7, 35, dtype)})
        yield Case(f"one row, {name}", {"head": head(1, 1, dtype)})
    further = np.concatenate([head(2, 35), np.full((2, 35, 32), 9, np.float32)], axis=2)
    yield Case("32 further columns", {"head": further})
    yield Case("no candidate", {"head": head(2, 35)}, {"score_threshold": 1.0})
    yield Case("all pass", {"head": head(2, 35)}, {"score_threshold": 0.0})
    at_threshold = head(2, 35)
    at_threshold[..., 4] = 0.25
    yield Case("at the threshold", {"head": at_threshold})
    not_finite = head(2, 35)
    not_finite[0, :20, 4] = 0.9
    not_finite[0, 20:, 4] = 0.1
    not_finite[0, 3, 4] = not_finite[0, 4, 0] = not_finite[0, 5, 3] = np.nan
    not_finite[0, 6, 1] = np.inf
    not_finite[0, 25, 4] = not_finite[0, 26, 0] = np.nan
    yield Case("not finite", {"head": not_finite})
    no_class = head(2, 35)
    no_class[0, :5, 4] = 0.9
    no_class[0, :5, 5] = [np.nan, np.inf, -np.inf, -1, 3e9]
    yield Case("classes that are none", {"head": no_class})


def head(images: int, rows: int, dtype: type[np.floating] = np.float32) -> np.ndarray:
    """`[images, rows, 6]`, the highest score first."""
    random = np.random.default_rng(rows)
    corner = random.uniform(0, 600, (images, rows, 2))
    scores = -np.sort(-random.uniform(0, 1, (images, rows, 1)), axis=1)
    classes = random.integers(0, 80, (images, rows, 1))
    return np.concatenate([corner, corner + 40, scores, classes], axis=2).astype(dtype)
