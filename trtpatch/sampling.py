"""What the NumPy references share that look up a frame's pixels in maps of the model's picture.

sampling.cuh has the same for a GPU, rounding by rounding: bilinear, pixel centres at half, by the
geometry of the way in. The frame's border is repeated, not mixed with the padding.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, Any]
_HALF = np.float32(0.5)


class Axis(NamedTuple):
    """From frame pixels to cells of a map.

    Attributes:
        step: cells a pixel.
        origin: where the frame begins, in cells from the middle of the first.
        low, high: the first and the last cell that show the frame.
    """

    step: np.float32
    origin: np.float32
    low: int
    high: int

    def samples(self, first: int, count: int) -> tuple[Array, Array, Array]:
        """Between which cells the frame's pixels `first` to `first + count - 1` lie.

        Returns:
            Both cells, `[count]` int64 each, and the weight of the second, `[count]` float32.
        """
        pixels = np.arange(first, first + count).astype(np.float32)
        at = (pixels + _HALF) * self.step + self.origin
        at = at.clip(np.float32(self.low), np.float32(self.high))
        cells = at.astype(np.int64)
        return cells, np.minimum(cells + 1, self.high), at - cells.astype(np.float32)


def axes(args: Any, image: int) -> tuple[Axis, Axis]:
    """Across and down, for maps of `args.H` times `args.W` cells.

    Args:
        args: of a patch that takes the port `geometry`, and whose sizes are `H` and `W` of the map
            beside `model_H` and `model_W`.
        image: index in the batch.
    """
    scale_x, scale_y, left, top, width, height = args.geometry[image]
    return (
        _axis(scale_x, left, width, args.model_W, args.W),
        _axis(scale_y, top, height, args.model_H, args.H),
    )


def _axis(scale: np.float32, before: np.float32, size: np.float32, model: int, cells: int) -> Axis:
    ratio = np.float32(cells) / np.float32(model)
    begin, end = before * ratio, (size / scale + before) * ratio
    low = min(max(int(np.ceil(begin - _HALF)), 0), cells - 1)
    high = min(max(int(np.ceil(end - _HALF)) - 1, low), cells - 1)
    return Axis(ratio / scale, begin - _HALF, low, high)


def blend(first: Array, second: Array, weight: Array) -> Array:
    """The first at weight 0, the second at weight 1; float32 arrays that broadcast."""
    with np.errstate(invalid="ignore"):
        blended: Array = first + (second - first) * weight
    return blended
