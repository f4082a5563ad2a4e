"""Raw YOLOX head to candidates, in NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from trtpatch.candidates import append


def decode_yolox(args: Any) -> None:
    """Append the anchors for which objectness times the best class is above the threshold.

    `args.head` is `[N, A, 5 + C]`: x y in cells from the cell's corner, w h as logarithms of sizes
    in strides, objectness, class scores. Of equal classes the lowest index is the best.
    """
    cells, strides = grid(args.model_H, args.model_W, args.strides)
    for n in range(args.N):
        head = args.head[n].astype(np.float32)
        with np.errstate(invalid="ignore", over="ignore"):
            centre = (head[:, :2] + cells) * strides
            half = np.exp(head[:, 2:4]) * strides * np.float32(0.5)
            boxes = np.concatenate([centre - half, centre + half], axis=1)
            scores = head[:, 4] * head[:, 5:].max(axis=1)
        append(args, n, boxes=boxes, scores=scores, classes=head[:, 5:].argmax(axis=1))


def grid(height: int, width: int, strides: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """Each anchor's cell, `[A, 2]` x y in cells, and its stride, `[A, 1]` px; float32."""
    cells, sizes = [], []
    for stride in strides:
        y, x = np.mgrid[: height // stride, : width // stride]
        cells.append(np.stack([x.ravel(), y.ravel()], axis=1))
        sizes.append(np.full((x.size, 1), stride))
    return np.float32(np.concatenate(cells)), np.float32(np.concatenate(sizes))
