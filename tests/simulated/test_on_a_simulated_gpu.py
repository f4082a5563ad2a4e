"""The tests of executor `gpu`, on a stand-in for CuPy whose streams run as late as they may.

What only CUDA itself can show, such as whether an engine can be captured, a GPU shows.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

_HERE = Path(__file__).parent
_ROOT = _HERE.parents[1]
_OTHER = ("real_engine", "pytorch", "no_memory_grows")  # for a real one


def run(file: str, order: str) -> str:
    tests = _ROOT / "tests/gpu" / f"test_{file}_on_gpu.py"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.simulated.plugin"]
    command += ["-p", "no:cacheprovider", "-k", " and ".join(f"not {name}" for name in _OTHER)]
    packages = [str(_HERE / "packages"), str(_ROOT), os.environ.get("PYTHONPATH", "")]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, packages)),
        "SIMULATED_ORDER": order,
    }
    command.append(str(tests))
    done = subprocess.run(command, cwd=_ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()[-1]


@pytest.mark.parametrize(
    ("file", "order"),
    [
        ("graph", "late"),
        ("graph", "random"),
        ("life", "late"),
        ("life", "random"),
        ("results", "late"),
        ("results", "random"),
        ("pipeline", "late"),
        ("shapes", "late"),
    ],
)
def test_on_a_simulated_gpu(file: str, order: str, assets: Path) -> None:
    said = run(file, order)
    assert "passed" in said
    assert "skipped" not in said


def test_it_tells_a_wait_that_is_missing(tmp_path: Path) -> None:
    """The stand-in itself: a copy back that nobody waits for does not give what was copied."""
    script = """
import cupy, numpy as np
first, second = cupy.cuda.Stream(non_blocking=True), cupy.cuda.Stream(non_blocking=True)
runtime, source = cupy.cuda.runtime, np.arange(1, 9, dtype=np.uint8)
for waits in (False, True):
    with first:
        device = cupy.zeros(8, np.uint8)
        runtime.memcpyAsync(device.data.ptr, source.ctypes.data, 8, 1, first.ptr)
        computed = first.record()
    if waits:
        second.wait_event(computed)
    print(device.get(stream=second).tolist() == source.tolist())
"""
    environment = {**os.environ, "PYTHONPATH": f"{_HERE / 'packages'}{os.pathsep}{_ROOT}"}
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]
