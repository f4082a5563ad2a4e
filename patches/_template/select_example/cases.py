"""Candidates that matter to select_example."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from trtpatch.verify import Case


def cases() -> Iterator[Case]:
    yield case("a few", [40])
    yield case("different counts", [0, 1, 33, 200])
    yield case("more than there is room for", [150, 2], max_detections=100)
    yield case("room for one", [30], max_detections=1)
    equal = case("equal scores", [200])
    equal.inputs["candidates_scores"][:] = 0.5
    yield equal


def case(name: str, counts: list[int], **params: int) -> Case:
    """Candidates in a shuffled order; what is past a count would be seen if it were read."""
    random = np.random.default_rng(sum(counts))
    images, room = len(counts), max(counts) + 3
    corner = random.uniform(-50, 1000, (images, room, 2))
    size = random.uniform(0, 400, (images, room, 2))
    inputs = {
        "candidates_boxes": np.concatenate([corner, corner + size], axis=2).astype(np.float32),
        "candidates_scores": np.full((images, room), 77, np.float32),
        "candidates_classes": random.integers(0, 80, (images, room)).astype(np.int32),
        "candidates_anchors": np.full((images, room), 7777, np.int32),
        "candidates_count": np.int32(counts),
        "candidates_nans": np.arange(images, dtype=np.int32),
        "geometry": np.tile(np.float32([1.7, 1.3, 3, 5, 1000, 700]), (images, 1)),
    }
    for n, count in enumerate(counts):
        inputs["candidates_scores"][n, :count] = random.integers(1, 50, count) / 50
        inputs["candidates_anchors"][n, :count] = random.permutation(count)
    return Case(name, inputs, params)
