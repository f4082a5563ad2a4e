"""A new patch of one's own, from a template that works: a folder, and a registry that names it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from keyword import iskeyword
from os.path import realpath
from pathlib import Path

from trtpatch import builtin
from trtpatch.errors import InputError
from trtpatch.spec import yamlfile
from trtpatch.spec.registry import ENGINE, RegistrySpec
from trtpatch.spec.validate import choose, validate

_TEMPLATES = "_template"
_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")


@dataclass(frozen=True)
class Made:
    """What was made.

    Attributes:
        folder: of the patch.
        files: in it, in the order in which they are read.
        registry: the file that names the folder of patches.
        new_registry: whether it was made, too.
        to_add: the line that an existing registry lacks; empty where it names the folder already.
    """

    folder: Path
    files: tuple[Path, ...]
    registry: Path
    new_registry: bool
    to_add: str


def kinds() -> tuple[str, ...]:
    """Kinds of patches that there is a template for."""
    folders = (builtin.patches_folder() / _TEMPLATES).glob("*_example/patch.yaml")
    return tuple(sorted(path.parent.name.removesuffix("_example") for path in folders))


def make_patch(name: str, *, kind: str, patches: Path) -> Made:
    """Make a patch that verifies as it is.

    Args:
        name: of the patch, and so of its folder, its kernel and its reference.
        kind: which template.
        patches: the folder of patches to put it in; made if need be. A `registry.yaml` beside that
            folder is made if there is none, and left alone if there is one.

    Raises:
        InputError: the name or the kind is none, or something is in the way.
    """
    if not _NAME.fullmatch(name) or iskeyword(name) or name == ENGINE:
        raise InputError(
            f"{name!r} is no name for a patch: expected small letters, digits and _, such as"
            f" {kind}_mine; the kernel has this name too"
        )
    if kind not in kinds():
        raise InputError(f"there is no template of kind {kind!r}.{choose(kind, kinds())}")
    folder = patches / name
    if folder.exists():
        raise InputError(f"{folder}: is there already; nothing was changed")
    template = builtin.patches_folder() / _TEMPLATES / f"{kind}_example"
    registry = patches.absolute().parent / "registry.yaml"
    new, to_add = not registry.exists(), ""
    if not new:
        to_add = _missing_line(registry, patches)
    files = []
    try:
        folder.mkdir(parents=True)
        for file in ("patch.yaml", "kernel.cu", "reference.py", "cases.py", "README.md"):
            text = (template / file).read_text(encoding="utf-8")
            text = re.sub(rf"\b{template.name}\b", name, text)
            (folder / file).write_text(text, encoding="utf-8")
            files.append(folder / file)
        if new:
            line = f"patches: [{patches.absolute().name}] # folders of patches, beside this file\n"
            registry.write_text(line, encoding="utf-8")
    except OSError as error:
        raise InputError(
            f"{error.filename or folder}: cannot be written: {error.strerror}"
        ) from None
    return Made(folder, tuple(files), registry, new, to_add)


def _missing_line(registry: Path, patches: Path) -> str:
    """What to add to a registry, so that it names a folder of patches; empty if it does."""
    spec = validate(RegistrySpec, yamlfile.load(registry))
    named = [realpath(registry.parent / one) for one in spec.patches]
    if realpath(patches) in named:
        return ""
    return f"patches: [{', '.join([*spec.patches, patches.absolute().name])}]"
