from pathlib import Path

import pytest

from tests.host_units import Bench
from trtpatch.compiler.cubins import Cubins


@pytest.fixture(scope="session")
def cubins(tmp_path_factory: pytest.TempPathFactory) -> Cubins:
    folder: Path = tmp_path_factory.mktemp("kernels")
    folder.chmod(0o700)
    return Cubins(folder)


@pytest.fixture(scope="session")
def bench(cubins: Cubins) -> Bench:
    return Bench(cubins)
