"""Scores of a classifier and its best classes, in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from trtpatch import heads


def classify_topk(args: Any) -> None:
    """Rank the classes of each picture by their logits `args.logits` `[N, C]`.

    Writes the port `classification`: the K best, equal ones by number; what is not a number ranks
    as -infinity.
    """
    logits = args.logits.astype(np.float32)
    ranked = np.where(np.isnan(logits), -np.inf, logits)
    order = np.argsort(-ranked, axis=1, kind="stable")[:, : args.K]
    scores = logits
    if args.activation == "softmax":
        with np.errstate(invalid="ignore"):
            largest = np.take_along_axis(logits, order[:, :1], axis=1)
            scores = np.exp(logits - largest)
            scores = scores / scores.sum(axis=1, keepdims=True)
    elif args.activation == "sigmoid":
        scores = heads.sigmoid(logits)
    args.classification_classes[...] = order
    args.classification_scores[...] = np.take_along_axis(scores, order, axis=1)
