"""CenterFace heads to candidates, in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from trtpatch.candidates import append


def decode_centerface(args: Any) -> None:
    """Append the cells of `args.heatmap` `[N, 1, H, W]` that score above the threshold.

    `args.scale` and `args.offset`, both `[N, 2, H, W]` y x in cells, hold the logarithm of a
    face's height and width, and how far its centre lies from the cell's middle.
    """
    cells = np.mgrid[: args.H, : args.W].reshape(2, args.A).astype(np.float32)
    stride, middle = np.float32(args.stride), np.float32(0.5)
    for n in range(args.N):
        heatmap, scale, offset = (
            tensor[n].reshape(-1, args.A).astype(np.float32)
            for tensor in (args.heatmap, args.scale, args.offset)
        )
        with np.errstate(invalid="ignore", over="ignore"):
            centre = (cells + offset + middle) * stride
            half = np.exp(scale) * stride * np.float32(0.5)
            corners = (*(centre - half)[::-1], *(centre + half)[::-1])
        classes = np.zeros(args.A, np.int32)
        append(args, n, boxes=np.stack(corners, axis=1), scores=heatmap[0], classes=classes)
