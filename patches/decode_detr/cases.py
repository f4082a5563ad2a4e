"""Heads that matter to decode_detr."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from trtpatch.verify import Case

MODEL = {"model": (480, 640)}


def cases() -> Iterator[Case]:
    yield Case("300 queries, 80 classes", queries(1, 300, 80), {}, MODEL)
    for dtype in (np.float32, np.float16):
        name = np.dtype(dtype).name
        yield Case(f"a batch, {name}", queries(7, 35, 3, dtype), {}, MODEL)
        yield Case(f"one query, one class, {name}", queries(2, 1, 1, dtype), {}, MODEL)
    small = queries(2, 35, 3)
    yield Case("no candidate", small, {"score_threshold": 1.0}, MODEL)
    yield Case("all pass", small, {"score_threshold": 0.0}, MODEL)
    zeros = {name: array * 0 for name, array in small.items()}
    yield Case("at the threshold", zeros, {"score_threshold": 0.5}, MODEL)
    not_finite = queries(2, 35, 3)
    logits, boxes = not_finite["logits"], not_finite["boxes"]
    logits[0, :10], logits[0, 10:] = 2.0, -4.0
    logits[0, 1, 1] = boxes[0, 2, 2] = logits[0, 12, 0] = boxes[0, 13] = np.nan
    logits[0, 14, 2] = boxes[0, 3, 3] = np.inf
    logits[0, 4] = -np.inf
    yield Case("not finite", not_finite, {}, MODEL)


def queries(
    images: int, count: int, classes: int, dtype: type[np.floating] = np.float32
) -> dict[str, np.ndarray]:
    """Logits and boxes; some queries score high under several classes."""
    random = np.random.default_rng(count)
    centre = random.uniform(0, 1, (images, count, 2))
    size = random.uniform(0, 0.5, (images, count, 2))
    logits = random.normal(-5, 2, (images, count, classes))
    logits[random.random(logits.shape) < 0.02] += 6
    boxes = np.concatenate([centre, size], axis=2)
    return {"logits": logits.astype(dtype), "boxes": boxes.astype(dtype)}
