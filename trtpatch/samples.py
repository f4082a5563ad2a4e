"""Ports filled with values of no meaning, for the cases of patches that take them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def detections(
    counts: Sequence[int], *, anchors: int, frame: tuple[int, int] = (480, 640), room: int = 20
) -> dict[str, Array]:
    """The detections port with boxes anywhere in a frame.

    What is past an image's count is as patches leave it, and would be seen if it were read.

    Args:
        counts: detections of each image.
        anchors: how many there are to come from.
        frame: height and width in pixels.
        room: places an image.
    """
    random = np.random.default_rng([*counts, anchors])
    images = len(counts)
    corners = np.sort(random.uniform(0, 1, (images, room, 2, 2)), axis=2) * frame[::-1]
    port = {
        "boxes": corners.reshape(images, room, 4).astype(np.float32),
        "scores": np.sort(random.uniform(0, 1, (images, room)).astype(np.float32))[:, ::-1],
        "classes": random.integers(0, 80, (images, room)).astype(np.int32),
        "anchors": random.integers(0, anchors, (images, room)).astype(np.int32),
        "count": np.array(counts, np.int32),
        "counters": np.tile(np.array(counts, np.int32)[:, None], (1, 5)),
    }
    for n, count in enumerate(counts):
        for name in ("boxes", "scores", "classes", "anchors"):
            port[name][n, count:] = -1 if name == "anchors" else 0
    return {f"detections_{name}": array for name, array in port.items()}
