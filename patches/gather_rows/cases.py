"""Heads and detections that matter to gather_rows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from trtpatch.verify import Case
from trtpatch.verify.samples import detections


def cases() -> Iterator[Case]:
    yield case("32 of 36 columns", [3, 0, 20], 36, 350)
    yield case("all columns", [5], 17, 33, K=17)
    yield case("one column", [1, 7], 9, 5, K=1)
    yield case("float16", [20, 20], 50, 35, dtype=np.float16)
    yield case("one anchor", [1], 32, 1)


def case(
    name: str,
    counts: list[int],
    columns: int,
    anchors: int,
    *,
    dtype: type[np.floating] = np.float32,
    **params: int,
) -> Case:
    """Detections of so many anchors of each image, in room for 20."""
    random = np.random.default_rng(anchors)
    head = random.normal(0, 1, (len(counts), anchors, columns)).astype(dtype)
    return Case(name, {**detections(counts, anchors=anchors), "head": head}, params)
