"""Results drawn on the pictures that they are of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from PIL.Image import Image

    from trtpatch.detections import Detections
    from trtpatch.labels import Classification, Segmentation

Array = np.ndarray[Any, Any]

_LINES_IN_HEIGHT = 36
_MAX_FONT_PX = 48
_TINT = 0.45
"""Part of the color in a pixel that is tinted."""


def draw(pixels: Array, found: Detections | Classification | Segmentation) -> Image:
    """Draw every object's box, name and score, and tint its mask; what scores best lies on top.

    Args:
        pixels: `[H, W, 3]` uint8 RGB, the picture that was looked at.
        found: what is in it. A classification gets the name of its best class; of a segmentation,
            each class its tint.
    """
    from PIL import Image

    from trtpatch.detections import Detections
    from trtpatch.labels import Classification

    if isinstance(found, Detections):
        picture = Image.fromarray(_tint_objects(pixels, found))
        boxes = found.boxes.tolist()
        _outline(picture, boxes, found.labels.tolist())
        _write_names(picture, boxes, found)
        return picture
    if isinstance(found, Classification):
        picture = Image.fromarray(pixels)
        _write_names(picture, [(0.0, 0.0, 0.0, 0.0)], found)
        return picture
    return Image.fromarray(_tint_classes(pixels, found))


def _line(picture: Image) -> int:
    return max(2, _font_px(picture) // 6)


def _font_px(picture: Image) -> int:
    return max(11, min(_MAX_FONT_PX, min(picture.size) // _LINES_IN_HEIGHT))


def _outline(picture: Image, boxes: Sequence[Sequence[float]], labels: Sequence[int]) -> None:
    from PIL import ImageDraw

    pen = ImageDraw.Draw(picture)
    for box, label in reversed(list(zip(boxes, labels, strict=True))):
        pen.rectangle(tuple(box), outline=_color(label), width=_line(picture))


def _write_names(
    picture: Image, boxes: Sequence[Sequence[float]], found: Detections | Classification
) -> None:
    """Write name and score of the first classes, one at each box."""
    from PIL import ImageDraw, ImageFont

    pen = ImageDraw.Draw(picture)
    size, line = _font_px(picture), _line(picture)
    font = ImageFont.load_default(size)
    plates: list[_Plate] = []
    for box, name, score in zip(boxes, found.names, found.scores.tolist(), strict=False):
        text = " ".join(f"{name} {score:.2f}".split())
        plate_size = pen.textlength(text, font=font) + 4 * line, size + 4 * line
        plates.append(_Plate(text, *_place(box, plate_size, picture.size, plates), *plate_size))
    labels = found.labels.tolist()[: len(plates)]
    for plate, color in reversed(list(zip(plates, map(_color, labels), strict=True))):
        x, y, width, height = plate.x, plate.y, plate.width, plate.height
        pen.rectangle((x, y, x + width, y + height), fill=color)
        middle = (x + 2 * line, y + height / 2)
        pen.text(middle, plate.text, fill=_ink(color), font=font, anchor="lm")


def _tint_objects(pixels: Array, found: Detections) -> Array:
    """A copy of the picture in which the pixels of each object that has a mask are tinted."""
    tinted: Array = pixels.copy()
    for index in reversed(range(len(found.masks or ()))):
        assert found.masks is not None
        x, y, width, height = found.masks.boxes[index].tolist()
        _tint(tinted[y : y + height, x : x + width], found.masks.crop(index), found.labels[index])
    return tinted


def _tint_classes(pixels: Array, found: Segmentation) -> Array:
    """A copy of the picture in which the pixels of each class are tinted."""
    from PIL import Image

    tinted: Array = pixels.copy()
    cells = Image.fromarray(found.labels)
    labels = np.asarray(cells.resize((found.width, found.height), Image.Resampling.NEAREST))
    for label in np.unique(labels):
        _tint(tinted, labels == label, label)
    return tinted


def _tint(pixels: Array, mask: Array, label: int) -> None:
    color = np.array(_color(int(label)))
    pixels[mask] = np.uint8(pixels[mask] * (1 - _TINT) + color * _TINT)


class _Plate(NamedTuple):
    """The name of an object and where it is written, in pixels."""

    text: str
    x: float
    y: float
    width: float
    height: float


def _place(
    box: Sequence[float],
    size: tuple[float, float],
    picture: tuple[int, int],
    taken: Sequence[_Plate],
) -> tuple[float, float]:
    """Where a box's plate goes: above, else inside at an edge, else below; free of other plates."""
    width, height = size
    x = max(0.0, min(box[0], picture[0] - width))
    lows = (box[1] - height, box[1], box[3] - height, box[3])
    inside = [y for y in lows if 0 <= y <= picture[1] - height] or [0.0]
    free = (y for y in inside if not any(_meet(x, y, width, height, one) for one in taken))
    return x, next(free, inside[0])


def _meet(x: float, y: float, width: float, height: float, plate: _Plate) -> bool:
    apart_x = x >= plate.x + plate.width or plate.x >= x + width
    apart_y = y >= plate.y + plate.height or plate.y >= y + height
    return not (apart_x or apart_y)


def _color(label: int) -> tuple[int, int, int]:
    """A bright color of its own for each class; neighbours in number lie far apart in hue."""
    import colorsys

    golden = 0.6180339887498949
    hue = (0.27 + label * golden) % 1.0
    red, green, blue = colorsys.hls_to_rgb(hue, 0.55, 0.85)
    return round(red * 255), round(green * 255), round(blue * 255)


def _ink(color: tuple[int, int, int]) -> tuple[int, int, int]:
    """Black or white, whichever is read better on a color."""
    luminance = 0.299 * color[0] + 0.587 * color[1] + 0.114 * color[2]
    return (0, 0, 0) if luminance > 128 else (255, 255, 255)
