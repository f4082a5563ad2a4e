"""The best candidates as they are, in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from trtpatch.candidates import give_detections, in_order


def select_topk(args: Any) -> None:
    """Give the candidates with the highest scores, equal ones by anchor and then class.

    Reads the candidates port (boxes in model px) and the geometry; writes the detections port
    (boxes in frame px, clipped to the frame).
    """
    for n in range(args.N):
        count = min(int(args.candidates_count[n]), args.A)
        best = in_order(args, n, np.arange(count))[: min(args.max_detections, args.M)]
        give_detections(args, n, best, candidates=count, dropped_max=count - len(best))
