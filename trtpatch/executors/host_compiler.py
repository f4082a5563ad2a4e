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
from dataclasses import dataclass
from pathlib import Path

from trtpatch.cubins import Cubins, key_of
from trtpatch.errors import CompileError, Problem
from trtpatch.includes import stray_includes
from trtpatch.unit import Unit

_HEADERS = Path(__file__).resolve().parent / "host_cuda"

_ALWAYS = ("-std=c++17", "-fPIC", "-pthread", "-fno-exceptions", "-fvisibility=hidden", "-w")

# No fused multiply-add: then every machine and compiler rounds alike, as NumPy does, and as NVRTC
# where the contract does not ask for it.
_UNIT = ("-ffp-contract=off", "-fno-strict-aliasing")


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
    ),
    runtime=("-O2",),
    linking=("-shared",),
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

_DYNAMIC_SHARED = re.compile(
    r"\bextern\s+__shared__\s+"
    r"(?:(?:__align__|alignas)\s*\([^)]*\)\s*)?"
    r"(?P<type>[\w:]+(?:\s+[\w:]+)*?)\s+"
    r"(?:__align__\s*\([^)]*\)\s*)?"
    r"(?P<name>\w+)\s*\[\s*\]\s*;"
)
_UNKNOWN = {
    "inline PTX": r"\b(?:asm|__asm__|__asm)\b",
    "launches from within a kernel": r"<<<",
    "cooperative groups": r"\bcooperative_groups\b",
    "CUDA's libraries": r"\b(?:cub|thrust|cuda|nvcuda)\s*::",
    "textures and surfaces": r"\b(?:cuda(?:Texture|Surface)Object_t|(?:tex|surf)[123]D\w*)\b",
    "the CUDA runtime": r"\bcuda[A-Z]\w*(?=\s*\()",
    "the types of cuda_fp16.h": r"\b(?:__half2?|half2|__nv_bfloat162?)\b",
    "warp calls without a mask": r"\b__(?:shfl(?:_up|_down|_xor)?|any|all|ballot)(?=\s*\()",
    "managed memory": r"\b__managed__\b",
    "thread block clusters": r"\b__cluster_dims__\b",
}
_SCAN = re.compile(
    r'(?P<text>"(?:\\.|[^"\\])*")|'
    + "|".join(f"(?P<k{index}>{pattern})" for index, pattern in enumerate(_UNKNOWN.values()))
)
_MARKER = re.compile(r'# (?P<line>\d+) "(?P<file>(?:\\.|[^"\\])*)"')
_ERROR = re.compile(
    r"(?P<file>.+?):(?P<line>\d+):(?:(?P<column>\d+):)? (?:fatal )?error: (?P<message>.*)"
)
_CONTEXT = re.compile(
    r"(?P<file>.+?):(?P<line>\d+):(?P<column>\d+):\s+"
    r"(?:required from|note: in instantiation|recursively required)"
)


def find_compiler() -> tuple[str, ...]:
    """The C++ compiler's command: `CXX` where set, else g++ or clang++.

    Raises:
        CompileError: there is none.
    """
    chosen = shlex.split(os.environ.get("CXX", ""))
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


