"""What the tests of executor `host` share: one cache of what the C++ compiler made."""

import os
from pathlib import Path

import pytest

from tests.host_units import Bench
from trtpatch.compiler.cubins import Cubins


@pytest.fixture(scope="session")
def cubins(tmp_path_factory: pytest.TempPathFactory) -> Cubins:
    """One cache for every worker: what one has compiled, no other compiles again."""
    base = tmp_path_factory.getbasetemp()
    folder: Path = (base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base) / "kernels"
    folder.mkdir(mode=0o700, exist_ok=True)
    return Cubins(folder)


@pytest.fixture(scope="session")
def bench(cubins: Cubins) -> Bench:
    return Bench(cubins)
