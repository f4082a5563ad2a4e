"""Results drawn on the pictures that they are of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from PIL.Image import Image

    from trtpatch.detections import Detections
    from trtpatch.labels import Classification, Segmentation

Array = np.ndarray[Any, Any]
_Box = tuple[float, float, float, float]
"""x1 y1 x2 y2 in pixels."""

_LINES_IN_HEIGHT = 36
_MAX_FONT_PX = 48
_TINT = 0.45
"""Part of the color in a pixel that is tinted."""
_SURE = 0.5
"""Confidence above which a key point is drawn."""
_MOST_HIDDEN = 1 / 3
"""Part of a box that a name may lie on."""


def draw(pixels: Array, found: Detections | Classification | Segmentation) -> Image:
    """Draw every object's box, name, score and key points, and tint its mask.

    What scores best lies on top.

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
        boxes = [tuple(box) for box in found.boxes.tolist()]
        limit = 2 * max(picture.size)
        corners = np.nan_to_num(np.clip(found.corners, -limit, limit))
        _outline(picture, corners, found.labels.tolist())
        _mark(picture, found)
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


def _outline(picture: Image, corners: Array, labels: Sequence[int]) -> None:
    from PIL import ImageDraw

    pen, line = ImageDraw.Draw(picture), _line(picture)
    for four, label in reversed(list(zip(corners.tolist(), labels, strict=True))):
        if four[0][1] == four[1][1]:  # upright: with corners that are sharp
            pen.rectangle((*four[0], *four[2]), outline=_color(label), width=line)
        else:
            points = [tuple(corner) for corner in four]
            pen.line([*points, *points[:2]], fill=_color(label), width=line, joint="curve")


def _mark(picture: Image, found: Detections) -> None:
    """A dot at each key point that is more likely there than not."""
    from PIL import ImageDraw

    if found.keypoints is None:
        return
    pen, radius = ImageDraw.Draw(picture), _line(picture)
    for points, label in reversed(list(zip(found.keypoints.tolist(), found.labels, strict=True))):
        color = _color(int(label))
        for x, y, confidence in points:
            if confidence > _SURE and 0 <= x <= found.width and 0 <= y <= found.height:
                pen.ellipse((x - radius, y - radius, x + radius, y + radius), color, _ink(color))


def _write_names(picture: Image, boxes: Sequence[_Box], found: Detections | Classification) -> None:
    """Write name and score of the first classes, one at each box that has room for them.

    In a crowd some are left out, those of the lower scores, rather than hide what they tell of.
    """
    from PIL import ImageDraw, ImageFont

    pen = ImageDraw.Draw(picture)
    size, line = _font_px(picture), _line(picture)
    font = ImageFont.load_default(size)
    plates: list[_Box] = []
    objects = zip(boxes, found.names, found.scores.tolist(), found.labels.tolist(), strict=False)
    for box, name, score, label in objects:
        text = " ".join(f"{name} {score:.2f}".split())
        width, height = pen.textlength(text, font=font) + 3 * line, size + 2 * line
        plate = _place(box, (width, height), picture.size, boxes, plates)
        if plate is not None:
            plates.append(plate)
            color = _color(label)
            pen.rectangle(plate, fill=color)
            start = (plate[0] + 1.5 * line, plate[1] + height / 2)
            pen.text(start, text, fill=_ink(color), font=font, anchor="lm")


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


def _place(
    box: _Box,
    size: tuple[float, float],
    picture: tuple[int, int],
    boxes: Sequence[_Box],
    plates: Sequence[_Box],
) -> _Box | None:
    """Where a box's plate goes: above, else below, else inside at an edge.

    None where each of these would leave the picture, lie on another plate or hide much of a box.
    """
    width, height = size
    x = max(0.0, min(box[0], picture[0] - width))
    for y in (box[1] - height, box[3], box[1], box[3] - height):
        plate = x, y, x + width, y + height
        if not 0 <= y <= picture[1] - height or any(_covered(one, plate) for one in plates):
            continue
        if all(_covered(one, plate) <= _MOST_HIDDEN for one in boxes):
            return plate
    return None


def _covered(box: _Box, plate: _Box) -> float:
    """The part of a box that lies under a plate."""
    width = min(box[2], plate[2]) - max(box[0], plate[0])
    height = min(box[3], plate[3]) - max(box[1], plate[1])
    area = (box[2] - box[0]) * (box[3] - box[1])
    return width * height / area if width > 0 and height > 0 else 0.0


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
