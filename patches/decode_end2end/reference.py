"""Rows of an end-to-end head to candidates, in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from trtpatch.candidates import append


def decode_end2end(args: Any) -> None:
    """Append the rows of `args.head` that score above the threshold.

    It is `[N, A, D]`: x1 y1 x2 y2 in model px, score, class, and columns that are not looked at.
    """
    for n in range(args.N):
        head = args.head[n].astype(np.float32)
        is_class = (head[:, 5] >= 0) & (head[:, 5] < 2**31)
        boxes = np.where(is_class[:, None], head[:, :4], np.float32(np.nan))
        classes = np.where(is_class, head[:, 5], 0).astype(np.int32)
        append(args, n, boxes=boxes, scores=head[:, 4], classes=classes)
