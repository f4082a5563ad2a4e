"""A unit's text through the machine's C++ compiler, with `host_cuda/` in place of CUDA.

The text is compiled as it is, with one exception that C++ has no words for: `extern __shared__
T name[];` becomes a pointer to the block's dynamic shared memory, on the same line.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from trtpatch.compiler.cubins import Cubins, key_of
from trtpatch.compiler.diagnosis import CHECK
from trtpatch.compiler.includes import stray_includes
from trtpatch.errors import CompileError, Problem
from trtpatch.executors.host_diagnosis import (
    HEADERS,
    compile_error,
    generated_label,
    uninitialised,
    unknown_constructs,
)
from trtpatch.unit import Unit

_ALWAYS = ("-std=c++17", "-fPIC", "-pthread", "-fno-exceptions", "-fvisibility=hidden")

# No fused multiply-add: then every machine and compiler rounds alike, as NumPy does, and as NVRTC
# where the contract does not ask for it.
_UNIT = ("-ffp-contract=off", "-fno-strict-aliasing", "-Wuninitialized")


@dataclass(frozen=True)
class Recipe:
    """One way to build a unit.

    Attributes:
        target: names it in the cache.
        suffix: of the file in the cache.
        unit: options for the unit's text.
        runtime: options for host_cuda/runtime.cpp.
        linking: options for both together.
        gcc, clang: further options for the unit's text, by the compiler.
    """

    target: str
    suffix: str
    unit: tuple[str, ...]
    runtime: tuple[str, ...]
    linking: tuple[str, ...]
    gcc: tuple[str, ...] = ()
    clang: tuple[str, ...] = ()


# What would kill the process is checked; guards.h answers, so no sanitizer's runtime is linked.
LIBRARY = Recipe(
    target="host",
    suffix=".so",
    unit=(
        "-O2",
        "-fsanitize=alignment,null,integer-divide-by-zero",
        "-fno-sanitize-recover=all",
        "-Werror=frame-larger-than=131072",  # half of a thread's stack, see fibers.h
    ),
    runtime=("-O2",),
    linking=("-shared",),
    gcc=("-Wmaybe-uninitialized",),
    clang=("-Wsometimes-uninitialized",),
)
SANITIZED = Recipe(
    target="host_asan",
    suffix=".exe",
    unit=(
        "-O1", "-g", "-fno-omit-frame-pointer",
        "-fsanitize=address,undefined,float-cast-overflow", "-fsanitize-recover=address",
    ),
    runtime=("-O2", "-DTRTPATCH_REPLAY", "-DTRTPATCH_ASAN"),
    linking=("-fsanitize=address,undefined",),
    gcc=("-fsanitize-sections=trtpatch_shared",),  # guard zones between shared arrays
)  # fmt: skip
# The calls that -fsanitize=thread makes go to watch.h. Without -pie, code lies below 4 GiB.
# DWARF 4, since the addr2line of binutils 2.40 misreads the file names that gcc 12 writes in 5.
WATCHED = Recipe(
    target="host_watch",
    suffix=".exe",
    unit=("-O1", "-gdwarf-4", "-DTRTPATCH_WATCH", "-fsanitize=thread"),
    runtime=("-O2", "-DTRTPATCH_REPLAY", "-DTRTPATCH_WATCH"),
    linking=("-no-pie",),
    gcc=("--param=tsan-distinguish-volatile=1",),
    clang=("-mllvm", "-tsan-distinguish-volatile=1"),
)


@dataclass(frozen=True)
class Built:
    """A compiled unit.

    Attributes:
        data: the binary.
        path: the file in the cache that holds it, if it could be written.
        warnings: places where a variable may have no value yet.
    """

    data: bytes
    path: Path | None
    warnings: tuple[Problem, ...]


_DYNAMIC_SHARED = re.compile(
    r"\bextern\s+__shared__\s+"
    r"(?:(?:__align__|alignas)\s*\([^)]*\)\s*)?"
    r"(?P<type>[\w:]+(?:\s+[\w:]+)*?)\s+"
    r"(?:__align__\s*\([^)]*\)\s*)?"
    r"(?P<name>\w+)\s*\[\s*\]\s*;"
)


def find_compiler() -> tuple[str, ...]:
    """The C++ compiler's command: `CXX` where set, else g++ or clang++.

    Raises:
        CompileError: there is none.
    """
    try:
        chosen = shlex.split(os.environ.get("CXX", ""))
    except ValueError as error:
        raise CompileError(f"CXX={os.environ['CXX']}: no command line: {error}") from None
    for command in [chosen] if chosen else [["g++"], ["clang++"], ["c++"]]:
        if path := shutil.which(command[0]):
            return (path, *command[1:])
    wanted = f"CXX={shlex.join(chosen)}" if chosen else "g++ or clang++"
    raise CompileError(
        f"executor 'host' needs a C++ compiler and {wanted} is not to be found. Install one"
        " (Debian: apt install g++), or name one in CXX"
    )


def is_clang(compiler: tuple[str, ...]) -> bool:
    """Whether a command leads to clang, by the name of the file."""
    return "clang" in Path(compiler[0]).resolve().name


def build(unit: Unit, recipe: Recipe, cubins: Cubins) -> Built:
    """Compile a unit, or take it from the cache.

    Raises:
        CompileError: it does not compile, or uses what the host cannot do; each mistake has its
            place in the author's file.
    """
    compiler = find_compiler()
    source = _source(unit)
    special = recipe.clang if is_clang(compiler) else recipe.gcc
    flags = (*_ALWAYS, *_UNIT, *recipe.unit, *special)
    shared = (_headers_digest(), _identity(compiler), shlex.join(recipe.linking))
    options = shlex.join((*flags, *recipe.runtime))
    key = key_of(unit.name, recipe.target, source, options, *shared)
    if entry := cubins.get(key, suffix=recipe.suffix):
        return Built(entry.data, entry.path, tuple(Problem(*p) for p in entry.notes["warnings"]))
    _refuse_unknown(unit, compiler)
    with _workplace(unit) as folder:
        (folder / "unit.cpp").write_text(source, encoding="utf-8")
        (folder / "runtime.o").write_bytes(_runtime(unit, recipe, compiler, cubins))
        mapped = f"-fdebug-prefix-map={folder}=."
        command = [*compiler, *flags, mapped, f"-I{HEADERS}", "-c", "unit.cpp"]
        warnings = tuple(uninitialised(_run(unit, command, folder).stderr))
        parts = ["unit.o", "runtime.o", "-o", "unit.out"]
        _run(unit, [*compiler, "-pthread", *recipe.linking, *parts], folder)
        data = (folder / "unit.out").read_bytes()
    notes = {"compiler": Path(compiler[0]).name, "warnings": warnings}
    return Built(data, cubins.put(key, data, suffix=recipe.suffix, notes=notes), warnings)


def _runtime(unit: Unit, recipe: Recipe, compiler: tuple[str, ...], cubins: Cubins) -> bytes:
    """The object file that all units of a recipe are linked with."""
    flags = (*_ALWAYS, *recipe.runtime)
    key = key_of("runtime", recipe.target, _headers_digest(), _identity(compiler), *flags)
    if entry := cubins.get(key, suffix=".o"):
        return entry.data
    with _workplace(unit) as folder:
        target = folder / "runtime.o"
        _run(unit, [*compiler, *flags, "-c", f"{HEADERS / 'runtime.cpp'}", "-o", f"{target}"])
        data = target.read_bytes()
    cubins.put(key, data, suffix=".o")
    return data


@contextmanager
def _workplace(unit: Unit) -> Iterator[Path]:
    """A temporary folder; where there is none, or no room in it, that is told."""
    try:
        with tempfile.TemporaryDirectory(prefix="trtpatch-") as name:
            yield Path(name)
    except OSError as error:
        raise CompileError(f"{unit.name} cannot be compiled on the host: {error}") from None


def _source(unit: Unit) -> str:
    text = _DYNAMIC_SHARED.sub(_as_pointer, unit.text)
    table = "\n".join(
        f'#line 1 "{CHECK}{entry}"\n'
        f"    {{on_host::Call<&{entry}>::run, on_host::Call<&{entry}>::bytes}},"
        for entry in unit.entries
    )
    return (
        f'#include "cuda_on_host.h"\nnamespace {{\n#line 1 "{generated_label(unit)}"\n{text}\n'
        f'}}\n#line 1 "{CHECK}"\nconst on_host::Entry on_host::entries[] = {{\n{table}\n}};\n'
    )


def _as_pointer(match: re.Match[str]) -> str:
    kind, name = match["type"], match["name"]
    newlines = "\n" * match[0].count("\n")  # the lines below keep their numbers
    return f"{kind}* const {name} = on_host::dynamic_shared<{kind}>();{newlines}"


def _refuse_unknown(unit: Unit, compiler: tuple[str, ...]) -> None:
    """Look for constructs that the host cannot do, in what the preprocessor leaves of the text.

    Raises:
        CompileError: there are some; each is named with its place.
    """
    problems = tuple(stray_includes(unit.text, label=generated_label(unit)))
    if not problems:
        command = [*compiler, "-E", "-x", "c++", "-std=c++17", "-w", "-DTRTPATCH_HOST=1", "-"]
        problems = tuple(unknown_constructs(_run(unit, command, text=unit.text).stdout))
    if problems:
        message = f"patch {unit.name} uses what executor 'host' cannot do:"
        raise CompileError(message, problems=problems)


def _run(
    unit: Unit, command: list[str], folder: Path | None = None, *, text: str = ""
) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "LC_ALL": "C"},
        input=text,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise compile_error(unit, done.stderr)
    return done


def _headers_digest() -> str:
    digest = hashlib.sha256()
    for path in sorted(HEADERS.iterdir()):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _identity(compiler: tuple[str, ...]) -> str:
    """What changes when the compiler does; asking it for its version would cost 5 ms a unit."""
    status = Path(compiler[0]).resolve().stat()
    parts = (*compiler, status.st_size, status.st_mtime_ns, platform.machine())
    return " ".join(map(str, parts))
