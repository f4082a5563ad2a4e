"""Candidates that matter to select_topk."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from trtpatch.verify import Case
from trtpatch.verify.samples import candidates


def cases() -> Iterator[Case]:
    yield case("a few", [40])
    yield case("different counts", [0, 1, 33, 300, 7, 0, 299])
    yield case("more than there is room for", [700, 2], max_detections=300)
    yield case("room for one", [100], max_detections=1)
    yield case("no limit", [700], max_detections=2**63 - 1)
    yield case("no candidate", [0, 0])
    equal = case("equal scores", [300])
    equal.inputs["candidates_scores"][:] = 0.5
    yield equal
    several = case("several classes an anchor", [90])
    several.inputs["candidates_scores"][:] = 0.5
    several.inputs["candidates_classes"][0, :90] = np.arange(90) % 3
    several.inputs["candidates_anchors"][0, :90] = np.arange(90) // 3
    yield several
    signs = case("zeros of both signs, negative scores", [64])
    signs.inputs["candidates_scores"][0, :64] = np.tile(np.float32([0.0, -0.0, -1.0, 1.0]), 16)
    yield signs


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
