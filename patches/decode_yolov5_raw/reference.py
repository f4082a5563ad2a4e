"""Raw heads with anchor boxes to candidates, in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from trtpatch import heads
from trtpatch.candidates import append


def decode_yolov5_raw(args: Any) -> None:
    """Append the anchors for which objectness times the best class is above the threshold.

    A level of `args.head` is `[N, K * (5 + C), H, W]`: for each of K anchor boxes the logits of
    x, y, width, height, objectness and C classes. Of equal classes the lowest index is the best.
    An anchor whose objectness is not above the threshold is not looked at further.
    """
    maps = [np.repeat(size, args.K) for size in (args.H, args.W, args.P)]
    cells, strides = heads.grid(maps[0], maps[1], args.model_H // maps[0])
    anchors = np.repeat(np.float32(args.anchors).reshape(-1, 2), maps[2], axis=0)
    for n in range(args.N):
        head = np.concatenate(
            [
                level[n].reshape(args.K, 5 + args.C, -1).swapaxes(1, 2).reshape(-1, 5 + args.C)
                for level in args.head
            ]
        ).astype(np.float32)
        xy, wh = heads.sigmoid(head[:, :2]), head[:, 2:4]
        with np.errstate(invalid="ignore", over="ignore"):
            if args.form == "yolov3":
                centre, size = (xy + cells) * strides, np.exp(wh) * anchors
            else:
                centre = (xy * 2 + (cells - np.float32(0.5))) * strides
                size = np.square(heads.sigmoid(wh) * 2) * anchors
            objectness = heads.sigmoid(head[:, 4])
            scores = objectness * heads.sigmoid(head[:, 5:].max(axis=1))
        lost = objectness <= np.float32(args.score_threshold)
        append(
            args,
            n,
            boxes=heads.from_centres(centre, size),
            scores=np.where(lost, objectness, scores),
            classes=head[:, 5:].argmax(axis=1),
        )
