"""The one table of TensorRT's flavours: how each is called, installed and told apart.

What a flavour can do is asked of its module (`hasattr`), never of its version.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trtpatch.errors import EngineError


@dataclass(frozen=True)
class Flavour:
    """One flavour of TensorRT.

    Attributes:
        module: name of its Python module, which is also its name here.
        product: what people call it.
        packages: where pip finds it.
        library: how the file name of its shared library begins.
        family: the family of plans that it runs, as `planfile.Header` names it.
        runs_only: whether it has no builder, by design.
    """

    module: str
    product: str
    packages: str
    library: str
    family: str
    runs_only: bool = False


FLAVOURS: tuple[Flavour, ...] = (
    Flavour("tensorrt", "TensorRT", "tensorrt", "libnvinfer.so", "tensorrt"),
    Flavour("tensorrt_rtx", "TensorRT-RTX", "tensorrt-rtx", "libtensorrt_rtx.so", "tensorrt_rtx"),
    Flavour(
        "tensorrt_lean",
        "TensorRT lean",
        "tensorrt-lean",
        "libnvinfer_lean.so",
        "tensorrt",
        runs_only=True,
    ),
    Flavour(
        "tensorrt_dispatch",
        "TensorRT dispatch",
        "tensorrt-dispatch",
        "libnvinfer_dispatch.so",
        "tensorrt",
        runs_only=True,
    ),
)


@dataclass(frozen=True)
class Found:
    """A flavour on this machine.

    Attributes:
        version: of its Python module; empty where it does not import.
        builds: whether it can build a plan from an ONNX file.
        library: the shared library in use; empty where none is found.
        why_not: why it does not import; empty where it does.
    """

    flavour: Flavour
    version: str = ""
    builds: bool = False
    library: str = ""
    why_not: str = ""

    @property
    def module(self) -> Any:
        """The flavour's Python module.

        Raises:
            EngineError: it does not import.
        """
        if self.why_not:
            raise EngineError(f"{self.flavour.product} cannot be used: {self.why_not}")
        return importlib.import_module(self.flavour.module)

    def __str__(self) -> str:
        if self.why_not:
            return f"{self.flavour.product}: {self.why_not}"
        return f"{self.flavour.product} {self.version}"


def available() -> tuple[Found, ...]:
    """Every flavour in the table's order, with its version or why it does not import."""
    return tuple(find(flavour) for flavour in FLAVOURS)


def choose(name: str, *, family: str = "", builds: bool = False) -> Found:
    """The flavour to use.

    Args:
        name: a flavour's name, or `auto`: the first of the table that imports and will do.
        family: wanted family of plans; empty or `unknown` where any will do.
        builds: whether it must be able to build plans.

    Raises:
        EngineError: there is no such flavour, or none that will do imports.
    """
    if name != "auto" and name not in {flavour.module for flavour in FLAVOURS}:
        names = ", ".join(flavour.module for flavour in FLAVOURS)
        raise EngineError(f"no TensorRT flavour is called {name!r}; there are: auto, {names}")
    wanted = [flavour for flavour in FLAVOURS if name in ("auto", flavour.module)]
    if builds:
        wanted = [flavour for flavour in wanted if not flavour.runs_only]
    if not wanted:
        builders = " or ".join(flavour.module for flavour in FLAVOURS if not flavour.runs_only)
        raise EngineError(
            f"{name} runs plans and builds none. An ONNX file takes flavour {builders}, or auto"
        )
    if family not in ("", "unknown"):
        wanted = [flavour for flavour in wanted if flavour.family == family]
    found = [find(flavour) for flavour in wanted]
    for one in found:
        if not one.why_not and (one.builds or not builds):
            return one
    task = "builds engines" if builds else "runs this plan"
    reasons = [f"  {one.flavour.module}: {one.why_not or 'has no builder'}" for one in found]
    raise EngineError("\n".join([f"no TensorRT that {task} can be used here:", *reasons]))


def find(flavour: Flavour) -> Found:
    """Import a flavour and ask it what it can do."""
    install = f"pip install {flavour.packages}"
    if importlib.util.find_spec(flavour.module) is None:
        return Found(flavour, why_not=f"it is not installed ({install})")
    try:
        module = importlib.import_module(flavour.module)
    except Exception as error:
        return Found(flavour, why_not=f"its import fails: {type(error).__name__}: {error}")
    if not hasattr(module, "Runtime"):
        where = getattr(module, "__file__", None) or "a namespace package"
        return Found(flavour, why_not=f"{where} is not it: no Runtime in the module ({install})")
    return Found(
        flavour,
        version=str(getattr(module, "__version__", "unknown")),
        builds=hasattr(module, "Builder") and hasattr(module, "OnnxParser"),
        library=_library(flavour),
    )


def _library(flavour: Flavour) -> str:
    """The shared library that this process has loaded, or the one beside the Python module."""
    try:
        for line in Path("/proc/self/maps").read_text().splitlines():
            file = line.partition("/")[2]
            if Path(file).name.startswith(flavour.library):
                return f"/{file}"
    except OSError:
        pass  # not Linux
    libs = sys.modules.get(f"{flavour.module}_libs")
    for folder in getattr(libs, "__path__", ()):
        for path in sorted(Path(folder).glob(f"*{flavour.library.split('.')[0]}*")):
            return str(path)
    return ""
