"""The looks that `doctor` takes at a machine, each run in a process of its own."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import os
import platform
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from trtpatch.doctor import GPU, Finding
from trtpatch.extras import install

_REQUIRED = {
    "numpy": "numpy",
    "yaml": "pyyaml",
    "pydantic": "pydantic",
    "click": "click",
    "rich": "rich",
    "PIL": "pillow",
}
"""Modules that nothing works without, and their packages."""
_MAJOR_IN_NAME = re.compile(r"(?:^cupy-cuda(\d\d)x$)|(?:^(?:nvidia|tensorrt)-.*-?cu(\d\d)\b)")
_MAJOR_IN_VERSION = re.compile(r"^(?:nvidia-cuda-(?:runtime|nvrtc|cccl|crt)|cuda-toolkit)$")


def _python() -> list[Finding]:
    from trtpatch import __version__

    found = f"trtpatch {__version__}, Python {platform.python_version()}, {platform.platform()}"
    return [Finding("Python", "ok", found, facts={"executable": sys.executable})]


def _libraries() -> list[Finding]:
    """The libraries that nothing works without."""
    versions, wrong, packages = [], [], []
    for name, package in _REQUIRED.items():
        try:
            module = importlib.import_module(name)
        except Exception as error:
            wrong.append(f"{name}: {type(error).__name__}: {error}")
            packages.append(package)
        else:
            versions.append(f"{name} {getattr(module, '__version__', '')}".strip())
    if wrong:
        advice = f"pip install --force-reinstall {' '.join(packages)}"
        return [Finding("libraries", "broken", "; ".join(wrong), advice)]
    return [Finding("libraries", "ok", ", ".join(versions))]


def _ort() -> list[Finding]:
    topic = "ONNX Runtime"
    if importlib.util.find_spec("onnxruntime") is None:
        return [Finding(topic, "missing", "runs ONNX files on the CPU", install("cpu"))]
    try:
        import onnxruntime

        providers = onnxruntime.get_available_providers()
    except Exception as error:
        found = f"its import fails: {type(error).__name__}: {error}"
        return [Finding(topic, "broken", found, f"{install('cpu')} --force-reinstall")]
    return [Finding(topic, "ok", f"{onnxruntime.__version__} with {', '.join(providers)}")]


def _gpu() -> list[Finding]:
    from trtpatch.engines.device import find_gpu
    from trtpatch.errors import EngineError

    gpus: list[Any] = []
    try:
        gpus.append(find_gpu(0))
        while True:
            gpus.append(find_gpu(len(gpus)))
    except EngineError as error:
        if not gpus:
            return [Finding(GPU, "missing", str(error))]
    names = "; ".join(f"{gpu.ordinal}: {gpu.name} (sm_{_arch(gpu)})" for gpu in gpus)
    found = f"{names}; driver {_driver()}, which serves CUDA {gpus[0].cuda}"
    facts = {"cuda": gpus[0].cuda, "arch": _arch(gpus[0]), "names": [gpu.name for gpu in gpus]}
    return [Finding(GPU, "ok", found, facts=facts)]


def _arch(gpu: Any) -> int:
    return int(gpu.compute[0] * 10 + gpu.compute[1])


def _driver() -> str:
    try:
        return Path("/sys/module/nvidia/version").read_text(encoding="ascii").strip()
    except OSError:
        return "of unknown version"


def _nvrtc() -> list[Finding]:
    from trtpatch.compiler import nvrtc
    from trtpatch.errors import CompileError

    try:
        library = nvrtc.load()
    except CompileError as error:
        state: Any = "broken" if nvrtc.installed() else "missing"
        return [Finding("NVRTC", state, str(error).partition(". Install ")[0], install("nvrtc"))]
    archs = f"sm_{library.archs[0]} to sm_{library.archs[-1]}"
    found = f"{library.release}, compiles for {archs}, {library.path}"
    major = int(library.release.partition(".")[0])
    facts = {"release": library.release, "major": major, "archs": library.archs}
    return [Finding("NVRTC", "ok", found, facts=facts)]


def _headers() -> list[Finding]:
    """CUDA's headers; kernels here include none, CuPy's own do."""
    topic, advice = "CUDA headers", f"only CuPy's own kernels need them: {install('cu13')}"
    if importlib.util.find_spec("cuda") is None:
        return [Finding(topic, "missing", "not looked for without cuda-pathfinder", advice)]
    try:
        pathfinder = importlib.import_module("cuda.pathfinder")
        folder = pathfinder.find_nvidia_header_directory("cudart")
    except Exception as error:
        return [Finding(topic, "missing", f"{type(error).__name__}: {error}", advice)]
    if not folder:
        return [Finding(topic, "missing", "no cuda_runtime.h is found", advice)]
    return [Finding(topic, "ok", str(folder))]


def _cupy() -> list[Finding]:
    packages = sorted(name for name, _ in _packages() if re.fullmatch(r"cupy(-.*)?", name))
    if importlib.util.find_spec("cupy") is None:
        return [Finding("CuPy", "missing", "runs patches on a GPU", "")]
    if len(packages) > 1:
        advice = f"pip uninstall {' '.join(packages)}; then install one again"
        found = f"{' and '.join(packages)} overwrite each other"
        return [Finding("CuPy", "broken", found, advice)]
    try:
        import cupy

        runtime = cupy.cuda.runtime.runtimeGetVersion()
    except Exception as error:
        return [Finding("CuPy", "broken", f"its import fails: {type(error).__name__}: {error}")]
    found = f"{cupy.__version__} ({', '.join(packages)}), CUDA {runtime // 1000} runtime"
    return [Finding("CuPy", "ok", found, facts={"majors": [runtime // 1000]})]


def _flavour(module: str) -> Callable[[], list[Finding]]:
    def probe() -> list[Finding]:
        from trtpatch.engines.flavours import FLAVOURS, find

        flavour = next(one for one in FLAVOURS if one.module == module)
        found = find(flavour)
        facts = {"builds": found.builds, "version": found.version, "library": found.library}
        if found.why_not:
            if importlib.util.find_spec(module) is not None:
                return [Finding(flavour.product, "broken", found.why_not, facts=facts)]
            advice = f"pip install {flavour.packages}"
            return [Finding(flavour.product, "missing", "not installed", advice, facts)]
        builds = "builds and runs engines" if found.builds else "runs engines"
        library = f", {found.library}" if found.library else ""
        return [Finding(flavour.product, "ok", f"{found.version}, {builds}{library}", facts=facts)]

    return probe


def _cuda_majors() -> list[Finding]:
    """The CUDA majors that packages bring, and that one process gets when it loads them all."""
    from trtpatch.compiler import nvrtc
    from trtpatch.engines.flavours import available

    brought: dict[int, list[str]] = {}
    for name, version in sorted(_packages()):
        major = _major(name, version)
        if major:
            brought.setdefault(major, []).append(name)
    for load in (lambda: importlib.import_module("cupy"), available, nvrtc.load):
        try:
            load()
        except Exception:
            continue
    loaded = nvrtc.cuda_majors()
    facts = {"installed": brought, "loaded": {str(major): file for major, file in loaded.items()}}
    if not brought and not loaded:
        return [Finding("CUDA majors", "ok", "no CUDA packages are installed", facts=facts)]
    parts = [f"CUDA {major}: {_some(names)}" for major, names in sorted(brought.items())]
    if loaded:
        parts.append(f"in one process: {' and '.join(map(str, sorted(loaded)))}")
    if len(brought) > 1 or len(loaded) > 1:
        advice = "install packages of one CUDA major, as the driver allows"
        state: Any = "broken" if len(loaded) > 1 else "ok"
        return [Finding("CUDA majors", state, "; ".join(parts), advice, facts)]
    return [Finding("CUDA majors", "ok", "; ".join(parts), facts=facts)]


def _packages() -> set[tuple[str, str]]:
    """Name and version of every installed distribution, the name in its normal form."""
    found = set()
    for one in importlib.metadata.distributions():
        name = one.metadata["Name"]
        if name:
            found.add((re.sub(r"[-_.]+", "-", name).lower(), one.version))
    return found


def _major(name: str, version: str) -> int:
    """The CUDA major that a package belongs to; 0 where it tells none."""
    if match := _MAJOR_IN_NAME.search(name):
        return int(match[1] or match[2])
    if _MAJOR_IN_VERSION.match(name):
        return int(version.partition(".")[0])
    if name == "torch" and (match := re.search(r"\+cu(\d\d)", version)):
        return int(match[1])
    return 0


def _some(names: list[str], most: int = 4) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _compiler() -> list[Finding]:
    from trtpatch.errors import CompileError
    from trtpatch.executors.host_compiler import find_compiler

    topic = "C++ compiler"
    try:
        command = find_compiler()
    except CompileError as error:
        advice = str(error).partition("found. ")[2]
        return [Finding(topic, "missing", "executor 'host' needs one", advice)]
    version = subprocess.run(
        [*command, "--version"], capture_output=True, text=True, timeout=20, check=False
    )
    if version.returncode:
        return [Finding(topic, "broken", f"{command[0]} --version fails")]
    return [Finding(topic, "ok", f"{command[0]}: {version.stdout.splitlines()[0]}")]


def _cache() -> list[Finding]:
    """The folder of compiled kernels and built engines; nothing is made in it."""
    from trtpatch.compiler.cubins import cache_root

    advice = "set TRTPATCH_CACHE to a folder of your own"
    try:
        root = cache_root()
    except (OSError, RuntimeError) as error:
        return [Finding("cache", "broken", f"no folder for it: {error}", advice)]
    there = next(one for one in (root, *root.parents) if one.exists())
    if not os.access(there, os.W_OK | os.X_OK):
        return [Finding("cache", "broken", f"{there} cannot be written", advice)]
    if there != root:
        return [Finding("cache", "ok", f"{root}, to be made when it is needed")]
    status = root.stat()
    if hasattr(os, "geteuid") and status.st_uid != os.geteuid():
        return [Finding("cache", "broken", f"{root} belongs to user {status.st_uid}", advice)]
    size = sum(file.stat().st_size for file in root.rglob("*") if file.is_file())
    return [Finding("cache", "ok", f"{root}, {size / 2**20:.1f} MiB, yours and writable")]


PROBES: dict[str, Callable[[], list[Finding]]] = {
    "Python": _python,
    "libraries": _libraries,
    "ONNX Runtime": _ort,
    "C++ compiler": _compiler,
    "cache": _cache,
    GPU: _gpu,
    "NVRTC": _nvrtc,
    "CUDA headers": _headers,
    "CuPy": _cupy,
    "CUDA majors": _cuda_majors,
    "TensorRT": _flavour("tensorrt"),
    "TensorRT-RTX": _flavour("tensorrt_rtx"),
    "TensorRT lean": _flavour("tensorrt_lean"),
    "TensorRT dispatch": _flavour("tensorrt_dispatch"),
}
"""By topic, in the order of the table."""
