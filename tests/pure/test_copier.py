"""Jobs shared out among threads."""

from __future__ import annotations

import gc
import threading
import time
from functools import partial

import pytest

from trtpatch.executors.copier import Copier


def helpers() -> set[threading.Thread]:
    return {one for one in threading.enumerate() if one.name == "trtpatch-copy"}


def ended(before: set[threading.Thread]) -> bool:
    """Whether no helper is left but those that were there."""
    until = time.monotonic() + 10
    while helpers() - before and time.monotonic() < until:
        time.sleep(0.01)
    return not helpers() - before


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("count", [0, 1, 2, 40])
def test_every_job_is_done_when_it_returns(threads: int, count: int) -> None:
    copier, done = Copier(threads), [0] * count

    def job(index: int) -> None:
        time.sleep(0.001)
        done[index] += 1

    copier.run([partial(job, index) for index in range(count)])
    assert done == [1] * count


def test_an_error_is_raised_when_the_others_are_done() -> None:
    copier, done = Copier(3), []

    def job(index: int) -> None:
        if index == 1:
            raise MemoryError("no memory")
        time.sleep(0.01)
        done.append(index)

    for _ in range(2):
        done.clear()
        with pytest.raises(MemoryError, match="no memory"):
            copier.run([partial(job, index) for index in range(6)])
        assert sorted(done) == [0, 2, 3, 4, 5]


def test_callers_do_not_wait_for_each_others_end() -> None:
    """A caller may do another's jobs, but comes back with its own."""
    copier = Copier(3)
    counts = dict.fromkeys(range(4), 0)
    lock = threading.Lock()

    def job(name: int) -> None:
        with lock:
            counts[name] += 1

    def call(name: int) -> None:
        for turn in range(1, 51):
            copier.run([partial(job, name)] * 7)
            assert counts[name] == 7 * turn

    callers = [threading.Thread(target=call, args=(name,)) for name in counts]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert counts == dict.fromkeys(counts, 350)


def test_its_threads_end_with_it() -> None:
    before = helpers()
    copier = Copier(4)
    assert len(helpers() - before) == 3
    copier.close()
    copier.close()
    assert ended(before)
    forgotten = Copier(4)
    assert len(helpers() - before) == 3
    del forgotten
    gc.collect()
    assert ended(before)
