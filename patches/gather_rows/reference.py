"""The last columns of a head, anchors by columns, in NumPy."""

from __future__ import annotations

from typing import Any


def gather_rows(args: Any) -> None:
    """Bring the last K of the D columns of `args.head` `[N, A, D]` for each detection.

    Writes `args.columns` `[N, M, K]`, rows in the order of the detections, zeros past their count.
    """
    args.columns[...] = 0
    for n, count in enumerate(args.detections_count):
        anchors = args.detections_anchors[n, :count]
        args.columns[n, :count] = args.head[n, anchors, -args.K :]
