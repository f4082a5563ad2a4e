"""What resize_example means, in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np


def resize_example(args: Any) -> None:
    """Stretch each frame to the model's input, and say how to come back.

    `args.frame_images` are N pictures `[height, width, 3]` uint8; `args.image` is `[N, 3, H, W]`.
    """
    for n, pixels in enumerate(args.frame_images):
        height, width = pixels.shape[:2]
        if not height:  # a place of the batch that holds no frame
            args.image[n] = 0
            args.geometry[n] = 1, 1, 0, 0, 0, 0
            continue
        rows = np.arange(args.H) * height // args.H
        columns = np.arange(args.W) * width // args.W
        picture = pixels[rows[:, None], columns].transpose(2, 0, 1).astype(np.float32)
        if (args.frame_layout == "bgr") != (args.color == "bgr"):
            picture = picture[::-1]
        args.image[n] = picture * np.float32(args.scale)
        scale = np.float32(width) / np.float32(args.W), np.float32(height) / np.float32(args.H)
        args.geometry[n] = *scale, 0, 0, width, height
