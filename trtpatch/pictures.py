"""Picture files: which ones a path names, and where their annotated copies go."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from os.path import realpath
from pathlib import Path
from typing import TYPE_CHECKING

from trtpatch.errors import InputError

if TYPE_CHECKING:
    from PIL.Image import Image

SUFFIXES = frozenset(
    {".jpg", ".jpeg", ".png", ".bmp", ".webp", ".tif", ".tiff", ".gif", ".ppm", ".pgm", ".avif"}
)
"""What counts as a picture in a folder; a file that is named outright may be called anything."""

_PLACEHOLDER = "{name}"


def find_pictures(paths: Iterable[Path]) -> list[Path]:
    """The files that paths name: a folder stands for the pictures in it, sorted by name.

    Raises:
        InputError: a folder has no picture in it.
    """
    found: list[Path] = []
    for path in paths:
        if not _is_folder(path):
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
    elif _is_folder(folder) or target.endswith(("/", "\\")) or not folder.suffix:
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
    sources = set(map(realpath, copies))
    taken: dict[Path, Path] = {}
    for source, copy in copies.items():
        if copy.suffix.lower() not in writable:
            raise InputError(f"{copy}: cannot be written as a picture; call it .png or .jpg")
        if realpath(copy) in sources:
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
    except Exception as error:  # what encoders raise on a picture too large is not documented
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{path}: cannot be written: {reason}") from None


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:  # a name that is too long: no file can be there either
        return False
