"""A new patch of one's own, from one that works: a folder, and a registry that names it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from keyword import iskeyword
from os.path import realpath
from pathlib import Path

from trtpatch import builtin
from trtpatch.catalog import Patch
from trtpatch.errors import InputError
from trtpatch.spec import yamlfile
from trtpatch.spec.dims import format_shape
from trtpatch.spec.registry import ENGINE, RegistrySpec
from trtpatch.spec.validate import nearest, validate

_FILES = ("patch.yaml", "kernel.cu", "reference.py", "cases.py", "README.md")
_INCLUDE = re.compile(r'^#include "(?:\.\./)?(\w+\.cuh)"', re.MULTILINE)
_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
_TAKEN = re.compile(
    r"""alignas|alignof|and_eq|asm|auto|bitand|bitor|bool|case|catch|char|compl|concept|const
    |const_cast|consteval|constexpr|constinit|co_await|co_return|co_yield|decltype|default|delete|do
    |double|dynamic_cast|enum|explicit|export|extern|false|float|friend|goto|inline|int|long|main
    |mutable|namespace|new|noexcept|not_eq|nullptr|operator|or_eq|private|protected|public|register
    |reinterpret_cast|requires|short|signed|sizeof|static|static_assert|static_cast|struct|switch
    |template|this|thread_local|throw|true|typedef|typeid|typename|union|unsigned|using|virtual|void
    |volatile|wchar_t|xor|xor_eq
    |(u?(char|short|int|long|longlong)|float|double)[1-4]|dim3
    |f?abs|f?max|f?min|ceil|cos|exp|floor|log|pow|round|sin|sqrt|tan|trunc""",
    re.VERBOSE,
)
"""Names that CUDA C++ has a meaning for, besides the words of Python."""


@dataclass(frozen=True)
class Made:
    """What was made.

    Attributes:
        folder: of the patch.
        model: the patch that it is a copy of.
        files: of the patch, in the order in which they are read; then those beside its folder that
            it includes.
        registry: the file that names the folder of patches.
        new_registry: whether it was made, too.
        to_add: the line that an existing registry lacks; empty where it names the folder already.
    """

    folder: Path
    model: str
    files: tuple[Path, ...]
    registry: Path
    new_registry: bool
    to_add: str


def kinds() -> tuple[str, ...]:
    """The kinds of the built-in patches."""
    return tuple(sorted(_models()))


def _models() -> dict[str, Path]:
    """For each kind the folder to start from: the template, or else the shortest built-in patch."""
    root = builtin.patches_folder()
    contracts = sorted(root.glob("[!_.]*/patch.yaml"), key=_length, reverse=True)
    folders = [path.parent for path in (*contracts, *root.glob("_template/*/patch.yaml"))]
    return {Patch.read(folder).spec.kind: folder for folder in folders}


def _listed(models: Mapping[str, Path]) -> str:
    """A line for each kind: what the patch to start from takes and gives."""
    lines = []
    for kind, folder in sorted(models.items()):
        spec = Patch.read(folder).spec
        takes, gives = (
            ", ".join(n if s == "port" else f"{n} {format_shape(s.shape)}" for n, s in side.items())
            for side in (spec.inputs, spec.outputs)
        )
        lines.append(f"  {kind}: takes {takes}; gives {gives}")
    return "\n".join(lines)


def _length(contract: Path) -> tuple[int, str]:
    return (contract.parent / "kernel.cu").stat().st_size, contract.parent.name


def make_patch(name: str, *, kind: str, patches: Path) -> Made:
    """Make a patch that verifies as it is.

    Args:
        name: of the patch, and so of its folder, its kernel and its reference.
        kind: what it is to stand in for.
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
    if _TAKEN.fullmatch(name):
        raise InputError(
            f"{name!r} is no name for a patch: the kernel has this name too, and CUDA C++ has"
            f" another meaning for it; {kind}_{name} would do"
        )
    try:
        str(patches).encode()
    except UnicodeEncodeError:
        raise InputError(f"{str(patches)!r} is no name for a folder: not UTF-8") from None
    models = _models()
    if kind not in models:
        raise InputError(
            f"there is no kind {kind!r} of patches.{nearest(kind, models)} For a kind of your own"
            " start from the nearest of these, and change 'kind' in its patch.yaml:\n"
            f"{_listed(models)}"
        )
    folder = patches / name
    if folder.exists():
        raise InputError(f"{folder}: is there already; nothing was changed")
    registry = patches.absolute().parent / "registry.yaml"
    new, to_add = not registry.exists(), ""
    if not new:
        to_add = _missing_line(registry, patches)
    try:
        files = _copy(models[kind], folder)
        if new:
            named = yamlfile.written([patches.absolute().name])
            line = f"patches: {named} # folders of patches, beside this file\n"
            registry.write_text(line, encoding="utf-8")
    except OSError as error:
        raise InputError(
            f"{error.filename or folder}: cannot be written: {error.strerror}"
        ) from None
    return Made(folder, models[kind].name, files, registry, new, to_add)


def _copy(model: Path, folder: Path) -> tuple[Path, ...]:
    """Copy a patch under the name of another folder, and the headers beside it that it includes."""
    folder.mkdir(parents=True)
    files = []
    for file in _FILES:
        text = (model / file).read_text(encoding="utf-8")
        text = re.sub(rf"\b{model.name}(?![a-z0-9])", folder.name, text)
        (folder / file).write_text(text, encoding="utf-8")
        files.append(folder / file)
    headers = _INCLUDE.findall((model / "kernel.cu").read_text(encoding="utf-8"))
    while headers:
        name = headers.pop()
        text = (builtin.patches_folder() / name).read_text(encoding="utf-8")
        headers += _INCLUDE.findall(text)
        target = folder.parent / name
        if not target.exists():
            target.write_text(text, encoding="utf-8")
            files.append(target)
    return tuple(files)


def _missing_line(registry: Path, patches: Path) -> str:
    """What to add to a registry, so that it names a folder of patches; empty if it does."""
    spec = validate(RegistrySpec, yamlfile.load(registry))
    named = [realpath(registry.parent / one) for one in spec.patches]
    if realpath(patches) in named:
        return ""
    return f"patches: {yamlfile.written([*spec.patches, patches.absolute().name])}"
