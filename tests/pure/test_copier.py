"""Jobs shared out among threads."""

from __future__ import annotations

import gc
import os
import signal
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


def test_after_an_error_nothing_is_under_way() -> None:
    copier, begun, ended = Copier(3), [], []

    def job(index: int) -> None:
        begun.append(index)
        if index == 4:
            raise MemoryError("no memory")
        time.sleep(0.01)
        ended.append(index)

    for _ in range(2):
        begun.clear()
        ended.clear()
        with pytest.raises(MemoryError, match="no memory"):
            copier.run([partial(job, index) for index in range(30)])
        assert sorted(ended) == sorted(set(begun) - {4})
        assert len(begun) < 30


def test_an_interrupt_waits_for_what_is_under_way() -> None:
    """The caller is interrupted while he waits for a helper."""
    copier, main = Copier(2), threading.main_thread()
    taken, ended = threading.Event(), threading.Event()

    def job() -> None:
        if threading.current_thread() is main:
            taken.wait(10)
            threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
        else:
            taken.set()
            time.sleep(0.5)
            ended.set()

    with pytest.raises(KeyboardInterrupt):
        copier.run([job, job])
    assert ended.is_set()


def test_without_its_helpers_the_caller_does_it_all() -> None:
    """As in a process that was forked from one whose helpers had started."""
    copier = Copier(4)
    copier._started = True
    done: list[int] = []
    copier.run([partial(done.append, index) for index in range(10)])
    assert done == list(range(10))


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


def test_its_threads_start_when_needed_and_end_with_it() -> None:
    before, copier = helpers(), Copier(4)
    copier.run([lambda: None])
    assert helpers() == before
    copier.run([lambda: None] * 2)
    assert len(helpers() - before) == 3
    del copier
    gc.collect()
    assert ended(before)
