"""Inputs that matter to `decode_centerface`."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import DTypeLike, NDArray

from trtpatch.verify import Case


def cases() -> Iterator[Case]:
    """The cases of every decode patch, for three small maps."""
    yield Case("one image", heads(1, 24, 40))
    yield Case("a batch", heads(3, 9, 31))
    yield Case("half precision", heads(2, 8, 16, np.float16))
    yield Case("nothing found", heads(1, 8, 8), {"score_threshold": 1.0})
    yield Case("every cell found", heads(2, 16, 16), {"score_threshold": 0.0})
    for stride in (1, 8):
        yield Case(f"stride {stride}", heads(1, 8, 8), {"stride": stride})
    yield Case("equal to the threshold", filled(heatmap=0.5), {"score_threshold": 0.5})
    yield Case("no area, and past the picture", filled(scale=-200.0, offset=-50.0))
    for name in ("heatmap", "scale", "offset"):
        inputs = heads(2, 8, 8)
        inputs["heatmap"][1, 0, 3, 5] = 0.9
        inputs[name][1, -1, 3, 5] = np.nan
        yield Case(f"NaN in {name}", inputs)


def heads(
    images: int, height: int, width: int, dtype: DTypeLike = np.float32
) -> dict[str, NDArray[np.floating]]:
    """Heads with values as a trained model gives them."""
    random = np.random.default_rng(0)
    return {
        "heatmap": random.random((images, 1, height, width)).astype(dtype),
        "scale": random.uniform(0.5, 4.5, (images, 2, height, width)).astype(dtype),
        "offset": random.uniform(-0.6, 0.6, (images, 2, height, width)).astype(dtype),
    }


def filled(**values: float) -> dict[str, NDArray[np.floating]]:
    """Heads of one 4 x 4 map, those that are named filled with a value."""
    inputs = heads(1, 4, 4)
    for name, value in values.items():
        inputs[name][...] = value
    return inputs
