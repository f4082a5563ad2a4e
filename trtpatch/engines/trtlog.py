"""TensorRT's log lines: kept while something is tried, and read for what went wrong."""

from __future__ import annotations

import importlib
import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

_log = logging.getLogger("trtpatch.tensorrt")

_MOST_LINES = 12
_OTHER_VERSION = (
    r"expecting library version|created with TensorRT-RTX version|major version does not match|"
    r"not compatible with this version of TensorRT|incompatible serialization version|"
    r"version-locked|old deserialization call|Version tag does not match"
)
_FAILURES = {
    r"(?:Cannot|could not) find plugin:?\s*(?P<what>[\w:]+)": (
        "it needs the plugin {what!r}, which is not loaded. Load its library before the engine "
        "(ctypes.CDLL), or export the model without it"
    ),
    r"expecting compute (?P<built>\S+) got compute (?P<here>[\d.]+)": (
        "it was built for a GPU of compute capability {built}, and this one has {here}. Build it "
        "again on this GPU"
    ),
    r"Expected compute capability ?>= ?(?P<what>\S+)": (
        "it was built for GPUs of compute capability {what} or later. Build it for this one"
    ),
    r"UNSUPPORTED_CC|compute capability.*not supported|[Uu]nsupported (?:SM|compute)": (
        "this TensorRT does not run it on a GPU of this compute capability. Build it for this "
        "GPU, or use a version of TensorRT that supports it"
    ),
    r"incompatible device|different models of devices": (
        "it was built for another GPU. Build it again on this one"
    ),
    _OTHER_VERSION: (
        "it was built by another version of TensorRT. Build it again with the one that runs, or "
        "install the one that built it"
    ),
    r"Platform specific tag mismatch|expectedPlatformTag": (
        "it was built on another operating system or processor. Build it again on this one"
    ),
    r"[Mm]agic ?[Tt]ag|kEXPECTED_MAGIC_TAG|Not a valid plan stream": (
        "it is no plan of this flavour of TensorRT"
    ),
    r"blobSize|kEND_OF_PLAN_MARKER|Failed to read plan": (
        "the plan is truncated or damaged. Copy or build it again"
    ),
    r"cuDNN graph compilation failed|cudnn_graph": (
        "a layer has no kernel on this GPU. If NVIDIA_TF32_OVERRIDE is 0, unset it: without TF32 "
        "TensorRT-RTX 1.4 has none for some matrix products and convolutions"
    ),
    r"out of memory|OutOfMemory|Requested size was": "the GPU has not enough free memory",
    r"driver version is insufficient|CUDA driver version": (
        "the NVIDIA driver is older than this TensorRT needs"
    ),
}
"""What TensorRT logs when a plan fails, most telling first, and what it means."""


class Log:
    """The logger of one flavour of TensorRT, for the life of the process.

    Attributes:
        logger: what TensorRT's own calls take.
    """

    def __init__(self, module: Any) -> None:
        self._open: dict[int, list[str]] = {}
        made = type("Logger", (module.ILogger,), {"log": lambda _, *line: self._line(*line)})
        self.logger: Any = made()

    @contextmanager
    def collect(self) -> Iterator[list[str]]:
        """Errors and warnings that TensorRT logs inside the block, in order."""
        lines: list[str] = []
        self._open[id(lines)] = lines
        try:
            yield lines
        finally:
            del self._open[id(lines)]

    def _line(self, severity: Any, text: str) -> None:
        name = severity.name
        if name in ("ERROR", "INTERNAL_ERROR", "WARNING"):
            text = text.strip()
            for lines in tuple(self._open.values()):
                lines.append(f"{name.lower()}: {text}")
            if name == "WARNING":
                _log.warning("%s", text)
            elif not self._open:
                _log.error("%s", text)
        elif name == "INFO":
            _log.debug("%s", text.strip())


@cache
def log_of(module_name: str) -> Log:
    """The log of a flavour, made once a process.

    TensorRT keeps the first logger that it is given and calls it, whoever else comes with another;
    one that was freed would be called all the same.
    """
    return Log(importlib.import_module(module_name))


def explain(lines: list[str]) -> str:
    """What went wrong, judged by TensorRT's own lines; empty where they are not understood."""
    for pattern, text in _FAILURES.items():
        for line in lines:
            if found := re.search(pattern, line):
                return text.format(**found.groupdict())
    return ""


def quote(lines: list[str]) -> str:
    """TensorRT's lines as the end of an error message."""
    if not lines:
        return "\nTensorRT logged nothing."
    shown = list(dict.fromkeys(lines))[:_MOST_LINES]
    return "\n".join(["\nTensorRT's log:", *(f"  {line}" for line in shown)])
