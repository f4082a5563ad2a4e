"""Key points of YuNet's heads, in NumPy."""

from __future__ import annotations

from typing import Any

from trtpatch import heads


def keypoints_yunet(args: Any) -> None:
    """Bring the key points of each detection's anchor to frame pixels.

    A level of `args.points` is `[N, P, 2 * J]`, x y of each point in strides from the cell's
    corner. Writes `args.keypoints` `[N, M, J, 3]`: x y in frame px and 1, zeros past the count.
    """
    heights, widths = ([m // s for s in args.strides] for m in (args.model_H, args.model_W))
    cells, strides = heads.grid(heights, widths, args.strides)
    args.keypoints[...] = 0
    for n, count in enumerate(args.detections_count):
        anchors = args.detections_anchors[n, :count]
        raw = heads.rows(args.points, n)[anchors].reshape(count, args.J, 2)
        points = (raw + cells[anchors, None]) * strides[anchors, None]
        corner, scale = args.geometry[n, 2:4], args.geometry[n, :2]
        args.keypoints[n, :count, :, :2] = (points - corner) * scale
        args.keypoints[n, :count, :, 2] = 1
