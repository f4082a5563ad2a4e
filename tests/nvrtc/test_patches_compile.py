"""Every built-in patch compiles for every architecture, without a spill and without a warning."""

from __future__ import annotations

import pytest

from tests.patch_runs import PATCHES
from tests.resources import ARCHS, TABLE, compiled, table


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("name", PATCHES)
def test_a_patch_compiles_without_spills_and_warnings(name: str, arch: str) -> None:
    cubin = compiled(name, arch)
    assert cubin.log == ""
    assert {kernel.name: kernel.spill_bytes for kernel in cubin.kernels if kernel.spill_bytes} == {}


def test_the_table_is_in_step() -> None:
    written, expected = TABLE.read_text(encoding="utf-8"), table()
    anew = "python -m tests.resources writes it anew"
    if f"by {compiled(PATCHES[0], ARCHS[0]).compiler}." in written:
        assert written == expected, anew
    assert kernels(written) == kernels(expected), anew


def kernels(text: str) -> list[list[str]]:
    """The first two columns; another release of NVRTC may count other registers."""
    return [line.split(" | ")[:2] for line in text.splitlines() if line.startswith("|")]
