"""The kernel that begins a walk."""

from __future__ import annotations

import numpy as np
import pytest

from trtpatch.compiler.cubins import Cubins
from trtpatch.executors.begin import Piece, begin_unit, launches
from trtpatch.executors.host_unit import HostUnit

ROOM = 40_000


def memory(count: int) -> list[np.ndarray]:
    """Arrays of `ROOM` bytes that start at a multiple of 16."""
    draw = np.random.default_rng(0)
    whole = draw.integers(1, 256, (count, ROOM + 16), np.uint8)
    return [row[-row.ctypes.data % 16 :][:ROOM] for row in whole]


@pytest.mark.parametrize("nbytes", [1, 16, 100, 2048, 39_990])
def test_it_brings_and_zeroes_all_pieces(nbytes: int) -> None:
    unit = HostUnit.build(begin_unit(), Cubins())
    targets, sources = memory(37), memory(40)[3:]
    before = [target.copy() for target in targets]
    pieces = [
        Piece(target.ctypes.data, nbytes, source.ctypes.data if index % 3 == 0 else 0)
        for index, (target, source) in enumerate(zip(targets, sources, strict=True))
    ]
    calls = list(launches(pieces))
    assert sum(launch.grid[1] for launch, _ in calls) == len(pieces)
    for launch, args in calls:
        unit.launch(launch, args)
    end = -(-nbytes // 16) * 16
    for index, target in enumerate(targets):
        wanted = sources[index][:end] if index % 3 == 0 else np.zeros(end, np.uint8)
        np.testing.assert_array_equal(target[:end], wanted)
        np.testing.assert_array_equal(target[end:], before[index][end:])


def test_nothing_to_fill_is_launched_all_the_same() -> None:
    """A piece of no bytes is no mistake: a plan may have no table, or nothing to zero."""
    unit = HostUnit.build(begin_unit(), Cubins())
    (target,) = memory(1)
    before = target.copy()
    ((launch, args),) = launches([Piece(target.ctypes.data, 0), Piece(0, 0)])
    unit.launch(launch, args)
    np.testing.assert_array_equal(target, before)
