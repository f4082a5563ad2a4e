"""Threads that share out the copying of pictures."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from typing import Optional

THREADS = min(8, os.cpu_count() or 1)
"""With the caller's: more would wait for memory."""

_Job = Callable[[], None]
_Done = SimpleQueue[Optional[BaseException]]


class Copier:
    """Runs a batch's copies, with the caller's thread as one of several."""

    def __init__(self, threads: int = THREADS) -> None:
        self._jobs: SimpleQueue[tuple[_Job, _Done] | None] = SimpleQueue()
        helpers = [
            threading.Thread(target=_serve, args=(self._jobs,), name="trtpatch-copy", daemon=True)
            for _ in range(threads - 1)
        ]
        for helper in helpers:
            helper.start()
        self.close = weakref.finalize(self, _dismiss, self._jobs, len(helpers))
        """Let the threads end; a second time does nothing."""

    def run(self, jobs: Sequence[_Job]) -> None:
        """Do all jobs, in any order, and return when all are done.

        Raises:
            BaseException: the first that a job raised; the others are done all the same.
        """
        if len(jobs) == 1:
            jobs[0]()
            return
        done: _Done = SimpleQueue()
        for job in jobs:
            self._jobs.put((job, done))
        while _do(self._next()):
            pass
        errors = [error for error in (done.get() for _ in jobs) if error is not None]
        if errors:
            raise errors[0]

    def _next(self) -> tuple[_Job, _Done] | None:
        try:
            return self._jobs.get_nowait()
        except Empty:
            return None


def _serve(jobs: SimpleQueue[tuple[_Job, _Done] | None]) -> None:
    while _do(jobs.get()):
        pass


def _do(work: tuple[_Job, _Done] | None) -> bool:
    """Do a job and tell how it ended; False where there is none."""
    if work is None:
        return False
    job, done = work
    try:
        job()
    except BaseException as error:
        done.put(error)
    else:
        done.put(None)
    return True


def _dismiss(jobs: SimpleQueue[tuple[_Job, _Done] | None], helpers: int) -> None:
    for _ in range(helpers):
        jobs.put(None)
