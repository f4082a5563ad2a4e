"""docs/host.md says what verify says: each fault that it shows is planted and found."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from trtpatch.catalog import Patch
from trtpatch.compiler.cubins import Cubins
from trtpatch.verify import Effort, verify

PAGE = (Path(__file__).parents[2] / "docs/host.md").read_text(encoding="utf-8")
KERNEL = re.findall(r"^```cuda\n(// A block.*?)^```", PAGE, re.DOTALL | re.MULTILINE)[0]
FAULTS = re.findall(
    r"^### (.*?)\n.*?^```diff\n(.*?)^```\n+```text\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE
)
CONTRACT = """\
summary: Sums of rows
kind: sum
inputs: {values: {dtype: float32, shape: [N, K]}}
outputs: {sums: {dtype: float32, shape: [N]}}
launch: [{entry: sum_rows, grid: [N], block: 128}]
tolerance: {sums: exact}
"""
REFERENCE = "def sum_rows(args):\n    args.sums[...] = args.values.sum(axis=1)\n"
CASES = """\
import numpy as np
from trtpatch.verify import Case

def cases():
    yield Case("whole numbers", {"values": np.arange(303, dtype=np.float32).reshape(3, 101)})
"""


def said_of(kernel: str, folder: Path, cubins: Cubins) -> set[str]:
    patch = folder / "mine/sum_rows"
    patch.mkdir(parents=True)
    texts = {"patch.yaml": CONTRACT, "reference.py": REFERENCE, "cases.py": CASES}
    for name, text in {**texts, "kernel.cu": kernel}.items():
        (patch / name).write_text(text)
    effort = Effort(generated=0, sanitize=True)
    found = verify([Patch.read(patch)], ["host"], effort=effort, cubins=cubins)
    return {_plain(line) for outcome in found for line in outcome.wrong}


def _plain(line: str) -> str:
    """A line without what differs between compilers."""
    return line.replace("struct ", "")


def test_all_faults_of_the_page_are_read() -> None:
    assert len(FAULTS) == PAGE.count("\n### ") >= 9


def test_the_kernel_has_none(tmp_path: Path, cubins: Cubins) -> None:
    assert not said_of(KERNEL, tmp_path, cubins)


@pytest.mark.parametrize(("title", "diff", "report"), FAULTS, ids=[fault[0] for fault in FAULTS])
def test_a_fault_is_said_as_the_page_has_it(
    title: str, diff: str, report: str, tmp_path: Path, cubins: Cubins
) -> None:
    old, new = (
        "".join(line[1:] for line in diff.splitlines(keepends=True) if line[0] == mark)
        for mark in "-+"
    )
    assert KERNEL.count(old) == 1, title
    said = said_of(KERNEL.replace(old, new), tmp_path, cubins)
    assert {_plain(line) for line in report.splitlines()} <= said
