"""What count_example means, in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np


def count_example(args: Any) -> None:
    """Count the kept objects of each class."""
    for n in range(args.N):
        labels = args.detections_classes[n, : args.detections_count[n]]
        known = labels[(labels >= 0) & (labels < args.classes)]
        args.class_counts[n] = np.bincount(known, minlength=args.classes)
