"""`clear: true`: kernels that count upwards find zeros in every frame, wherever the tensor lies."""

from pathlib import Path

import pytest

from tests.cleared import counted_input, counted_result


@pytest.mark.parametrize("executor", ["cpu", "host"])
def test_a_result_is_cleared_before_each_frame(tmp_path: Path, executor: str) -> None:
    assert counted_result(tmp_path, executor) == [[1], [1]]


@pytest.mark.parametrize("executor", ["cpu", "host"])
def test_an_input_of_the_engine_is_cleared_before_each_frame(tmp_path: Path, executor: str) -> None:
    assert counted_input(tmp_path, executor) == [[1], [1]]
