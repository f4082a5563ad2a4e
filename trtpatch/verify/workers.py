"""Checks in processes of their own: a kernel that crashes or hangs ends its process, not verify.

A worker is `serve` in a Python of its own. It reads pickled checks from its standard input and
writes pickled outcomes; both ends are the same installation of trtpatch.
"""

from __future__ import annotations

import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from trtpatch.compiler.cubins import Cubins
from trtpatch.verify.checks import Check, Outcome, run_check

_ENDS = {
    "compile": "the patch does not compile",
    "hang": "another case of the patch was not at its end in time",
}
"""Why no further case of a patch is looked at."""

_UNITS_A_WORKER = 16
"""Libraries stay loaded, with a stack for each thread of their largest block."""


_LATE = (
    "was not at its end after {:g} s: it loops without end, or waits for a thread of another"
    " block, or has much to do and needs a longer --timeout"
)


class Workers:
    """Processes that run checks; a context, at whose end they end."""

    def __init__(self, count: int, cubins: Cubins) -> None:
        """Start nothing yet.

        Args:
            count: how many checks run at once.
            cubins: the cache of compiled kernels.
        """
        self._all = [_Worker(cubins.folder) for _ in range(count)]
        self._ended: dict[tuple[str, str], str] = {}  # by patch and where
        self._idle: queue.SimpleQueue[_Worker] = queue.SimpleQueue()
        for worker in self._all:
            self._idle.put(worker)

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._all:
            worker.stop()

    def run(self, groups: Sequence[Sequence[Check]]) -> Iterator[Outcome]:
        """Run groups of checks, each by one worker, one check after another.

        Args:
            groups: checks of one unit each, which so is compiled once.

        Yields:
            One outcome for each check, in order. It is skipped where an earlier one told of the
            whole patch.
        """
        pool = ThreadPoolExecutor(len(self._all))
        try:
            for outcomes in pool.map(self._run_group, groups):
                yield from outcomes
        finally:
            pool.shutdown(wait=False, cancel_futures=True)

    def _run_group(self, group: Sequence[Check]) -> list[Outcome]:
        worker = self._idle.get()
        try:
            return [self._run_check(worker, check) for check in group]
        finally:
            worker.count_group()
            self._idle.put(worker)

    def _run_check(self, worker: _Worker, check: Check) -> Outcome:
        if reason := self._ended.get((check.patch.name, check.where)):
            return check.outcome((), (), skipped=reason)
        outcome = worker.run(check)
        if outcome.ends:
            alike = ("host", "host sanitized") if outcome.ends == "compile" else (check.where,)
            for where in alike:
                self._ended[check.patch.name, where] = _ENDS[outcome.ends]
        return outcome


class _Worker:
    """A process that runs checks, started when it is needed, and again when it has ended."""

    def __init__(self, cache: Path | None) -> None:
        self._cache = cache
        self._process: subprocess.Popen[bytes] | None = None
        self._groups = 0

    def run(self, check: Check) -> Outcome:
        """Run a check; a process that ends meanwhile is a fault of it."""
        started = time.perf_counter()
        process = self._process = self._process or self._start()
        assert process.stdin is not None
        assert process.stdout is not None
        late = threading.Event()
        timer = threading.Timer(check.limit_s, _end, (process, late))
        timer.start()
        try:
            pickle.dump(check, process.stdin)
            process.stdin.flush()
            outcome: Outcome = pickle.load(process.stdout)
        except (EOFError, OSError, pickle.UnpicklingError):
            self.stop()
            if late.is_set():
                outcome = check.outcome((), [_LATE.format(check.limit_s)], ends="hang")
            else:
                outcome = check.outcome((), [_fate(process.returncode)])
            return replace(outcome, seconds=time.perf_counter() - started)
        finally:
            timer.cancel()
        return outcome

    def count_group(self) -> None:
        """Count a group; end the process when it has loaded many libraries."""
        self._groups += 1
        if self._groups % _UNITS_A_WORKER == 0:
            self.stop()

    def stop(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            with suppress(OSError), process:  # closes the pipes and waits
                pass

    def _start(self) -> subprocess.Popen[bytes]:
        start = f"import sys; from {__name__} import serve; serve(sys.argv[1])"
        command = [sys.executable, "-c", start, str(self._cache or "")]
        path = os.pathsep.join(str(Path(one).absolute()) for one in sys.path)
        env = {**os.environ, "PYTHONPATH": path}
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env)


def _end(process: subprocess.Popen[bytes], late: threading.Event) -> None:
    late.set()
    process.kill()


def _fate(code: int) -> str:
    name = signal.Signals(-code).name if code < 0 else f"code {code}"
    return f"the process that ran it ended with {name}; --sanitize says where"


def serve(cache: str) -> None:
    """Answer checks from standard input until it is closed."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what an author prints goes to the terminal, not among the answers
    cubins = Cubins(Path(cache)) if cache else Cubins()
    while True:
        try:
            check = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        pickle.dump(run_check(check, cubins), answers)
        answers.flush()
