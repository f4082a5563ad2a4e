"""Masks of YOLO-seg models as their authors' own code finds them, with OpenCV."""

from __future__ import annotations

import cv2
import numpy as np


def logits_in_frame(protos: np.ndarray, coefficients: np.ndarray, frame: tuple[int, int]):
    """`[M, *frame]`: the padding cut off the prototypes' frame, then resized to the frame.

    The steps of `process_mask_native` in ultralytics 8.4: coefficients times prototypes, centred
    padding rounded to whole prototypes, bilinear with pixel centres at half.

    Args:
        protos: `[K, h, w]`.
        coefficients: `[M, K]`.
        frame: height and width in pixels.
    """
    k, h, w = protos.shape
    logits = (coefficients @ protos.reshape(k, -1)).reshape(-1, h, w)
    gain = min(h / frame[0], w / frame[1])
    top, left = (h - frame[0] * gain) / 2, (w - frame[1] * gain) / 2
    rows = slice(round(top - 0.1), h - round(top + 0.1))
    columns = slice(round(left - 0.1), w - round(left + 0.1))
    return np.stack(
        [cv2.resize(one[rows, columns], frame[::-1], interpolation=cv2.INTER_LINEAR)
         for one in logits]
    )  # fmt: skip


def inside(boxes: np.ndarray, frame: tuple[int, int]) -> np.ndarray:
    """`[M, *frame]` bool: pixels x1 <= x < x2, y1 <= y < y2 of each box."""
    y, x = np.mgrid[: frame[0], : frame[1]]
    x1, y1, x2, y2 = boxes.T[:, :, None, None]
    return (x >= x1) & (x < x2) & (y >= y1) & (y < y2)
