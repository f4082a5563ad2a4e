"""`trtpatch doctor`: it survives what is broken, and draws the right conclusions."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from trtpatch.doctor import GPU, Finding, conclude
from trtpatch.probes import PROBES


def doctor(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "trtpatch", "doctor", *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
    )


def by_topic(text: str) -> dict[str, dict]:
    return {one["topic"]: one for one in json.loads(text)["findings"]}


def module(folder: Path, name: str, text: str) -> None:
    (folder / name).mkdir()
    (folder / name / "__init__.py").write_text(text)


def test_this_machine_is_looked_at_topic_by_topic() -> None:
    run = doctor()
    assert run.returncode == 0, run.stdout
    topics = [line[:18].strip() for line in run.stdout.splitlines()]
    assert [topic for topic in topics if topic in PROBES] == list(PROBES)
    assert run.stdout.splitlines()[-1].startswith("CPU: ")
    advice = [line for line in run.stdout.splitlines() if "pip install tensorrt-lean" in line]
    assert all(line.strip() == "pip install tensorrt-lean" for line in advice)
    assert not run.stderr


def test_libraries_that_kill_python_are_findings(tmp_path: Path) -> None:
    module(tmp_path, "cupy", "import os; os.abort()")
    module(tmp_path, "tensorrt", "raise ImportError('libnvinfer.so.10: no such file')")
    module(tmp_path, "tensorrt_lean", "")
    run = doctor("--json", PYTHONPATH=str(tmp_path), TRTPATCH_CACHE=str(tmp_path / "cache"))
    assert run.returncode == 0
    found = by_topic(run.stdout)
    assert found["CuPy"]["state"] == "broken"
    assert "ends Python" in found["CuPy"]["found"]
    assert found["TensorRT"]["state"] == "broken"
    assert "libnvinfer.so.10" in found["TensorRT"]["found"]
    assert found["TensorRT lean"]["state"] == "broken"
    assert found["TensorRT dispatch"]["state"] == "missing"
    assert found["cache"]["state"] == "ok"
    assert not (tmp_path / "cache").exists()


def test_what_the_cpu_needs_is_broken(tmp_path: Path) -> None:
    module(tmp_path, "onnxruntime", "raise OSError('bad ELF')")
    module(tmp_path, "rich", "raise ImportError('gone')")
    (tmp_path / "file").touch()
    run = doctor(PYTHONPATH=str(tmp_path), TRTPATCH_CACHE=str(tmp_path / "file" / "cache"))
    assert run.returncode == 2
    assert "CPU: not ready, libraries is broken" in run.stdout
    lines = dict(line.split("  ", 1) for line in run.stdout.splitlines() if "  " in line)
    assert lines["ONNX Runtime"].startswith("broken")
    assert "bad ELF" in lines["ONNX Runtime"]
    assert "rich: ImportError: gone" in lines["libraries"]
    assert lines["cache"].startswith("broken")
    assert "Traceback" not in run.stderr


def machine(**changes: Finding) -> list[Finding]:
    """A machine with everything: an H200, a driver for CUDA 13, packages of CUDA 13."""
    findings = {topic: Finding(topic, "ok", "there") for topic in PROBES}
    findings[GPU] = Finding(GPU, "ok", "NVIDIA H200", facts={"cuda": "13.0", "arch": 90})
    findings["CuPy"] = Finding("CuPy", "ok", "14", facts={"majors": [13]})
    nvrtc = {"release": "13.0.48", "major": 13, "archs": [75, 80, 90, 120]}
    findings["NVRTC"] = Finding("NVRTC", "ok", "13.0", facts=nvrtc)
    findings["TensorRT"] = Finding("TensorRT", "ok", "10.0", facts={"builds": True})
    findings.update({one.topic: one for one in changes.values()})
    return list(findings.values())


def gpu(cuda: str, arch: int) -> Finding:
    return Finding(GPU, "ok", "a GPU", facts={"cuda": cuda, "arch": arch})


def test_a_whole_machine() -> None:
    diagnosis = conclude(machine())
    assert diagnosis.summary == "CPU: ready. GPU: ready."
    assert diagnosis.healthy


@pytest.mark.parametrize(
    ("changed", "topic", "said"),
    [
        (gpu("12.4", 90), "CuPy", "too new for the driver, which serves CUDA 12.4"),
        (gpu("12.4", 90), "NVRTC", "pip install cupy-cuda12x"),
        (gpu("13.0", 70), "NVRTC", "an older NVRTC"),
        (gpu("13.0", 150), "NVRTC", "a newer NVRTC"),
        (Finding("CuPy", "missing", "no"), "CuPy", "pip install cupy-cuda13x"),
    ],
)
def test_what_does_not_go_together(changed: Finding, topic: str, said: str) -> None:
    diagnosis = conclude(machine(changed=changed))
    (finding,) = (one for one in diagnosis.findings if one.topic == topic)
    assert finding.state != "ok"
    assert said in f"{finding.found} {finding.advice}"
    assert diagnosis.gpu.startswith("not ready")
    assert diagnosis.cpu == ""


def test_the_extra_follows_the_driver() -> None:
    findings = machine(gpu=gpu("12.8", 90), cupy=Finding("CuPy", "missing", "no"))
    (cupy,) = (one for one in conclude(findings).findings if one.topic == "CuPy")
    assert cupy.advice == "pip install cupy-cuda12x 'cuda-toolkit[cudart,nvrtc]==12.*'"


def test_nothing_but_the_required() -> None:
    bare = [replace(one, state="missing", facts={}) for one in machine()]
    required = Finding("libraries", "ok", "numpy")
    diagnosis = conclude([required if one.topic == "libraries" else one for one in bare])
    assert diagnosis.healthy
    assert "ONNX Runtime is missing" in diagnosis.cpu
    assert f"{GPU} is missing" in diagnosis.gpu


def test_no_tensorrt_at_all() -> None:
    diagnosis = conclude(machine(trt=Finding("TensorRT", "missing", "", facts={"builds": False})))
    assert "TensorRT is missing; pip install" in diagnosis.gpu
