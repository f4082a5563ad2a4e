"""What commands on patches share: which registries are read, and a patch by name or folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from trtpatch.cli.files import File

if TYPE_CHECKING:
    from trtpatch.catalog import Catalog, Patch

_HERE = Path("registry.yaml")


def _or_here(
    context: click.Context, param: click.Parameter, given: tuple[Path, ...]
) -> tuple[Path, ...]:
    from trtpatch.builtin import registry_file

    if given or not _HERE.is_file() or _HERE.samefile(registry_file()):
        return given
    return (_HERE,)


registries = click.option(
    "--registry",
    "registries",
    type=File(),
    metavar="FILE",
    multiple=True,
    callback=_or_here,
    help="A registry of your own, besides the built-in one; registry.yaml in this folder where none"
    " is given. May be given more than once.",
)


def is_patch_folder(text: str) -> bool:
    """Whether an argument is a folder with a contract in it."""
    return (Path(text) / "patch.yaml").is_file()


def find_patch(catalog: Catalog, text: str) -> Patch:
    """A patch by its name, or by its folder.

    Raises:
        MatchError: there is none of that name.
        SpecError: its contract has mistakes.
    """
    from trtpatch.catalog import Patch
    from trtpatch.errors import MatchError

    if not is_patch_folder(text):
        if Path(text).is_dir() and text not in catalog.names:
            raise MatchError(f"{text}: a folder without a patch.yaml, so no patch")
        return catalog.patch(text)
    folder = Path(text)
    return Patch.read(folder if folder.name else folder.resolve())
