"""Logits that matter to classify_topk."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from trtpatch.verify import Case


def cases() -> Iterator[Case]:
    yield Case("1000 classes", {"logits": logits(2, 1000)})
    for dtype in (np.float32, np.float16):
        name = np.dtype(dtype).name
        yield Case(f"35 classes, {name}", {"logits": logits(3, 35, dtype)})
        yield Case(f"sigmoid, {name}", {"logits": logits(1, 600, dtype)}, {"activation": "sigmoid"})
    scores = np.abs(logits(2, 80))
    yield Case("scores as they are", {"logits": scores}, {"activation": "none", "top": 3})
    yield Case("two classes", {"logits": logits(1, 2)})
    yield Case("the best alone", {"logits": logits(2, 35)}, {"top": 1})
    yield Case("one class", {"logits": logits(4, 1)})
    yield Case("all classes in order", {"logits": logits(2, 300)}, {"top": 300})
    yield Case("equal logits", {"logits": np.ones((2, 40), np.float32)}, {"top": 7})
    few = np.float16(np.random.default_rng(0).integers(0, 3, (3, 500)))
    yield Case("many equal logits", {"logits": few}, {"top": 20})
    yield Case("large logits", {"logits": logits(1, 50) * 1e4})
    special = logits(5, 20)
    special[0, 3] = special[1, :] = np.nan
    special[2, 4] = special[3, 5] = np.inf
    special[3, 6] = np.inf
    special[4, 7:] = -np.inf
    special[4, 9] = np.nan
    for activation in ("softmax", "sigmoid", "none"):
        params = {"activation": activation, "top": 20}
        yield Case(f"not finite, {activation}", {"logits": special}, params)


def logits(images: int, classes: int, dtype: type[np.floating] = np.float32) -> np.ndarray:
    """`[images, classes]`, of order one."""
    return np.random.default_rng(classes).normal(0, 3, (images, classes)).astype(dtype)
