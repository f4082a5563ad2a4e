"""Every built-in patch on the host against its reference, shuffled and under both sanitizers.

Patches are found by their folders, and so are those of the examples. This is most of what CI does;
compiling takes most of its time, and the two cores share it.
"""

from __future__ import annotations

import pytest

from tests.patch_runs import PATCHES, read
from trtpatch.compiler.cubins import Cubins
from trtpatch.verify import Effort, verify

EFFORT = Effort(shuffles=4, generated=8, sanitize=True)


@pytest.mark.parametrize("name", PATCHES)
def test_a_patch_is_right_in_every_order_and_touches_nothing_else(
    name: str, cubins: Cubins
) -> None:
    outcomes = list(verify([read(name)], ["host"], effort=EFFORT, cubins=cubins))
    assert {one.executor for one in outcomes} == {"host", "host sanitized"}
    assert not [one for one in outcomes if one.skipped]
    wrong = [f"{one.executor}, {one.case}: {line}" for one in outcomes for line in one.wrong]
    assert not wrong, "\n".join(wrong)
