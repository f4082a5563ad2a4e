"""Key points of YOLO-pose models, in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from trtpatch import heads


def points_yolo(args: Any) -> None:
    """Bring the key points of each detection to frame pixels.

    A row of `args.columns` `[N, M, K]` has J points of V values: x y in model px and, where V is 3,
    a confidence; or, where there are `args.strides`, x y in halves of a cell from the anchor's
    corner, and a logit. Writes `args.keypoints` `[N, M, J, 3]`: x y in frame px and the confidence,
    else 1; zeros past the count.
    """
    args.keypoints[...] = 0
    sizes = [[size // stride for stride in args.strides] for size in (args.model_H, args.model_W)]
    cells, strides = heads.grid(*sizes, args.strides) if args.strides else (None, None)
    for n, count in enumerate(args.detections_count):
        points = args.columns[n, :count].reshape(count, args.J, args.V)
        if args.strides:
            anchors = args.detections_anchors[n, :count, None]
            points = points.copy()
            points[..., :2] = (points[..., :2] * np.float32(2) + cells[anchors]) * strides[anchors]
            points[..., 2:] = heads.sigmoid(points[..., 2:])
        corner, scale = args.geometry[n, 2:4], args.geometry[n, :2]
        args.keypoints[n, :count, :, :2] = (points[..., :2] - corner) * scale
        args.keypoints[n, :count, :, 2] = points[..., 2] if args.V == 3 else 1
