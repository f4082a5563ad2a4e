"""SSD heads to candidates, in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from trtpatch import heads
from trtpatch.candidates import append


def decode_ssd(args: Any) -> None:
    """Append the anchors whose best class but the background scores above the threshold.

    `args.scores` is `[N, A, 1 + C]`, the background first; `args.boxes` `[N, A, 4]` offsets of
    centre x, centre y, width, height from the prior boxes, or corners in 0 to 1. Of equal classes
    the lowest index is the best.
    """
    centres, sizes = priors(args)
    for n in range(args.N):
        scores, boxes = args.scores[n, :, 1:].astype(np.float32), args.boxes[n].astype(np.float32)
        offsets = boxes * np.repeat(np.float32(args.variances), 2)
        with np.errstate(invalid="ignore", over="ignore"):
            centre, size = offsets[:, :2] * sizes + centres, np.exp(offsets[:, 2:]) * sizes
            corners = boxes * np.float32([args.model_W, args.model_H] * 2)
        append(
            args,
            n,
            boxes=corners if args.decoded else heads.from_centres(centre, size),
            scores=scores.max(axis=1),
            classes=scores.argmax(axis=1),
        )


def priors(args: Any) -> tuple[np.ndarray, np.ndarray]:
    """Centre and size of each prior box, `[A, 2]` float32 each, x y in model px."""
    model = np.float32([args.model_W, args.model_H])
    shapes = iter(np.float32(args.priors).reshape(-1, 2))
    centres, sizes = [], []
    for stride, count in zip(args.strides, args.priors_a_cell, strict=True):
        height, width = -(-args.model_H // stride), -(-args.model_W // stride)
        cells, _ = heads.grid([height], [width], [stride])
        points = (cells + np.float32(0.5)) * (model / np.float32([width, height]))
        centres.append(np.repeat(points, count, axis=0))
        sizes.append(np.tile([next(shapes) for _ in range(count)], (len(points), 1)))
    centre, size = np.concatenate(centres), np.concatenate(sizes)
    return (np.minimum(centre, model), np.minimum(size, model)) if args.clip else (centre, size)
