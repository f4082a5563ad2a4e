"""A patch's kernels on a GPU under NVIDIA's compute-sanitizer, which watches a process of its own.

The process is `trtpatch verify` again, with the patch's own cases alone: the tools make kernels ten
to a hundred times slower. Buffers of one region lie in one allocation of the GPU, so what leaves a
buffer but not its region is found on the host, where each has guard zones, and not here.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from trtpatch.catalog import Patch
from trtpatch.verify.checks import Outcome

TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")

_LIMIT_S = 900.0
_FOUND = 86  # the exit code when compute-sanitizer found something; none of trtpatch's own
_START = "from trtpatch.cli import main; main(prog_name='trtpatch')"

_LINE = re.compile(r"=========(?P<indent> *)(?P<text>.*)")
_NO_FINDING = re.compile(r"COMPUTE-SANITIZER|\w+ SUMMARY|Target application returned|.*print-limit")
_NOT_A_PLACE = re.compile(r"\+0x[0-9a-f]+|\[\d+ hazards?\]|Saved host backtrace.*")
_PLACES = ("at ", "and ", "in ")


def sanitize_on_gpu(patch: Patch, *, device: int) -> Iterator[Outcome]:
    """Run a patch's own cases under each of the tools.

    Yields:
        One outcome a tool, in whose faults each finding stands once.
    """
    program = find()
    for tool in TOOLS:
        if not program:
            reason = "compute-sanitizer is not installed; it comes with the CUDA toolkit"
            yield Outcome(patch.name, tool, "gpu sanitized", skipped=reason)
            continue
        started = time.perf_counter()
        faults = _run(program, tool, patch, device)
        took = time.perf_counter() - started
        yield Outcome(patch.name, tool, "gpu sanitized", faults=faults, runs=1, seconds=took)


def find() -> str | None:
    """Where compute-sanitizer is: on the path, or in the CUDA toolkit."""
    toolkit = Path(os.environ.get("CUDA_HOME") or "/usr/local/cuda") / "bin"
    return shutil.which("compute-sanitizer") or shutil.which("compute-sanitizer", path=toolkit)


def _run(program: str, tool: str, patch: Patch, device: int) -> tuple[str, ...]:
    watch = [program, "--tool", tool, "--error-exitcode", str(_FOUND), "--show-backtrace", "no"]
    verify = [sys.executable, "-c", _START, "verify", str(patch.folder.resolve())]
    verify += ["--executor", "gpu", "--device", str(device), "--generate", "0"]
    env = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(str(Path(one).absolute()) for one in sys.path),
    }
    try:
        done = subprocess.run(
            [*watch, *verify],
            capture_output=True,
            text=True,
            env=env,
            timeout=_LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return (f"{tool} was not at its end after {_LIMIT_S:g} s",)
    found = tuple(dict.fromkeys(findings(done.stdout)))
    if done.returncode and not found:
        last = " / ".join((done.stdout + done.stderr).strip().splitlines()[-5:])
        return (f"{tool} ended with code {done.returncode}: {last}",)
    return found


def findings(output: str) -> Iterator[str]:
    """What the tool found, each in a line: what, and the kernel, file and line.

    Args:
        output: what compute-sanitizer printed.
    """
    parts: list[str] = []
    for line in [*output.splitlines(), "========="]:
        match = _LINE.match(line)
        if match is None:
            continue
        text = " ".join(_NOT_A_PLACE.sub("", match["text"]).split())
        if len(match["indent"]) <= 1:
            if parts:
                yield " ".join(parts)
            parts = [text] if text and not _NO_FINDING.match(text) else []
        elif parts and text.startswith(_PLACES) and "nearest allocation" not in text:
            parts.append(text)
