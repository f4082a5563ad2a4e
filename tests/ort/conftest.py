"""What several of the tests with ONNX Runtime share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import trtpatch
from tests.colours import EXECUTORS, pipeline_file


@pytest.fixture(params=EXECUTORS)
def pipeline(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[trtpatch.Pipeline]:
    with trtpatch.load(pipeline_file(tmp_path), executor=request.param) as loaded:
        yield loaded
