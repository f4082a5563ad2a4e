"""Every built-in patch compiles for every architecture, without a spill and without a warning."""

from __future__ import annotations

import pytest

from tests.patch_runs import PATCHES, read
from trtpatch.compiler import compile_unit
from trtpatch.plan import PatchStep
from trtpatch.unit import Unit, make_unit
from trtpatch.verify import load_cases, plan_case

ARCHS = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120")


def unit_of(name: str) -> Unit:
    """The patch as its first case wants it."""
    patch = read(name)
    plan = plan_case(patch, next(iter(load_cases(patch))))
    (step,) = (step for step in plan.steps if isinstance(step, PatchStep))
    return make_unit(step)


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("name", PATCHES)
def test_a_patch_compiles_without_spills_and_warnings(name: str, arch: str) -> None:
    cubin = compile_unit(unit_of(name), arch=arch)
    assert cubin.log == ""
    assert {kernel.name: kernel.spill_bytes for kernel in cubin.kernels if kernel.spill_bytes} == {}
