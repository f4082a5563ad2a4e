"""Work that is under way when something ends, fails or is interrupted."""

from __future__ import annotations

import gc
import os
import signal
import threading
import time
from typing import Any

import numpy as np
import pytest

from tests.tiny_model import picture
from tests.tiny_pipelines import PICTURES, Load, assert_same_bits
from trtpatch import Pipeline
from trtpatch.errors import EngineError, InputError
from trtpatch.executors import device_results, ring
from trtpatch.executors.capture import Call

cupy = pytest.importorskip("cupy")
pytest.importorskip("tensorrt_rtx")

BIG = picture(1440, 1600, seed=3)


@pytest.fixture
def expected(load: Load) -> Any:
    """What is in the first picture."""
    with load() as pipeline:
        found = pipeline(PICTURES[0])[0]
    assert len(found)
    gc.collect()
    return found


def call_at_the_end(executor: Any, run: Any) -> None:
    """Have walks that are bound from now on end with a step more."""
    bind = executor._steps.bind
    executor._steps.bind = lambda slot: [*bind(slot), Call("one more", run)]


def test_room_for_pictures_is_not_what_the_callers_stream_still_writes(
    load: Load, expected: Any
) -> None:
    with load() as pipeline:
        stream = cupy.cuda.Stream(non_blocking=True)
        height, width, channels = PICTURES[0].shape
        with stream:
            mine = cupy.empty(-(-height * width * channels // 256) * 256, np.uint8)
            mine[:] = np.uint8(77)
            del mine  # goes back to the pool in the stream's order, as is usual with CuPy
            results = pipeline(PICTURES[0])
        pipeline._ready.last._streams.into.synchronize()  # nothing orders these two
        stream.synchronize()
        assert_same_bits([results[0]], [expected])


def test_a_pipeline_that_nobody_closes_finishes_first(load: Load, expected: Any) -> None:
    results = load()(PICTURES[0])
    with load() as other:
        other(PICTURES[1])
        assert_same_bits([results[0]], [expected])


def test_closing_waits_for_who_reads_results(load: Load, expected: Any) -> None:
    stream = cupy.cuda.Stream(non_blocking=True)
    with load() as pipeline:
        results = pipeline(PICTURES[0])
        boxes = results.device(stream=stream.ptr)[0]["detections_boxes"]
        main, size = pipeline._ready.last._stream, pipeline._ready.last._layouts[0].nbytes
    del results
    gc.collect()
    with main:
        taken = [cupy.zeros(-(-size // 256) * 256, np.uint8) for _ in range(8)]
    main.synchronize()
    np.testing.assert_array_equal(boxes.get(stream=stream)[0, : len(expected)], expected.boxes)
    del taken


def interrupt_in_the_middle(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch, gate: threading.Event
) -> None:
    """^C while the caller waits for his helpers, the last of which has not begun to copy."""
    main, bring = threading.main_thread(), ring._bring

    def slow(*args: Any) -> None:
        if threading.current_thread() is main:
            time.sleep(0.02)
        else:
            gate.wait()
        bring(*args)

    with monkeypatch.context() as patched:
        patched.setattr(ring, "_bring", slow)
        threading.Timer(0.6, gate.set).start()
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            pipeline(BIG)


def test_an_interrupted_copy_is_over_when_the_call_is(
    load: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = threading.Event()
    other = BIG[::-1].copy()
    with load() as pipeline:
        wanted = pipeline(other)[0]
        assert len(wanted)
        interrupt_in_the_middle(pipeline, monkeypatch, gate)
        assert gate.is_set()
        for _ in range(4):
            assert_same_bits([pipeline(other)[0]], [wanted])


def test_more_depth_than_there_is_memory_for_changes_nothing(
    load: Load, expected: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with load() as pipeline:
        executor = pipeline._ready.last
        places, zeros, left = len(executor._slots), cupy.zeros, [9]

        def few(*args: Any) -> Any:
            left[0] -= 1
            if left[0] < 0:
                raise cupy.cuda.memory.OutOfMemoryError(1, 2, 3)
            return zeros(*args)

        with monkeypatch.context() as patched:
            patched.setattr(cupy, "zeros", few)
            with pytest.raises(InputError, match="memory does not suffice for this plan"):
                pipeline.stream(PICTURES, depth=1000)
        assert (pipeline._ready._depth, len(executor._slots)) == (0, places)
        assert_same_bits([pipeline(PICTURES[0])[0]], [expected])


def test_results_are_had_while_another_thread_captures(load: Load, expected: Any) -> None:
    with load() as pipeline:
        results = pipeline(PICTURES[0])
        for one in PICTURES[:4]:
            pipeline(one)  # so that they move out
        arrays: list[Any] = []

        def ask() -> None:
            arrays.append(results.device()[0]["detections_boxes"].get())

        asking = threading.Thread(target=ask)

        def begin_to_ask() -> None:
            asking.start()
            asking.join(0.5)

        executor = pipeline._ready.last
        call_at_the_end(executor, begin_to_ask)
        pipeline.stream(PICTURES, depth=len(executor._slots) + 1)
        asking.join()
        np.testing.assert_array_equal(arrays[0][0, : len(expected)], expected.boxes)


def test_an_interrupt_in_a_capture_leaves_a_working_pipeline(load: Load, expected: Any) -> None:
    def stop() -> None:
        raise KeyboardInterrupt

    with load() as pipeline:
        executor = pipeline._ready.last
        call_at_the_end(executor, stop)
        with pytest.raises(KeyboardInterrupt):
            pipeline.stream(PICTURES, depth=len(executor._slots) + 1)
        assert_same_bits([pipeline(PICTURES[0])[0]], [expected])


def test_a_size_that_the_engine_refuses_drops_no_other(load: Load) -> None:
    bounds = "profile: {min: [1, 3, 32, 32], opt: [1, 3, 96, 128], max: [1, 3, 128, 128]}"
    with load("size: auto\nshapes: 1\n", engine=bounds) as pipeline:
        pipeline(PICTURES[0], size=(96, 128))
        kept = pipeline._ready.last
        with pytest.raises(EngineError):
            pipeline(PICTURES[0], size=(4096, 128))
        assert pipeline._ready.last is kept


def test_a_stream_that_the_collector_ends_does_not_hang(
    load: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A forgotten one, found in the middle of moving the results out that it holds."""
    copy = device_results.copy_bytes

    def collect(*args: Any) -> None:
        gc.collect()
        copy(*args)

    with load() as pipeline:
        gc.disable()
        try:
            forgotten: list[Any] = [pipeline.stream(PICTURES, depth=3)]
            for _ in range(2):
                next(forgotten[0])
            forgotten.append(forgotten)
            del forgotten
            pipeline(PICTURES[0])
            monkeypatch.setattr(device_results, "copy_bytes", collect)
            calls = threading.Thread(
                target=lambda: [pipeline(PICTURES[0]) for _ in range(4)], daemon=True
            )
            calls.start()
            calls.join(20)
        finally:
            gc.enable()
        assert not calls.is_alive()
