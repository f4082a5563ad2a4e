"""The columns of raw maps of each level, in NumPy."""

from __future__ import annotations

from typing import Any

from trtpatch import heads


def gather_levels(args: Any) -> None:
    """Bring the K values of `args.maps`, `[N, K, H, W]` a level, for each detection.

    Anchors count level after level, the largest first, row after row. Writes `args.columns`
    `[N, M, K]`, rows in the order of the detections, zeros past their count.
    """
    args.columns[...] = 0
    for n, count in enumerate(args.detections_count):
        rows = heads.rows(args.maps, n)
        args.columns[n, :count] = rows[args.detections_anchors[n, :count]]
