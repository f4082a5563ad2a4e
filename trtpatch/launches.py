"""From a contract's launch to grid and block."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from trtpatch.catalog import Patch
from trtpatch.errors import MatchError
from trtpatch.plan import Launch
from trtpatch.sizes import size_of
from trtpatch.spec.expressions import Expression, Value
from trtpatch.spec.patch import LaunchSpec

MAX_GRID = (2**31 - 1, 65535, 65535)
MAX_BLOCK_THREADS = 1024
MAX_BLOCK_DEPTH = 64


def solve_launch(patch: Patch, index: int, spec: LaunchSpec, sizes: Mapping[str, Value]) -> Launch:
    """Grid and block of a launch; the last of `over` or `grid` goes along x.

    Raises:
        MatchError: CUDA has no such grid or block.
    """
    where = ("launch", index)

    def solve(key: str, dims: Sequence[Expression]) -> list[int]:
        values = [size_of(patch, (*where, key), dim, sizes) for dim in dims]
        return values + [1] * (3 - len(values))

    block = solve("block", spec.block)
    per_thread = size_of(patch, (*where, "per_thread"), spec.per_thread, sizes)
    if spec.over:
        counts = solve("over", spec.over[::-1])
        spans = [block[0] * per_thread, block[1], block[2]]
        if 0 in spans:
            raise MatchError(patch.problem(where, f"{spec.entry}: block or per_thread is 0"))
        grid = [max(1, -(-count // span)) for count, span in zip(counts, spans, strict=True)]
    else:
        grid = [max(1, count) for count in solve("grid", spec.grid[::-1])]
    threads = block[0] * block[1] * block[2]
    if not 1 <= threads <= MAX_BLOCK_THREADS or block[2] > MAX_BLOCK_DEPTH:
        message = (
            f"{spec.entry}: a block of {threads} threads; expected 1 to {MAX_BLOCK_THREADS}, and"
            f" along z at most {MAX_BLOCK_DEPTH}"
        )
        raise MatchError(patch.problem(where, message))
    if any(count > most for count, most in zip(grid, MAX_GRID, strict=True)):
        message = (
            f"{spec.entry}: grid {tuple(grid)} is larger than CUDA's {MAX_GRID}; give each thread"
            " more with 'per_thread' or put the largest axis last"
        )
        raise MatchError(patch.problem(where, message))
    shared = size_of(patch, (*where, "shared"), spec.shared, sizes)
    return Launch(spec.entry, _triple(grid), _triple(block), shared)


def _triple(values: Sequence[int]) -> tuple[int, int, int]:
    return values[0], values[1], values[2]
