"""Masks of YOLO-seg models, in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from trtpatch.sampling import Axis, axes, blend


def mask_yolo(args: Any) -> None:
    """Find the pixels of the best detections; see patch.yaml for the parameters.

    An object's logits are its row of `args.columns` `[N, M, K]` times `args.protos` `[N, K, H, W]`.
    They are interpolated to the frame's pixels and kept inside the object's box. Writes the port
    `masks`: one bit a pixel, as many masks as there is room for.
    """
    args.masks_boxes[...] = 0
    args.masks_starts[...] = 0
    for n in range(args.N):
        across, down = axes(args, n)
        kept = used = 0
        for row in range(min(int(args.detections_count[n]), args.B)):
            box = crop(args.detections_boxes[n, row])
            part = box
            if args.whole:
                part = np.array([0, 0, *args.geometry[n, 4:6]], np.int64)
            pitch, height = -(-int(part[2]) // 32), int(part[3])
            if used + pitch * height > args.R:
                break
            bits = np.zeros((height, pitch * 32), bool)
            if box[2:].all():
                x, y = box[:2] - part[:2]
                inside = above_threshold(args, n, row, box, across, down)
                bits[y : y + box[3], x : x + box[2]] = inside
            words = np.packbits(bits, axis=1, bitorder="little").view("<u4")
            args.masks_words[n, used : used + words.size] = words.ravel()
            args.masks_boxes[n, row] = part
            args.masks_starts[n, row] = used
            kept, used = row + 1, used + words.size
        args.masks_count[n] = kept
        args.masks_used[n] = used


def crop(box: np.ndarray) -> np.ndarray:
    """x, y, width and height of the pixels whose left upper corners lie in a box."""
    corners = np.ceil(box).astype(np.int64)
    return np.concatenate([corners[:2], np.maximum(corners[2:] - corners[:2], 0)])


def above_threshold(
    args: Any, n: int, row: int, box: np.ndarray, across: Axis, down: Axis
) -> np.ndarray:
    """`[height, width]` bool: which pixels of the box are the object's."""
    protos = args.protos[n].astype(np.float32)
    logits = np.zeros(protos.shape[1:], np.float32)
    for coefficient, proto in zip(args.columns[n, row], protos, strict=True):
        logits = logits + coefficient * proto
    x, y, width, height = box.tolist()
    upper, lower, weight = down.samples(y, height)
    rows = blend(logits[upper], logits[lower], weight[:, None])
    left, right, weight = across.samples(x, width)
    return blend(rows[:, left], rows[:, right], weight) > np.float32(args.mask_threshold)
