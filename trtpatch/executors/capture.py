"""A walk as CUDA Graphs: captured once, launched every frame.

What can be captured is captured together; a step that cannot is called between the graphs.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
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
class Walk:
    """A walk ready to run.

    Attributes:
        parts: graph launches and plain calls, in order.
        notes: what the user is told where not all of it is one graph.
    """

    parts: tuple[Callable[[], None], ...]
    notes: tuple[str, ...] = ()

    def __call__(self) -> None:
        """Put the whole walk on the stream."""
        for part in self.parts:
            part()


def capture_walk(calls: Sequence[Call], stream: Any, mode: GraphMode) -> Walk:
    """Capture a walk, whose every step has run once before.

    Args:
        calls: the steps.
        stream: the pipeline's own stream, idle, and CuPy's current one.
        mode: `off` captures nothing; `required` captures all; `auto` captures what can be.

    Raises:
        CaptureError: with `required`, a step cannot be captured; the message names it.
    """
    if mode == "off":
        return Walk(tuple(call.run for call in calls))
    calls = [_probed(call, stream) for call in calls] if _fails(calls, stream) else list(calls)
    notes = tuple(
        f"step {index} of {len(calls)}, {call.name}, runs outside the CUDA Graph: {call.obstacle}"
        for index, call in enumerate(calls, start=1)
        if call.obstacle
    )
    if notes and mode == "required":
        raise CaptureError("'graph: required', but " + "; ".join(notes))
    parts: list[Callable[[], None]] = []
    for obstacle, group in _runs(calls):
        if obstacle:
            parts += [call.run for call in group]
        else:
            graph = _capture(group, stream)
            graph.upload(stream)
            parts.append(_launch(graph, stream))
    return Walk(tuple(parts), notes)


def _launch(graph: Any, stream: Any) -> Callable[[], None]:
    return lambda: graph.launch(stream)


def _fails(calls: Sequence[Call], stream: Any) -> bool:
    """Whether the steps that may be captured cannot be captured as they are."""
    try:
        for obstacle, group in _runs(calls):
            if not obstacle:
                _capture(group, stream)
    except CaptureError:
        return True
    return False


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
