"""No fault in any case of any built-in patch, under sanitizers, in several orders."""

import pytest

from tests.patch_runs import PATCHES, read
from trtpatch.sanitize import sanitize_case
from trtpatch.verify import load_cases


@pytest.mark.parametrize("name", PATCHES)
def test_sanitizers_find_nothing(name, cubins):
    patch = read(name)
    for case in load_cases(patch):
        findings = sanitize_case(patch, case, cubins=cubins, shuffles=3)
        assert not findings, f"{case.name}:\n" + "\n".join(map(str, findings))
