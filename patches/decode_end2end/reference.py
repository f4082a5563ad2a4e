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
        append(args, n, boxes=head[:, :4], scores=head[:, 4], classes=head[:, 5].astype(np.int32))
