"""Key points of YOLO-pose models, in NumPy."""

from __future__ import annotations

from typing import Any


def points_yolo(args: Any) -> None:
    """Bring the key points of each detection to frame pixels.

    A row of `args.columns` `[N, M, K]` has J points of V values: x y in model px and, where V is 3,
    a confidence. Writes `args.keypoints` `[N, M, J, 3]`: x y in frame px and the confidence, else
    1; zeros past the count.
    """
    args.keypoints[...] = 0
    for n, count in enumerate(args.detections_count):
        points = args.columns[n, :count].reshape(count, args.J, args.V)
        corner, scale = args.geometry[n, 2:4], args.geometry[n, :2]
        args.keypoints[n, :count, :, :2] = (points[..., :2] - corner) * scale
        args.keypoints[n, :count, :, 2] = points[..., 2] if args.V == 3 else 1
