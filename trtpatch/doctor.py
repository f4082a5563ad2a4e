"""What this machine has for trtpatch, what it lacks, and how to install that.

Every probe runs in a process of its own: a library that dies of a segmentation fault or hangs when
it is imported is a finding, not the end.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from trtpatch.extras import install

State = Literal["ok", "missing", "broken"]

GPU = "NVIDIA GPU"
"""The topic that others are held against."""

_TIMEOUT_S = 90
_AT_ONCE = 4
_CHILD = (
    "import sys; name, *sys.path = sys.argv[1:];from trtpatch import doctor; doctor.answer(name)"
)


@dataclass(frozen=True)
class Finding:
    """What one look at the machine showed.

    Attributes:
        topic: what was looked at.
        state: `missing` where it is not there, `broken` where it is and does not work.
        found: what was found, in words.
        advice: what to do, or empty.
        facts: the same for programs.
    """

    topic: str
    state: State
    found: str
    advice: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Diagnosis:
    """All findings.

    Attributes:
        cpu: what keeps pipelines from running on the CPU, or empty.
        gpu: what keeps pipelines from running on a GPU, or empty.
        healthy: False where something that the CPU needs is there and broken.
    """

    findings: tuple[Finding, ...]
    cpu: str
    gpu: str
    healthy: bool

    @property
    def summary(self) -> str:
        """One line for people."""
        cpu, gpu = self.cpu or "ready", self.gpu or "ready"
        return f"CPU: {cpu}. GPU: {gpu}."


def diagnose() -> Diagnosis:
    """Look at everything; takes a few seconds and raises nothing."""
    from trtpatch.probes import PROBES

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        answers = pool.map(_ask, PROBES)
        findings = [finding for answer in answers for finding in answer]
    return conclude(findings)


def answer(name: str) -> None:
    """In the process of a probe: run it and print what it found as the last line."""
    from trtpatch.probes import PROBES

    findings = [asdict(one) for one in PROBES[name]()]
    sys.stdout.write("\n" + json.dumps(findings) + "\n")


def _ask(name: str) -> list[Finding]:
    """Run one probe in a process of its own."""
    command = [sys.executable, "-W", "ignore", "-c", _CHILD, name, *sys.path]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        return [Finding(name, "broken", f"looking at it hangs: no answer in {_TIMEOUT_S} s")]
    except OSError as error:
        return [Finding(name, "broken", f"cannot be looked at: {error}")]
    if done.returncode:
        said = done.stderr.strip().splitlines()[-1:] or ["it said nothing"]
        how = f"signal {-done.returncode}" if done.returncode < 0 else f"code {done.returncode}"
        return [Finding(name, "broken", f"looking at it ends Python ({how}): {said[0]}")]
    return [Finding(**one) for one in json.loads(done.stdout.strip().splitlines()[-1])]


def conclude(findings: Sequence[Finding]) -> Diagnosis:
    """Hold the findings against each other and say what can run."""
    checked = [_compared(one, {other.topic: other for other in findings}) for one in findings]
    by_topic = {one.topic: one for one in checked}
    required, ort = by_topic["libraries"], by_topic["ONNX Runtime"]
    cpu = _first_wrong([required, ort])
    flavours = [one for one in checked if "builds" in one.facts]
    gpu = _first_wrong(
        [
            required,
            by_topic[GPU],
            by_topic["CuPy"],
            by_topic["NVRTC"],
            *_one_that_works(flavours),
        ]
    )
    healthy = required.state == "ok" and ort.state != "broken"
    return Diagnosis(tuple(checked), cpu, gpu, healthy)


def _first_wrong(findings: Sequence[Finding]) -> str:
    for one in findings:
        if one.state != "ok":
            how = f"; {one.advice}" if one.advice else ""
            return f"not ready, {one.topic} is {one.state}{how}"
    return ""


def _one_that_works(flavours: Sequence[Finding]) -> list[Finding]:
    working = [one for one in flavours if one.state == "ok"]
    return working or [Finding("TensorRT", "missing", "", f"{install('trt')}, or tensorrt-rtx")]


def _compared(one: Finding, others: Mapping[str, Finding]) -> Finding:
    compare: Callable[[Finding, Mapping[str, Any]], Finding] | None = _COMPARED.get(one.topic)
    gpu = others[GPU].facts if GPU in others else {}
    return compare(one, gpu) if compare else one


def _cupy(cupy: Finding, gpu: Mapping[str, Any]) -> Finding:
    if cupy.state != "ok":
        return replace(cupy, advice=cupy.advice or _for_driver(gpu))
    newest = max(cupy.facts.get("majors", ()), default=0)
    if gpu and newest > _driver_major(gpu):
        found = f"{cupy.found}; too new for the driver, which serves CUDA {gpu['cuda']}"
        return replace(cupy, state="broken", found=found, advice=_for_driver(gpu))
    return cupy


def _nvrtc(nvrtc: Finding, gpu: Mapping[str, Any]) -> Finding:
    if nvrtc.state != "ok" or not gpu:
        return nvrtc
    arch, known = gpu["arch"], nvrtc.facts["archs"]
    if arch not in known:
        wanted, extra = ("an older", "cu12") if arch < min(known) else ("a newer", "cu13")
        found = f"{nvrtc.found}; the GPU is sm_{arch}"
        advice = f"install {wanted} NVRTC: {install(extra)}"
        return replace(nvrtc, state="broken", found=found, advice=advice)
    if nvrtc.facts["major"] > _driver_major(gpu):
        found = f"{nvrtc.found}; too new for the driver, which serves CUDA {gpu['cuda']}"
        advice = f"{_for_driver(gpu)}, or a newer driver"
        return replace(nvrtc, state="broken", found=found, advice=advice)
    return nvrtc


def _for_driver(gpu: Mapping[str, Any]) -> str:
    return install("cu13" if _driver_major(gpu) >= 13 else "cu12")


def _driver_major(gpu: Mapping[str, Any]) -> int:
    return int(gpu["cuda"].partition(".")[0]) if gpu else 13


_COMPARED = {"CuPy": _cupy, "NVRTC": _nvrtc}
