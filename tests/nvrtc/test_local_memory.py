"""No kernel keeps anything in local memory."""

from __future__ import annotations

import pytest

from tests.patch_runs import PATCHES
from tests.resources import compiled


@pytest.mark.parametrize("name", PATCHES)
def test_a_kernel_needs_no_local_memory(name: str) -> None:
    """An array that is indexed, or Args itself, may land there without being called a spill."""
    used = {kernel.name: kernel.stack_bytes for kernel in compiled(name, "sm_90").kernels}
    assert not any(used.values()), used
