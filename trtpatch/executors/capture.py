"""A walk as CUDA Graphs: captured once, launched every frame.

What can be captured is captured together; a step that cannot is called between the graphs.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from trtpatch.errors import CaptureError

GraphMode = Literal["auto", "required", "off"]

_ONE_AT_A_TIME = threading.Lock()


@dataclass(frozen=True)
class Call:
    """One step of a walk.

    Attributes:
        name: of the step, for messages and timings.
        run: puts the step on the stream.
        obstacle: why it cannot be captured; empty where it may be.
    """

    name: str
    run: Callable[[], None]
    obstacle: str = ""


@dataclass(frozen=True)
class Clear:
    """Memory to be zeroed before its first user.

    Attributes:
        blocks: arrays on the GPU.
        user: index of the first step that finds them zeroed; the number of steps if none does.
    """

    blocks: tuple[Any, ...]
    user: int

    def zero(self, stream: Any) -> None:
        """Put the zeroing on a stream."""
        for block in self.blocks:
            block.data.memset_async(0, block.nbytes, stream)


@dataclass(frozen=True)
class Walk:
    """A walk ready to run.

    Attributes:
        calls: every step, to be launched one by one.
        parts: graph launches and plain calls, in order.
        notes: what the user is told where not all of it is one graph.
    """

    calls: tuple[Call, ...]
    parts: tuple[Callable[[], None], ...]
    notes: tuple[str, ...] = ()

    def __call__(self) -> None:
        """Put the whole walk on the stream."""
        for part in self.parts:
            part()


def capture_walk(steps: Sequence[Call], clear: Clear, stream: Any, mode: GraphMode) -> Walk:
    """Capture a walk, whose every step that may be captured has run once before.

    Args:
        steps: the steps.
        clear: what is zeroed in every walk.
        stream: the pipeline's own stream, idle, and CuPy's current one.
        mode: `off` captures nothing; `required` captures all; `auto` captures what can be.

    Raises:
        CaptureError: with `required`, a step cannot be captured; the message names it.
    """
    calls = _with_clear(steps, clear, stream)
    if mode == "off":
        return Walk(tuple(calls), tuple(call.run for call in calls))
    try:
        parts = _parts(calls, stream)
    except CaptureError:
        calls = _with_clear([_probed(step, stream) for step in steps], clear, stream)
        parts = None
    notes = tuple(
        f"{call.name} runs outside the CUDA Graph: {call.obstacle}"
        for call in calls
        if call.obstacle
    )
    if notes and mode == "required":
        raise CaptureError("'graph: required', but " + "; ".join(notes))
    return Walk(tuple(calls), parts or _parts(calls, stream), notes)


def _parts(calls: Sequence[Call], stream: Any) -> tuple[Callable[[], None], ...]:
    """Graphs of those that may be captured, and the calls between them."""
    parts: list[Callable[[], None]] = []
    for obstacle, group in _runs(calls):
        if obstacle:
            parts += [call.run for call in group]
        else:
            graph = _capture(group, stream)
            graph.upload(stream)
            parts.append(partial(graph.launch, stream))
    return tuple(parts)


def _with_clear(steps: Sequence[Call], clear: Clear, stream: Any) -> list[Call]:
    """The steps with the zeroing: beside those before its first user where all can be captured."""
    import cupy

    user = clear.user
    if user >= len(steps):
        return list(steps)
    if user == 0 or any(step.obstacle for step in steps[: user + 1]):
        zero = Call("clear", lambda: clear.zero(stream))
        return [*steps[:user], zero, *steps[user:]]
    side = cupy.cuda.Stream(non_blocking=True)
    forked, cleared = (cupy.cuda.Event(disable_timing=True) for _ in range(2))

    def fork() -> None:
        forked.record(stream)
        side.wait_event(forked)
        clear.zero(side)
        cleared.record(side)

    def join() -> None:
        stream.wait_event(cleared)
        steps[user].run()

    joined = Call(steps[user].name, join)
    return [Call("clear", fork), *steps[:user], joined, *steps[user + 1 :]]


def _probed(call: Call, stream: Any) -> Call:
    """The step with its obstacle found by capturing it alone."""
    if call.obstacle:
        return call
    try:
        _capture([call], stream)
    except CaptureError as error:
        return Call(call.name, call.run, str(error))
    return call


def _runs(calls: Sequence[Call]) -> Iterator[tuple[bool, list[Call]]]:
    """Neighbours that can, or cannot, be captured."""
    group: list[Call] = []
    for call in calls:
        if group and bool(group[0].obstacle) != bool(call.obstacle):
            yield bool(group[0].obstacle), group
            group = []
        group.append(call)
    if group:
        yield bool(group[0].obstacle), group


def _capture(calls: Sequence[Call], stream: Any) -> Any:
    """Capture steps as one graph; tries twice, since another thread may break the first."""
    try:
        return _capture_once(calls, stream)
    except CaptureError:
        return _capture_once(calls, stream)


def _capture_once(calls: Sequence[Call], stream: Any) -> Any:
    from cupy.cuda import runtime

    stream.synchronize()
    name = calls[0].name
    with _ONE_AT_A_TIME, _no_garbage_collection():
        stream.begin_capture(runtime.streamCaptureModeThreadLocal)
        try:
            for call in calls:
                name = call.name
                call.run()
        except Exception as error:
            _abandon(stream)
            raise CaptureError(f"{name} cannot be captured: {error}") from error
        try:
            return stream.end_capture()
        except runtime.CUDARuntimeError as error:
            raise CaptureError(f"{name} broke the capture: {error}") from error


def _abandon(stream: Any) -> None:
    from cupy.cuda import runtime

    with suppress(runtime.CUDARuntimeError):  # the capture is over, which is all that is wanted
        stream.end_capture()


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """Keep the collector from freeing GPU objects in the middle of a capture, which breaks it."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
