"""Chains as CUDA Graphs: the same bits as plain launches, and what happens when they end."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import trtpatch
from tests.gpu_memory import growth
from tests.tiny_pipelines import PICTURES, assert_same_bits
from trtpatch.errors import CaptureError, InputError
from trtpatch.executors import capture, ring

pytest.importorskip("cupy")
pytest.importorskip("tensorrt_rtx")


def test_a_graph_gives_the_bits_of_plain_launches(load: Any) -> None:
    with load("graph: required\n") as graph, load("graph: off\n") as plain:
        for threshold in (0.25, 0.6, 0.1):
            for pipeline in (graph, plain):
                pipeline.set(score_threshold=threshold, iou_threshold=threshold)
            for count in (1, 2, 6):
                assert_same_bits(graph(PICTURES[:count]), plain(PICTURES[:count]))
        assert_same_bits(graph.stream(PICTURES, depth=3), plain.stream(PICTURES, depth=1))


def test_many_replays_give_the_same_bits(load: Any) -> None:
    with load("graph: required\n") as pipeline:
        expected = [pipeline(one)[0] for one in PICTURES]
        assert any(len(one) for one in expected)
        for _ in range(50):
            assert_same_bits([pipeline(one)[0] for one in PICTURES], expected)


def test_an_engine_on_the_host_is_no_part_of_a_graph(load: Any) -> None:
    with load(kind="ort") as pipeline:
        assert any("engine runs outside the CUDA Graph" in note for note in pipeline.notes)
        assert len(pipeline(PICTURES[0])[0])
    with pytest.raises(CaptureError, match="'graph: required', but engine runs"):
        load("graph: required\n", kind="ort")


def test_a_step_that_cannot_be_captured_runs_between_graphs(
    load: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    captured = capture._capture_once

    def refuse(calls: Sequence[capture.Call], stream: Any) -> Any:
        if any(call.name == "engine" for call in calls):
            raise CaptureError("it asks the host")
        return captured(calls, stream)

    monkeypatch.setattr(capture, "_capture_once", refuse)
    with load() as pipeline, load("graph: off\n") as plain:
        assert pipeline.notes[-1] == "engine runs outside the CUDA Graph: it asks the host"
        assert len(pipeline._ready.last._slot.walk.parts) == 3
        assert_same_bits(pipeline.stream(PICTURES), plain.stream(PICTURES))
    with pytest.raises(CaptureError, match="'graph: required', but engine runs outside"):
        load("graph: required\n")


def test_a_capture_that_another_thread_broke_is_tried_again(
    load: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    captured, broken = capture._capture_once, []

    def break_first(calls: Sequence[capture.Call], stream: Any) -> Any:
        if not broken:
            broken.append(calls)
            raise CaptureError("another thread synchronised the device")
        return captured(calls, stream)

    monkeypatch.setattr(capture, "_capture_once", break_first)
    with load("graph: required\n") as pipeline:
        assert broken
        assert not any("outside" in note for note in pipeline.notes)
        assert len(pipeline(PICTURES[0])[0])


def test_an_error_in_the_middle_of_a_frame_leaves_a_working_pipeline(
    load: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with load() as pipeline:
        expected = [pipeline(one)[0] for one in PICTURES]
        held = pipeline(PICTURES[0])
        with monkeypatch.context() as patched:
            patched.setattr(ring, "copy_bytes", fail)
            for one in PICTURES:
                with pytest.raises(MemoryError, match="no memory"):
                    pipeline(one)
        assert_same_bits(pipeline.stream(PICTURES), expected)
        assert_same_bits(held, expected[:1])


def fail(*_: object) -> None:
    raise MemoryError("no memory")


def test_threads_pipelines_and_the_collector_do_not_break_a_capture(load: Any) -> None:
    import cupy

    stop = threading.Event()

    def disturb() -> None:
        while not stop.is_set():
            cupy.zeros(1000) + 1
            gc.collect()

    thread = threading.Thread(target=disturb)
    thread.start()
    try:
        with load("graph: required\n") as first, load("graph: required\n") as second:
            expected = [first(one)[0] for one in PICTURES]
            assert_same_bits([second(one)[0] for one in PICTURES], expected)
            wrong: list[Exception] = []

            def call(pipeline: trtpatch.Pipeline) -> None:
                try:
                    for _ in range(20):
                        assert_same_bits([pipeline(one)[0] for one in PICTURES], expected)
                except Exception as error:
                    wrong.append(error)

            threads = [threading.Thread(target=call, args=(p,)) for p in (first, second, first)]
            for one in threads:
                one.start()
            for one in threads:
                one.join()
            assert not wrong
    finally:
        stop.set()
        thread.join()


def test_pytorch_gives_frames_and_takes_results(load: Any) -> None:
    torch = pytest.importorskip("torch")
    with load() as pipeline:
        expected = pipeline(PICTURES[0])[0]
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            frame = torch.zeros((*PICTURES[0].shape[:2], 3), dtype=torch.uint8, device="cuda")
            torch.cuda._sleep(20_000_000)  # the frame is still being written when it is handed over
            frame.copy_(torch.from_numpy(PICTURES[0]))
            results = pipeline(frame, stream=stream.cuda_stream)
            frame.zero_()  # the caller's stream waits until the frame has been read
            arrays = results.device(stream=stream.cuda_stream)[0]
            boxes = torch.from_dlpack(arrays["detections_boxes"]) * 1
        stream.synchronize()
        assert_same_bits([results[0]], [expected])
        np.testing.assert_array_equal(boxes[0, : len(expected)].cpu().numpy(), expected.boxes)


def test_pinned_frames_are_the_callers_again_at_once(load: Any) -> None:
    import cupy

    with load() as pipeline:
        expected = [pipeline(one)[0] for one in PICTURES]
        room = max(one.nbytes for one in PICTURES)
        memory = np.frombuffer(cupy.cuda.alloc_pinned_memory(room), np.uint8, room)
        late = []
        for one in PICTURES:
            pinned = memory[: one.nbytes].reshape(one.shape)
            pinned[...] = one
            late.append(pipeline(pinned))
        assert_same_bits([results[0] for results in late], expected)


def test_results_on_their_way_to_the_host_are_not_overtaken(load: Any) -> None:
    with load() as pipeline:
        expected = [pipeline(one)[0] for one in PICTURES]
        late = []
        for one in PICTURES:
            late.append(pipeline(one))
            late[-1].prefetch()
        assert_same_bits([results[0] for results in late], expected)


@pytest.mark.parametrize("late", [0, 4])
def test_arrays_on_the_gpu_may_be_dropped_while_they_are_read(load: Any, late: int) -> None:
    import cupy

    with load() as pipeline:
        expected = [pipeline(one)[0] for one in PICTURES]
        sums = []
        streams = [cupy.cuda.Stream(non_blocking=True) for _ in PICTURES]
        for stream in streams:
            with stream:
                results = pipeline(PICTURES[0])
                others = [pipeline(one) for one in PICTURES[1 : 1 + late]]  # they take its place
                sums.append(results.device()[0]["detections_boxes"] + 0)
                del results, others
        for stream, boxes in zip(streams, sums, strict=True):
            held = [pipeline(one) for one in PICTURES]  # needs memory of the same size
            assert_same_bits([results[0] for results in held], expected)
            found = boxes.get(stream=stream)[0, : len(expected[0])]
            np.testing.assert_array_equal(found, expected[0].boxes)


def test_a_picture_that_cannot_be_used_leaves_a_working_pipeline(load: Any) -> None:
    with load() as pipeline:
        expected = pipeline(PICTURES[0])[0]
        with pytest.raises(InputError):
            pipeline([PICTURES[0], np.zeros((3, 3), np.uint8)])
        assert_same_bits([pipeline(PICTURES[0])[0]], [expected])
    with pytest.raises(InputError, match="closed"):
        pipeline(PICTURES[0])


@pytest.mark.parametrize("kind", ["trt", "ort"])
def test_closing_gives_memory_back_at_once(load: Any, kind: str) -> None:
    gc.collect()
    gc.disable()
    try:
        with load(kind=kind) as pipeline:
            pipeline(PICTURES[0])[0]
            memory = weakref.ref(pipeline._ready.last._slot)
            assert memory()
        assert not memory()
    finally:
        gc.enable()


def test_no_memory_grows(load: Any) -> None:
    def cycle() -> None:
        with load("graph: required\n") as pipeline:
            for _ in pipeline.stream(PICTURES * 20):
                pass

    for _ in range(3):
        cycle()
    assert growth(cycle, 10) < 4 << 20  # CUDA gives memory back in blocks of 2 MiB
