"""What the tests on a GPU share: they are skipped where there is none."""

import pytest

from trtpatch.executors import gpu_found


@pytest.fixture(scope="session", autouse=True)
def gpu() -> None:
    if not gpu_found():
        pytest.skip("no GPU, or CuPy is not installed")
