"""CenterFace heads to candidates, in NumPy."""

from typing import Any

import numpy as np


def decode_centerface(args: Any) -> None:
    """Keep every cell whose score is above the threshold, in the order of the cells."""
    for image in range(args.N):
        score, scale, offset = (
            tensor[image].reshape(-1, args.A).astype(np.float32)
            for tensor in (args.heatmap, args.scale, args.offset)
        )
        kept = np.flatnonzero(score[0] > args.score_threshold)
        centre = np.stack((kept % args.W, kept // args.W)).astype(np.float32)
        centre = (centre + offset[::-1, kept] + np.float32(0.5)) * np.float32(args.stride)
        half = np.exp(scale[::-1, kept]) * np.float32(args.stride) * np.float32(0.5)
        boxes = np.concatenate((centre - half, centre + half)).T
        whole = ~np.isnan(boxes).any(axis=1)
        count = int(whole.sum())
        args.candidates_boxes[image, :count] = boxes[whole]
        args.candidates_scores[image, :count] = score[0, kept[whole]]
        args.candidates_classes[image, :count] = 0
        args.candidates_anchors[image, :count] = kept[whole]
        args.candidates_count[image] = count
        args.candidates_nans[image] = len(kept) - count + int(np.isnan(score).sum())
