"""Where the built-in registry and the built-in patches lie."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def patches_folder() -> Path:
    """The folder of the built-in patches, one folder each."""
    return _root() / "patches"


def is_builtin(folder: Path) -> bool:
    """Whether a patch's folder is that of a built-in patch."""
    return folder.resolve().parent == patches_folder()


def registry_file() -> Path:
    """The built-in registry; it holds rules alone."""
    return _root() / "registry.yaml"


def shown(place: str) -> str:
    """A file, or a place in it; what comes with trtpatch goes by `built-in` and its short path."""
    for known in (registry_file(), patches_folder()):
        if place.startswith(str(known)):
            return f"built-in {known.name}{place[len(str(known)) :]}"
    return place


def _root() -> Path:
    # Installed, both are the data of trtpatch._builtin; in a checkout they lie beside the package.
    installed = _PACKAGE / "_builtin"
    return installed if installed.is_dir() else _PACKAGE.parent
