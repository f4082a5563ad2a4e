"""Picture files: which ones a path names, and where their annotated copies go."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from trtpatch.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    from PIL.Image import Image

    from trtpatch.detections import Detections

SUFFIXES = frozenset(
    {".jpg", ".jpeg", ".png", ".bmp", ".webp", ".tif", ".tiff", ".gif", ".ppm", ".pgm", ".avif"}
)
"""What counts as a picture in a folder; a file that is named outright may be called anything."""

_PLACEHOLDER = "{name}"
_LINES_IN_HEIGHT = 36
_MAX_FONT_PX = 48


def find_pictures(paths: Iterable[Path]) -> list[Path]:
    """The files that paths name: a folder stands for the pictures in it, sorted by name.

    Raises:
        InputError: a folder has no picture in it.
    """
    found: list[Path] = []
    for path in paths:
        if not path.is_dir():
            found.append(path)
            continue
        inside = sorted(one for one in path.iterdir() if one.suffix.lower() in SUFFIXES)
        if not inside:
            raise InputError(f"{path}: no picture in this folder ({', '.join(sorted(SUFFIXES))})")
        found += inside
    return found


def plan_copies(target: str, pictures: Sequence[Path]) -> dict[Path, Path]:
    """Where the annotated copy of each picture goes.

    Args:
        target: a file, for one picture; a folder, which gets `<name>.png` of each; or a pattern
            with `{name}` in it.
        pictures: the files that are read.

    Raises:
        InputError: several pictures would go to one file, one would overwrite a picture that is
            read, or the target cannot be written as a picture.
    """
    folder = Path(target)
    if _PLACEHOLDER in target:
        copies = {one: Path(target.replace(_PLACEHOLDER, one.stem)) for one in pictures}
    elif folder.is_dir() or target.endswith(("/", "\\")) or not folder.suffix:
        copies = {one: folder / f"{one.stem}.png" for one in pictures}
    elif len(set(pictures)) == 1:
        copies = {pictures[0]: folder}
    else:
        raise InputError(
            f"{target}: one file for {len(pictures)} pictures. Name a folder, such as"
            f" '{folder.stem}/', or a pattern, such as '{folder.stem}_{_PLACEHOLDER}"
            f"{folder.suffix}'"
        )
    _check_copies(copies)
    return copies


def _check_copies(copies: Mapping[Path, Path]) -> None:
    from PIL import Image

    writable = {end for end, kind in Image.registered_extensions().items() if kind in Image.SAVE}
    sources = {one.resolve() for one in copies}
    taken: dict[Path, Path] = {}
    for source, copy in copies.items():
        if copy.suffix.lower() not in writable:
            raise InputError(f"{copy}: cannot be written as a picture; call it .png or .jpg")
        if copy.resolve() in sources:
            raise InputError(f"{copy}: would overwrite a picture that is read; name another file")
        if copy in taken:
            raise InputError(
                f"{copy}: would hold both {taken[copy]} and {source}, which are called alike."
                " Save them in two runs"
            )
        taken[copy] = source


def save_picture(picture: Image, path: Path) -> None:
    """Write a picture; its folder is made if need be.

    Raises:
        InputError: it cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        picture.save(path)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{path}: cannot be written: {reason}") from None


def draw(pixels: np.ndarray[Any, Any], found: Detections) -> Image:
    """Draw every object's box, name and score; what scores best lies on top.

    Args:
        pixels: `[H, W, 3]` uint8 RGB, the picture that was looked at.
        found: its detections.
    """
    from PIL import Image, ImageDraw, ImageFont

    picture = Image.fromarray(pixels)
    pen = ImageDraw.Draw(picture)
    size = max(11, min(_MAX_FONT_PX, min(picture.size) // _LINES_IN_HEIGHT))
    font = ImageFont.load_default(size)
    line = max(2, size // 6)
    plates: list[_Plate] = []
    boxes = found.boxes.tolist()
    for box, name, score in zip(boxes, found.names, found.scores.tolist(), strict=True):
        text = " ".join(f"{name} {score:.2f}".split())
        plate_size = pen.textlength(text, font=font) + 4 * line, size + 4 * line
        plates.append(_Plate(text, *_place(box, plate_size, picture.size, plates), *plate_size))
    colors = [_color(label) for label in found.labels.tolist()]
    for box, color in reversed(list(zip(boxes, colors, strict=True))):
        pen.rectangle(box, outline=color, width=line)
    for plate, color in reversed(list(zip(plates, colors, strict=True))):
        x, y, width, height = plate.x, plate.y, plate.width, plate.height
        pen.rectangle((x, y, x + width, y + height), fill=color)
        middle = (x + 2 * line, y + height / 2)
        pen.text(middle, plate.text, fill=_ink(color), font=font, anchor="lm")
    return picture


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