def build(unit: Unit, recipe: Recipe, cubins: Cubins) -> tuple[bytes, Path | None]:
    """Compile a unit, or take it from the cache.

    Returns:
        The binary, and the file in the cache that holds it, if it could be written.

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
        return entry.data, entry.path
    _refuse_unknown(unit, compiler)
    with tempfile.TemporaryDirectory(prefix="trtpatch-") as name:
        folder = Path(name)
        (folder / "unit.cpp").write_text(source, encoding="utf-8")
        (folder / "runtime.o").write_bytes(_runtime(recipe, compiler, cubins, folder))
        mapped = f"-fdebug-prefix-map={folder}=."
        _run(unit.name, [*compiler, *flags, mapped, f"-I{_HEADERS}", "-c", "unit.cpp"], folder)
        parts = ["unit.o", "runtime.o", "-o", "unit.out"]
        _run(unit.name, [*compiler, "-pthread", *recipe.linking, *parts], folder)
        data = (folder / "unit.out").read_bytes()
    return data, cubins.put(key, data, suffix=recipe.suffix)


def _runtime(recipe: Recipe, compiler: tuple[str, ...], cubins: Cubins, folder: Path) -> bytes:
    """The object file that all units of a recipe are linked with."""
    flags = (*_ALWAYS, *recipe.runtime)
    key = key_of("runtime", recipe.target, _headers_digest(), _identity(compiler), *flags)
    if entry := cubins.get(key, suffix=".o"):
        return entry.data
    source = str(_HEADERS / "runtime.cpp")
    _run("the runtime", [*compiler, *flags, "-c", source, "-o", "runtime.o"], folder)
    data = (folder / "runtime.o").read_bytes()
    cubins.put(key, data, suffix=".o")
    return data


def _source(unit: Unit) -> str:
    text = _DYNAMIC_SHARED.sub(_as_pointer, unit.text)
    table = "\n".join(
        f"    {{on_host::Call<&{entry}>::run, on_host::Call<&{entry}>::bytes}},"
        for entry in unit.entries
    )
    return (
        '#include "cuda_on_host.h"\nnamespace {\n#line 1 "<generated>"\n'
        f'{text}\n#line 1 "<entries>"\n'
        f"}}\nconst on_host::Entry on_host::entries[] = {{\n{table}\n}};\n"
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
    problems = tuple(stray_includes(unit.text, label=unit.name))
    if not problems:
        command = [*compiler, "-E", "-x", "c++", "-std=c++17", "-w", "-DTRTPATCH_HOST=1", "-"]
        problems = tuple(_unknown_in(_run(unit.name, command, text=unit.text)))
    if problems:
        raise CompileError(f"{unit.name} uses what executor 'host' cannot do", problems=problems)


def _unknown_in(preprocessed: str) -> Iterator[Problem]:
    kinds = tuple(_UNKNOWN)
    file, line = "<generated>", 0
    for content in preprocessed.splitlines():
        if marker := _MARKER.match(content):
            file, line = marker["file"], int(marker["line"]) - 1
            continue
        line += 1
        for match in _SCAN.finditer(content):
            if match.lastgroup == "text" or match.lastgroup is None:
                continue
            kind = kinds[int(match.lastgroup[1:])]
            message = f"'{match[0]}': {kind} cannot be used on the host"
            yield Problem(file, line, match.start() + 1, message)


def _run(what: str, command: list[str], folder: Path | None = None, *, text: str = "") -> str:
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
        raise _compile_error(what, done.stderr)
    return done.stdout


def _compile_error(what: str, stderr: str) -> CompileError:
    problems = tuple(dict.fromkeys(_problems(stderr)))
    message = f"{what} does not compile on the host"
    if not problems:
        return CompileError(f"{message}:\n{stderr.strip()[-2000:]}")
    return CompileError(message, problems=problems)


def _problems(stderr: str) -> Iterator[Problem]:
    """The compiler's errors. One in our headers is put where the author's text led to it."""
    context: Problem | None = None
    waiting = ""
    for line in stderr.splitlines():
        if place := _CONTEXT.match(line):
            if not _is_ours(place["file"]):
                context = Problem(place["file"], int(place["line"]), int(place["column"]), "")
                if waiting:
                    yield Problem(context.file, context.line, context.column, waiting)
                    waiting = ""
        elif error := _ERROR.match(line):
            message = re.sub(r"\{anonymous\}::|\(anonymous namespace\)::", "", error["message"])
            if not _is_ours(error["file"]):
                yield Problem(error["file"], int(error["line"]), int(error["column"] or 0), message)
            elif context:  # gcc says first where it comes from, clang afterwards
                yield Problem(context.file, context.line, context.column, message)
            else:
                waiting = message
            context = None


def _is_ours(file: str) -> bool:
    return Path(file).parent == _HEADERS


def _headers_digest() -> str:
    digest = hashlib.sha256()
    for path in sorted(_HEADERS.iterdir()):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _identity(compiler: tuple[str, ...]) -> str:
    """What changes when the compiler does; asking it for its version would cost 5 ms a unit."""
    status = Path(compiler[0]).resolve().stat()
    parts = (*compiler, status.st_size, status.st_mtime_ns, platform.machine())
    return " ".join(map(str, parts))
