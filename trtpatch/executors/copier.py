"""Threads that share out the copying of pictures."""

from __future__ import annotations

import os
import threading
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from queue import SimpleQueue

Job = Callable[[], None]


def _processors() -> int:
    """Those that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on Linux
        return os.cpu_count() or 1


THREADS = min(4, _processors())
"""With the caller's: more would wait for memory and for each other (`benchmarks/copies.py`)."""


class Copier:
    """Runs jobs on the caller's thread and on helpers, which start when they are first needed."""

    def __init__(self, threads: int = THREADS) -> None:
        self._invitations: SimpleQueue[_Batch | None] = SimpleQueue()
        self._helpers = threads - 1
        self._starting = threading.Lock()
        self._started = False

    def run(self, jobs: Sequence[Job]) -> None:
        """Do all jobs, in any order; no job is under way any more when this ends.

        Where helpers are late, or are gone as in a process that was forked, the caller does it all.

        Raises:
            BaseException: the first that a job raised, or an interrupt that came meanwhile; jobs
                that had not begun are left undone.
        """
        batch = _Batch(jobs)
        try:
            self._invite(batch, min(self._helpers, len(jobs) - 1))
            batch.work()
        finally:
            batch.end()
        if batch.errors:
            try:
                raise batch.errors[0]
            finally:
                del batch  # or the error and its traceback would keep each other

    def _invite(self, batch: _Batch, count: int) -> None:
        if count > 0 and not self._started:
            self._start()
        for _ in range(count):
            self._invitations.put(batch)

    def _start(self) -> None:
        with self._starting:
            if self._started:
                return
            self._started = True
            weakref.finalize(self, _dismiss, self._invitations, self._helpers)
            for _ in range(self._helpers):
                threading.Thread(
                    target=_help, args=(self._invitations,), name="trtpatch-copy", daemon=True
                ).start()


class _Batch:
    """Jobs that several threads take from.

    A helper enters before it takes a job. So once no job is left to be taken, whoever is under way
    has entered; those that come later find nothing.
    """

    def __init__(self, jobs: Sequence[Job]) -> None:
        self.errors: list[BaseException] = []
        self._jobs = deque(jobs)
        self._entered: list[None] = []
        self._left: list[None] = []
        self._told: SimpleQueue[None] = SimpleQueue()

    def help(self) -> None:
        """Take part as a helper."""
        self._entered.append(None)
        self.work()
        self._left.append(None)
        self._told.put(None)

    def work(self) -> None:
        """Do jobs until none is left."""
        while True:
            try:
                job = self._jobs.popleft()
            except IndexError:
                return
            try:
                job()
            except BaseException as error:
                self.errors.append(error)
                self._jobs.clear()

    def end(self) -> None:
        """Let no job begin any more, and wait for those that are under way."""
        self._jobs.clear()
        while len(self._left) < len(self._entered):
            try:
                self._told.get()
            except BaseException as error:  # an interrupt has to wait: memory is being written
                self.errors.append(error)


def _help(invitations: SimpleQueue[_Batch | None]) -> None:
    while (batch := invitations.get()) is not None:
        batch.help()
        del batch  # and so what its jobs hold


def _dismiss(invitations: SimpleQueue[_Batch | None], helpers: int) -> None:
    for _ in range(helpers):
        invitations.put(None)


COPIER = Copier()
"""That of the process: pipelines share its threads."""
