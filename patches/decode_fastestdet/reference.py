"""FastestDet head to candidates, in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from trtpatch import heads
from trtpatch.candidates import append


def decode_fastestdet(args: Any) -> None:
    """Append the anchors for which objectness^0.6 * best class^0.4 is above the threshold.

    A level of `args.head` is `[N, 5 + C, H, W]`: objectness, raw centre x, centre y, width, height,
    class scores. Of equal classes the lowest index is the best.
    """
    cells, strides = heads.grid(args.H, args.W, [args.model_H // height for height in args.H])
    model = np.float32([args.model_W, args.model_H])
    for n in range(args.N):
        head = heads.rows(args.head, n)
        with np.errstate(invalid="ignore"):
            scores = head[:, 0] ** np.float32(0.6) * head[:, 5:].max(axis=1) ** np.float32(0.4)
        centre, size = (
            (cells + np.tanh(head[:, 1:3])) * strides,
            heads.sigmoid(head[:, 3:5]) * model,
        )
        append(
            args,
            n,
            boxes=heads.from_centres(centre, size),
            scores=scores,
            classes=head[:, 5:].argmax(axis=1),
        )
