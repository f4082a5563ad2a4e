"""No fault in any built-in patch, under sanitizers, in several orders."""

import numpy as np
import pytest

from tests.patch_runs import PATCHES, read
from trtpatch.sanitize import sanitize_case
from trtpatch.verify import Case, load_cases

CASES = 2
"""So many of each patch, the smallest, for time; `trtpatch verify --sanitize` takes all."""


def size(case: Case) -> int:
    given = (value if isinstance(value, list) else [value] for value in case.inputs.values())
    return sum(np.size(array) for group in given for array in group)


@pytest.mark.parametrize("name", PATCHES)
def test_sanitizers_find_nothing(name, cubins):
    patch = read(name)
    for case in sorted(load_cases(patch), key=size)[:CASES]:
        findings = sanitize_case(patch, case, cubins=cubins, shuffles=3)
        assert not findings, f"{case.name}:\n" + "\n".join(map(str, findings))
