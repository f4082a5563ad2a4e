"""Candidates that matter to select_example."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from trtpatch.verify import Case
from trtpatch.verify.samples import candidates


def cases() -> Iterator[Case]:
    yield case("a few", [40])
    yield case("different counts", [0, 1, 33, 200])
    yield case("more than there is room for", [150, 2], max_detections=100)
    yield case("room for one", [30], max_detections=1)
    equal = case("equal scores", [200])
    equal.inputs["candidates_scores"][:] = 0.5
    yield equal


def case(name: str, counts: list[int], **params: int) -> Case:
    """So many candidates in each image, many with equal scores."""
    images = [some(count) for count in counts]
    return Case(name, candidates(*images, classes=80), params)


def some(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Boxes `[count, 4]` and scores `[count]`."""
    random = np.random.default_rng(count)
    corner = random.uniform(-50, 1000, (count, 2))
    boxes = np.concatenate([corner, corner + random.uniform(0, 400, (count, 2))], axis=1)
    return boxes, random.integers(1, 50, count) / 50
