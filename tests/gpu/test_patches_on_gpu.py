"""Every built-in patch's cases on the GPU, within the contract's tolerances of its reference."""

import numpy as np
import pytest

from tests.patch_runs import PATCHES, read
from trtpatch.verify import load_cases, plan_case, run_case, verify


@pytest.mark.parametrize("name", PATCHES)
def test_kernels_agree_with_their_reference(name: str) -> None:
    outcomes = list(verify([read(name)], ["gpu"]))
    assert outcomes
    assert not [(one.case, one.wrong) for one in outcomes if not one.passed]


@pytest.mark.parametrize("name", PATCHES)
def test_kernels_give_the_same_bits_on_every_run(name: str) -> None:
    from trtpatch.verify import in_order

    patch = read(name)
    for case in load_cases(patch):
        plan = plan_case(patch, case)
        first, second = (in_order(run_case(plan, case, "gpu")) for _ in range(2))
        for field, array in first.items():
            np.testing.assert_array_equal(array, second[field], err_msg=f"{case.name}: {field}")
