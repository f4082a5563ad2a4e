"""DETR-like heads to candidates, in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from trtpatch import heads
from trtpatch.candidates import append


def decode_detr(args: Any) -> None:
    """Append the pairs of query and class that score above the threshold; anchor q * C + c.

    `args.logits` is `[N, Q, C]`, `args.boxes` `[N, Q, 4]` cx cy w h as parts of the model's
    picture.
    """
    size = np.float32([args.model_W, args.model_H] * 2)
    for n in range(args.N):
        parts = args.boxes[n].astype(np.float32)
        append(
            args,
            n,
            boxes=np.repeat(heads.from_centres(parts[:, :2], parts[:, 2:]) * size, args.C, axis=0),
            scores=heads.sigmoid(args.logits[n].astype(np.float32)).ravel(),
            classes=np.tile(np.arange(args.C), args.Q),
        )
