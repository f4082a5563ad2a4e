"""The best class of each pixel, in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from trtpatch.sampling import axes, blend


def segment_argmax(args: Any) -> None:
    """Find the class with the largest of the logits `args.logits` `[N, C, H, W]`.

    With `size: frame` they are interpolated to the frame's pixels first. Writes the port
    `segmentation`: of equal classes the lowest; with one map alone, whether it is above
    `args.threshold`; nothing where there is not room for the whole frame.
    """
    for n in range(args.N):
        width, height = args.geometry[n, 4:].astype(int).tolist()
        if args.size == "head" and width:
            height, width = args.H, args.W
        fits = height * width <= args.R
        args.segmentation_sizes[n] = height, width
        args.segmentation_used[n] = height * width * fits
        if not fits:
            continue
        logits = args.logits[n].astype(np.float32)
        if args.size == "frame":
            across, down = axes(args, n)
            first, second, weight = down.samples(0, height)
            logits = blend(logits[:, first], logits[:, second], weight[:, None])
            first, second, weight = across.samples(0, width)
            logits = blend(logits[..., first], logits[..., second], weight)
        logits[np.isnan(logits)] = -np.inf
        best = logits[0] > args.threshold if args.C == 1 else logits.argmax(axis=0)
        args.segmentation_classes[n, : height * width] = best[:height, :width].ravel()
