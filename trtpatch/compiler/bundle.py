"""Kernels compiled ahead of time: a folder of cubins and the manifest that says what they are of.

A bundle is written where there is no GPU and no driver, and read where there is no NVRTC. Whoever
loads from it gets the cubin of exactly its own text, options and architecture, or an error that
says what differs; nothing is ever compiled instead.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trtpatch import __version__
from trtpatch.compiler.compile import Compile, Cubin
from trtpatch.compiler.diagnosis import Kernel
from trtpatch.compiler.includes import by_file
from trtpatch.compiler.options import options_of
from trtpatch.errors import CompileError
from trtpatch.keep import as_name, keep

if TYPE_CHECKING:
    from trtpatch.unit import Unit

MANIFEST = "bundle.json"
_FORMAT = 1


@dataclass(frozen=True)
class CubinFile:
    """One cubin of a bundle.

    Attributes:
        file: its name in the folder; the file is as the compiler gave it.
        sha256: of the file.
        kernels: what each kernel uses.
    """

    file: str
    sha256: str
    kernels: tuple[Kernel, ...]


@dataclass(frozen=True)
class Source:
    """What a unit's cubins were made from.

    Attributes:
        name: the patch's name.
        files: SHA-256 of what the text has of each file, by the file's name in messages.
        options: of NVRTC, but for the architecture.
        entries: the kernels that are launched.
    """

    name: str
    files: Mapping[str, str]
    options: tuple[str, ...]
    entries: tuple[str, ...]

    @classmethod
    def of(cls, unit: Unit) -> Source:
        """Describe a unit."""
        files = {name: _sha256(part.encode()) for name, part in by_file(unit.text).items()}
        return cls(unit.name, files, options_of(unit), unit.entries)

    def differences(self, other: Source) -> Iterator[str]:
        """What of this differs from another of the same name, in words."""
        for name in sorted(self.files.keys() | other.files.keys()):
            if self.files.get(name) != other.files.get(name):
                yield f"{name} (shapes and parameters)" if name.startswith("Args of ") else name
        if self.options != other.options:
            yield "the compiler's options"
        if self.entries != other.entries:
            yield "which kernels are launched"


@dataclass(frozen=True)
class Bundle:
    """A bundle that was read.

    Attributes:
        folder: where it lies.
        version: of the trtpatch that made it.
        compiler: `NVRTC 13.5.37`.
        pipeline: name of the pipeline file that it was made for.
        archs: `sm_90` and the like, as asked for.
        units: what was compiled, and its cubins by architecture.
    """

    folder: Path
    version: str
    compiler: str
    pipeline: str
    archs: tuple[str, ...]
    units: tuple[tuple[Source, Mapping[str, CubinFile]], ...]

    @classmethod
    def read(cls, folder: Path) -> Bundle:
        """Read a bundle's manifest.

        Raises:
            CompileError: there is none, or not of a format that this trtpatch reads.
        """
        path = folder / MANIFEST
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise CompileError(
                f"{path} cannot be read: {error.strerror}. A bundle is made by "
                f"'trtpatch compile pipeline.yaml --arch sm_90 -o {folder}'"
            ) from None
        except ValueError as error:
            raise CompileError(f"{path} is damaged: {error}. Make the bundle again") from None
        found = data.get("format") if isinstance(data, dict) else None
        if found != _FORMAT:
            raise CompileError(
                f"{path}: a bundle of format {found}; trtpatch {__version__} reads format "
                f"{_FORMAT}. Make the bundle again"
            )
        try:
            return cls(
                folder,
                data["trtpatch"],
                data["compiler"],
                data["pipeline"],
                tuple(data["archs"]),
                tuple(_unit(one) for one in data["units"]),
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise CompileError(f"{path} is damaged: {error!r}. Make the bundle again") from None

    def cubin_for(self, unit: Unit, *, arch: str) -> Cubin:
        """The cubin of a unit; see `Compile`.

        Raises:
            CompileError: the bundle was made for other architectures or from another text, or its
                file is missing or damaged.
        """
        if arch not in self.archs:
            raise CompileError(
                f"{self.folder}: the bundle has kernels for {', '.join(self.archs)}, and this GPU "
                f"is {arch}. {self._again(arch)}"
            )
        wanted = Source.of(unit)
        same_name = [(source, cubins) for source, cubins in self.units if source.name == unit.name]
        for source, cubins in same_name:
            if source == wanted:
                return self._load(unit, arch, cubins[arch])
        if not same_name:
            from trtpatch.spec.validate import nearest

            names = [source.name for source, _ in self.units]
            raise CompileError(
                f"{self.folder}: the bundle has no patch {unit.name!r}, only {', '.join(names)}."
                f"{nearest(unit.name, names)} {self._again()}"
            )
        nearer = min((list(wanted.differences(source)) for source, _ in same_name), key=len)
        by = "" if self.version == __version__ else f" by trtpatch {self.version}"
        raise CompileError(
            f"{self.folder}: the bundle's {unit.name} was made{by} from something else than what "
            f"is loaded here{f' by trtpatch {__version__}' if by else ''}. Different: "
            f"{', '.join(nearer)}. {self._again()}"
        )

    def _load(self, unit: Unit, arch: str, stored: CubinFile) -> Cubin:
        path = self.folder / stored.file
        try:
            code = path.read_bytes()
        except OSError as error:
            raise CompileError(
                f"{path} cannot be read: {error.strerror}. {self._again()}"
            ) from None
        if _sha256(code) != stored.sha256:
            raise CompileError(f"{path} is damaged: its checksum is wrong. {self._again()}")
        return Cubin(unit.name, arch, code, self.compiler, "", stored.kernels)

    def _again(self, *archs: str) -> str:
        listed = ",".join(dict.fromkeys((*self.archs, *archs)))
        return (
            f"Make it again: trtpatch compile {self.pipeline} --arch {listed} -o {self.folder}, "
            "or take 'bundle' out of the pipeline file to compile on this machine"
        )


def write_bundle(
    folder: Path,
    units: Sequence[Unit],
    *,
    archs: Sequence[str],
    compile_unit: Compile,
    pipeline: str,
    plan: Mapping[str, Any],
) -> tuple[Cubin, ...]:
    """Compile units for several architectures into a folder; the manifest is written last.

    Args:
        folder: made if need be; what an earlier bundle left in it goes.
        units: of a pipeline's plan; equal ones are compiled once.
        archs: `sm_90` and the like.
        compile_unit: has the cubins.
        pipeline: name of the pipeline file, for messages.
        plan: what else to say of the plan, for people.

    Returns:
        Every cubin, unit by unit.

    Raises:
        CompileError: a unit does not compile, or the folder cannot be written.
    """
    made: dict[str, dict[str, Any]] = {}
    cubins = []
    before = _cubins_in(folder)
    for unit in units:
        source = asdict(Source.of(unit))
        digest = _sha256(json.dumps(source, sort_keys=True).encode())
        if digest in made:
            continue
        compiled = [compile_unit(unit, arch=arch) for arch in archs]
        cubins += compiled
        files = {cubin.arch: _write(folder, cubin, digest) for cubin in compiled}
        made[digest] = {**source, "cubins": {arch: asdict(one) for arch, one in files.items()}}
    manifest = {
        "format": _FORMAT,
        "trtpatch": __version__,
        "compiler": cubins[0].compiler if cubins else "",
        "archs": list(archs),
        "pipeline": pipeline,
        "plan": dict(plan),
        "units": list(made.values()),
    }
    _keep(folder / MANIFEST, (json.dumps(manifest, indent=2) + "\n").encode())
    wanted = {one["file"] for unit in made.values() for one in unit["cubins"].values()}
    for name in before - wanted:
        (folder / name).unlink(missing_ok=True)
    return tuple(cubins)


def _cubins_in(folder: Path) -> set[str]:
    """Names of the files of the bundle in a folder; none where there is no bundle to be read."""
    try:
        units = Bundle.read(folder).units
    except CompileError:
        return set()
    return {Path(stored.file).name for _, cubins in units for stored in cubins.values()}


def _write(folder: Path, cubin: Cubin, digest: str) -> CubinFile:
    name = f"{as_name(cubin.name)}-{cubin.arch}-{digest[:16]}.cubin"
    _keep(folder / name, cubin.code)
    return CubinFile(name, _sha256(cubin.code), cubin.kernels)


def _keep(path: Path, data: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        keep(path, data)
    except OSError as error:
        raise CompileError(f"{path}: cannot be written: {error.strerror or error}") from None


def _unit(data: Mapping[str, Any]) -> tuple[Source, Mapping[str, CubinFile]]:
    source = Source(data["name"], data["files"], tuple(data["options"]), tuple(data["entries"]))
    cubins = {
        arch: CubinFile(
            one["file"], one["sha256"], tuple(Kernel(**numbers) for numbers in one["kernels"])
        )
        for arch, one in data["cubins"].items()
    }
    return source, cubins


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
