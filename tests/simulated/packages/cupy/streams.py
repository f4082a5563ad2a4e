"""Streams as queues in host memory.

Nothing on a stream runs before somebody waits for it (`late`, the default), or all at once
(`eager`), or streams drawn by lot come some way (`random`). A program that is right on a GPU gives
the same results in each; one that forgets to wait does not. `SIMULATED_ORDER` chooses, and
`SIMULATED_SEED` draws.
"""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Callable
from typing import Any
from weakref import WeakValueDictionary

ORDER = os.environ.get("SIMULATED_ORDER", "late")
_LOTS = random.Random(int(os.environ.get("SIMULATED_SEED", "0")))
_LOCK = threading.RLock()

QUEUES: dict[int, Queue] = {}
"""By handle."""

EVENTS: WeakValueDictionary[int, Event] = WeakValueDictionary()
"""By handle."""

Mark = tuple["Queue", int]
"""So much of a queue."""


class Queue:
    """What is on a stream.

    Attributes:
        handle: as CUDA gives one.
        capture: what is being captured here, while it is.
    """

    def __init__(self, *handles: int) -> None:
        self._waiting: list[Callable[[], object] | Mark] = []
        self._done = 0
        self.capture: list[Callable[[], object]] | None = None
        self.handle = handles[0] if handles else 16 * (len(QUEUES) + 1)
        for handle in handles or (self.handle,):
            QUEUES[handle] = self

    def put(self, work: Callable[[], object] | Mark) -> None:
        """Put work on the stream, or what it waits for."""
        with _LOCK:
            if self.capture is not None:
                assert callable(work), "a captured stream waits for one that is not"
                self.capture.append(work)
                return
            self._waiting.append(work)
            if ORDER == "eager":
                self.run()
            elif ORDER == "random":
                for queue in _LOTS.sample(list(QUEUES.values()), 2):
                    queue.run(queue._done + _LOTS.randint(0, len(queue._waiting)))

    @property
    def end(self) -> int:
        """How much has been put here so far."""
        return self._done + len(self._waiting)

    def run(self, until: int | None = None) -> None:
        """Come so far, or to the end; and whatever is waited for as far as that."""
        with _LOCK:
            last = self.end if until is None else until
            while self._done < last:
                work = self._waiting.pop(0)
                self._done += 1
                if callable(work):
                    work()
                else:
                    queue, mark = work
                    queue.run(mark)


class Stream:
    """As CuPy's."""

    def __init__(self, *, non_blocking: bool = False) -> None:
        assert non_blocking, "a blocking stream is ordered with the legacy one, which is not here"
        self.queue = Queue()

    @property
    def ptr(self) -> int:
        return self.queue.handle

    def __enter__(self) -> Stream:
        _current.stack.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        _current.stack.pop()

    def record(self, event: Event | None = None) -> Event:
        event = event or Event()
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        if event.capture is not None:
            if self.queue.capture is None:
                self.queue.capture = event.capture
                _joined.setdefault(id(event.capture), []).append(self.queue)
        elif event.mark is not None:
            self.queue.put(event.mark)

    def synchronize(self) -> None:
        assert self.queue.capture is None, "waiting breaks a capture"
        self.queue.run()

    def begin_capture(self, mode: int) -> None:
        self.queue.capture = []

    def end_capture(self) -> Graph:
        work = self.queue.capture
        assert work is not None, "there is no capture"
        for queue in (self.queue, *_joined.pop(id(work), ())):
            queue.capture = None
        return Graph(work)


class ExternalStream(Stream):
    """As CuPy's."""

    def __init__(self, ptr: int) -> None:
        self.queue = QUEUES[ptr]


class Event:
    """As CuPy's.

    Attributes:
        mark: so much of a queue has to be done; None where it was never recorded.
        capture: in which it was recorded.
    """

    def __init__(self, *, disable_timing: bool = False) -> None:
        self.ptr = id(self)
        EVENTS[self.ptr] = self
        self.mark: Mark | None = None
        self.capture: list[Callable[[], object]] | None = None

    def record(self, stream: Stream | None = None) -> None:
        queue = (stream or get_current_stream()).queue
        self.capture = queue.capture
        self.mark = None if self.capture is not None else (queue, queue.end)

    @property
    def done(self) -> bool:
        return self.mark is None or self.mark[0]._done >= self.mark[1]

    def synchronize(self) -> None:
        if self.mark is not None:
            queue, mark = self.mark
            queue.run(mark)


class Graph:
    """As CuPy's."""

    def __init__(self, work: list[Callable[[], object]]) -> None:
        self._work = work

    def upload(self, stream: Stream) -> None:
        pass

    def launch(self, stream: Stream) -> None:
        for one in self._work:
            stream.queue.put(one)


def get_current_stream() -> Stream:
    return _current.stack[-1]


def run_all() -> None:
    """Let every stream come to its end."""
    for queue in list(QUEUES.values()):
        queue.run()


class _Current(threading.local):
    def __init__(self) -> None:
        self.stack: list[Stream] = [LEGACY]


_joined: dict[int, list[Queue]] = {}
LEGACY: Any = ExternalStream(Queue(0, 1).handle)
_current = _Current()
