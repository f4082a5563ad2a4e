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

ONE_AT_A_TIME = threading.Lock()
"""Held while a stream captures."""


@dataclass(frozen=True)
class Call:
    """One step of a walk.

    Attributes:
        name: of the step, for messages and timings.
        run: puts the step on CuPy's current stream.
        obstacle: why it cannot be captured; empty where it may be.
    """

    name: str
    run: Callable[[], None]
    obstacle: str = ""


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


def capture_walk(calls: Sequence[Call], stream: Any, mode: GraphMode) -> Walk:
    """Capture a walk. An engine on the GPU has run once before: it allocates on its first run.

    Args:
        calls: the steps.
        stream: the pipeline's own stream, idle.
        mode: `off` captures nothing; `required` captures all; `auto` captures what can be.

    Raises:
        CaptureError: with `required`, a step cannot be captured; the message names it.
    """
    if mode == "off":
        return Walk(tuple(calls), (_plainly(calls, stream),))
    try:
        walk = Walk(tuple(calls), _parts(calls, stream), _notes(calls))
    except CaptureError as error:
        probed = [_probed(call, stream) for call in calls]
        notes = _notes(probed)
        if notes:
            walk = Walk(tuple(calls), _parts(probed, stream), notes)
        else:  # each step can be captured, but not all of them together
            note = f"no step runs in a CUDA Graph: {error}"
            walk = Walk(tuple(calls), (_plainly(calls, stream),), (note,))
    if walk.notes and mode == "required":
        raise CaptureError("'graph: required', but " + "; ".join(walk.notes))
    return walk


def _notes(calls: Sequence[Call]) -> tuple[str, ...]:
    return tuple(
        f"{call.name} runs outside the CUDA Graph: {call.obstacle}"
        for call in calls
        if call.obstacle
    )


def _parts(calls: Sequence[Call], stream: Any) -> tuple[Callable[[], None], ...]:
    """Graphs of those that may be captured, and the calls between them."""
    parts: list[Callable[[], None]] = []
    for obstacle, group in _runs(calls):
        if obstacle:
            parts.append(_plainly(group, stream))
        else:
            graph = _capture(group, stream)
            graph.upload(stream)
            parts.append(partial(graph.launch, stream))
    return tuple(parts)


def _plainly(calls: Sequence[Call], stream: Any) -> Callable[[], None]:
    """Steps launched one by one."""

    def run() -> None:
        with stream:
            for call in calls:
                call.run()

    return run


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
    with ONE_AT_A_TIME, _no_garbage_collection(), stream:
        stream.begin_capture(runtime.streamCaptureModeThreadLocal)
        try:
            for call in calls:
                name = call.name
                call.run()
        except BaseException as error:
            _abandon(stream)
            if not isinstance(error, Exception):
                raise
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
