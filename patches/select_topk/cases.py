"""Candidates that matter to select_topk."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from trtpatch.verify import Case


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
    several.inputs["candidates_anchors"][:] %= 30
    several.inputs["candidates_classes"][0, :90] = np.arange(90) % 3
    several.inputs["candidates_anchors"][0, :90] = np.arange(90) // 3
    yield several
    signs = case("zeros of both signs, negative scores", [64])
    signs.inputs["candidates_scores"][0, :64] = np.tile(np.float32([0.0, -0.0, -1.0, 1.0]), 16)
    yield signs


def case(name: str, counts: list[int], **params: int) -> Case:
    """Candidates in a shuffled order, many with equal scores; free rows would be seen if read."""
    random = np.random.default_rng(sum(counts))
    images, room = len(counts), max(counts) + 3
    corner = random.uniform(-50, 1000, (images, room, 2))
    inputs = {
        "candidates_boxes": np.concatenate(
            [corner, corner + random.uniform(0, 400, (images, room, 2))], axis=2
        ).astype(np.float32),
        "candidates_scores": np.full((images, room), 77, np.float32),
        "candidates_classes": random.integers(0, 80, (images, room)).astype(np.int32),
        "candidates_anchors": np.full((images, room), 7777, np.int32),
        "candidates_count": np.int32(counts),
        "candidates_nans": np.arange(images, dtype=np.int32),
        "geometry": np.tile(np.float32([1.7, 1.3, 3, 5, 1000, 700]), (images, 1)),
    }
    for n, count in enumerate(counts):
        inputs["candidates_scores"][n, :count] = random.integers(1, 50, count) / 50
        inputs["candidates_anchors"][n, :count] = random.permutation(count) + 100
    return Case(name, inputs, params)
