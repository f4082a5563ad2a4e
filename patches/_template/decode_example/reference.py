"""What decode_example means, in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from trtpatch.candidates import append


def decode_example(args: Any) -> None:
    """Append the anchors whose best class scores above the threshold.

    `args.head` is `[N, A, 4 + C]`: x1 y1 x2 y2 in model px, then the scores of C classes.
    """
    for n in range(args.N):
        head = args.head[n].astype(np.float32)
        boxes, scores = head[:, :4], head[:, 4:]
        append(args, n, boxes=boxes, scores=scores.max(axis=1), classes=scores.argmax(axis=1))
