"""Whether memory of the GPU comes back."""

from __future__ import annotations

import gc
from collections.abc import Callable


def growth(run: Callable[[], object], times: int) -> int:
    """Bytes that so many runs do not give back: the least of three rounds.

    What other processes take meanwhile counts as well, but not in each round.
    """
    import cupy

    def taken() -> int:
        gc.collect()
        cupy.get_default_memory_pool().free_all_blocks()
        free, total = cupy.cuda.runtime.memGetInfo()
        return int(total - free)

    rounds = []
    for _ in range(3):
        before = taken()
        for _ in range(times):
            run()
        rounds.append(taken() - before)
    return min(rounds)
