"""What is on offer: patch folders and rules, found by where they lie."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from keyword import iskeyword
from pathlib import Path

from trtpatch import builtin
from trtpatch.errors import MatchError, Problem, SpecError
from trtpatch.spec import yamlfile
from trtpatch.spec.patch import PatchSpec
from trtpatch.spec.registry import ENGINE, RegistrySpec, RuleSpec
from trtpatch.spec.validate import choose, validate
from trtpatch.spec.yamlfile import Document, Location

CONTRACT = "patch.yaml"
ENTRY_POINTS = "trtpatch.patches"

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Patch:
    """A patch folder with its contract read and checked.

    Attributes:
        name: that of the folder.
        spec: what the contract says, and `document` where it says so.
    """

    name: str
    folder: Path
    spec: PatchSpec
    document: Document = field(repr=False, compare=False)

    @classmethod
    def read(cls, folder: Path) -> Patch:
        """Read `folder/patch.yaml`.

        Raises:
            SpecError: the contract has mistakes, or the folder's name is none for a patch.
        """
        name = folder.name
        if not name.isidentifier() or iskeyword(name) or name == ENGINE:
            message = (
                f"{name!r} is no name for a patch: expected letters, digits and _, since its"
                f" reference has this name too, and not {ENGINE!r}, which stands for the engine"
            )
            raise SpecError(Problem(str(folder), 0, 0, message))
        document = yamlfile.load(folder / CONTRACT)
        spec = validate(PatchSpec, document)
        return cls(folder.name, folder, spec, document)

    @property
    def kernel(self) -> Path:
        """The author's CUDA C++ file."""
        return self.folder / "kernel.cu"

    @property
    def label(self) -> str:
        """The contract's path."""
        return self.document.file

    def problem(self, where: Location, message: str) -> str:
        """What is wrong with the patch, with its place in the contract."""
        return builtin.shown(str(self.document.problem(where, f"{self.name}: {message}")))


@dataclass(frozen=True)
class Rule:
    """A rule, and where it stands: `location` in `document`."""

    spec: RuleSpec
    document: Document = field(repr=False, compare=False)
    location: Location

    @property
    def place(self) -> str:
        """File and line."""
        return f"{self.document.file}:{self.document.values[self.location][0]}"

    @property
    def shown(self) -> str:
        """Name, file and line, for messages."""
        return f"{self.spec.name} ({builtin.shown(self.place)})"

    @property
    def builtin(self) -> bool:
        """Whether it comes with trtpatch."""
        return self.document.file == str(builtin.registry_file())


class Catalog:
    """Patches and rules: built-in ones, those of installed packages, those of given registries.

    A package offers the patch folders in its own folder by an entry point of the group
    `trtpatch.patches`, whose value is the package's name; its `registry.yaml`, if there is one, is
    read as well. A later registry's rule replaces an earlier one of the same name, and so does a
    later folder's patch. Contracts are read when they are asked for.
    """

    def __init__(self, registries: Sequence[Path] = ()) -> None:
        """Read the registries and find the folders of patches.

        Args:
            registries: files to read besides; the last has the last word.

        Raises:
            SpecError: a registry has mistakes, or names a folder that is not there.
        """
        self._folders: dict[str, Path] = {}
        self._rules: dict[str, Rule] = {}
        self._read: dict[str, Patch] = {}
        self.sources: list[Path] = []
        """Every file and folder that was looked at."""
        self._add_folder(builtin.patches_folder())
        self._add_registry(builtin.registry_file())
        for folder in _package_folders():
            self._add_folder(folder)
            if (folder / "registry.yaml").is_file():
                self._add_registry(folder / "registry.yaml")
        for registry in registries:
            self._add_registry(registry)

    def _add_registry(self, path: Path) -> None:
        document = yamlfile.load(path)
        registry = validate(RegistrySpec, document)
        self.sources.append(path)
        problems = []
        for index, folder in enumerate(registry.patches):
            if _is_folder(path.parent / folder):
                self._add_folder(path.parent / folder)
            else:
                message = f"folder of patches {str(path.parent / folder)!r} is not there"
                problems.append(document.problem(("patches", index), message))
        names = [rule.name for rule in registry.rules]
        for index, rule in enumerate(registry.rules):
            if rule.name in names[:index]:
                message = f"rule {rule.name!r} stands twice in this file"
                problems.append(document.problem(("rules", index, "name"), message))
            self._rules[rule.name] = Rule(rule, document, ("rules", index))
        if problems:
            raise SpecError(*problems)

    def _add_folder(self, folder: Path) -> None:
        self.sources.append(folder)
        for contract in sorted(folder.glob(f"[!_.]*/{CONTRACT}")):
            self._folders[contract.parent.name] = contract.parent

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all patches, sorted."""
        return tuple(sorted(self._folders))

    @property
    def rules(self) -> tuple[Rule, ...]:
        """All rules, built-in ones first."""
        return tuple(self._rules.values())

    def patch(self, name: str) -> Patch:
        """The patch of that name.

        Raises:
            MatchError: there is none.
            SpecError: its contract has mistakes.
        """
        if name not in self._folders:
            raise MatchError(f"no patch is called {name!r}.{choose(name, self._folders)}")
        if name not in self._read:
            self._read[name] = Patch.read(self._folders[name])
        return self._read[name]

    def rule(self, name: str) -> Rule:
        """The rule of that name.

        Raises:
            MatchError: there is none.
        """
        if name not in self._rules:
            raise MatchError(f"no rule is called {name!r}.{choose(name, self._rules)}")
        return self._rules[name]


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:  # a name that is too long, or lies where this user may not look
        return False


def _package_folders() -> Iterator[Path]:
    """Folders of installed packages that offer patches; nothing of theirs is run."""
    from importlib.metadata import entry_points
    from importlib.util import find_spec

    for entry in sorted(entry_points(group=ENTRY_POINTS), key=lambda one: one.name):
        try:
            spec = find_spec(entry.value)
        except (ImportError, ValueError):
            spec = None
        if spec is None or not spec.submodule_search_locations:
            what = f"{entry.value!r}, which is no package that can be found"
            log.warning("entry point %s of %s names %s", entry.name, ENTRY_POINTS, what)
            continue
        yield from map(Path, spec.submodule_search_locations)
