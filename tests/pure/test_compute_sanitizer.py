"""What compute-sanitizer prints, in the form of its versions 12 and 13, as findings of a patch."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.patch_runs import read
from trtpatch.verify.compute_sanitizer import TOOLS, findings, sanitize_on_gpu

MEMCHECK = """\
========= COMPUTE-SANITIZER
decode_mine: 7 passed
========= Invalid __global__ read of size 4 bytes
=========     at decode_mine(Args)+0x1dd40 in patches/decode_mine/kernel.cu:12
=========     by thread (0,0,0) in block (0,0,0)
=========     Access at 0x327f6c26d4 is out of bounds
=========     and is 209 bytes after the nearest allocation at 0x327f6c2600 of size 4 bytes
=========     Saved host backtrace up to driver entry point at kernel launch time
=========
========= Invalid __global__ read of size 4 bytes
=========     at decode_mine(Args)+0x1dd40 in patches/decode_mine/kernel.cu:12
=========     by thread (1,0,0) in block (0,0,0)
=========     Access at 0x327f6c26d8 is out of bounds
=========
========= Target application returned an error
========= ERROR SUMMARY: 2 errors
"""
RACECHECK = """\
========= COMPUTE-SANITIZER
========= Error: Race reported between Write access at sum(Args)+0xd790 in kernel.cu:24
=========     and Read access at sum(Args)+0xd5c0 in kernel.cu:12 [16 hazards]
=========     and Read access at sum(Args)+0xd5e0 in kernel.cu:13 [32 hazards]
=========
========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)
"""
CLEAN = "========= COMPUTE-SANITIZER\n64 passed\n========= ERROR SUMMARY: 0 errors\n"


def test_what_each_tool_finds_is_one_line_with_its_place() -> None:
    first, second = findings(MEMCHECK)
    assert first == second
    assert first.startswith("Invalid __global__ read of size 4 bytes at decode_mine(Args)")
    assert first.endswith("in patches/decode_mine/kernel.cu:12")
    (race,) = findings(RACECHECK)
    assert race.startswith("Error: Race reported between Write access at sum(Args) in kernel.cu:24")
    assert "and Read access at sum(Args) in kernel.cu:12 and Read access" in race
    assert not list(findings(CLEAN))


def pretend(folder: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    program = folder / "compute-sanitizer"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")


@pytest.mark.parametrize(
    ("script", "faults"),
    [
        ("cat <<'END'\n" + CLEAN + "END", 0),
        ("cat <<'END'\n" + MEMCHECK + "END\nexit 86", 1),
        ("echo cannot start >&2\nexit 3", 1),
    ],
    ids=["nothing", "the same twice", "no start"],
)
def test_each_tool_gives_one_outcome(
    script: str, faults: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pretend(tmp_path, script, monkeypatch)
    outcomes = list(sanitize_on_gpu(read("select_topk"), device=0))
    assert [one.case for one in outcomes] == list(TOOLS)
    assert {len(one.faults) for one in outcomes} == {faults}
    assert {one.passed for one in outcomes} == {not faults}
    if "cannot start" in script:
        assert "memcheck ended with code 3: cannot start" in outcomes[0].wrong[0]


def test_where_it_is_not_installed_it_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    outcomes = list(sanitize_on_gpu(read("select_topk"), device=0))
    assert len(outcomes) == len(TOOLS)
    assert all("compute-sanitizer is not installed" in one.skipped for one in outcomes)
