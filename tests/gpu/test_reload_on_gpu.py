"""Kernels on a GPU, edited while frames go on; and on two GPUs at once."""

from __future__ import annotations

import itertools
import threading
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import trtpatch
from tests.gpu_memory import growth
from tests.reloads import (
    PICTURE,
    Project,
    best,
    edit,
    mistake_leaves_the_old_one_running,
)
from trtpatch.errors import CompileError, InputError, SpecError
from trtpatch.pipeline import Pipeline


def test_an_edit_takes_effect_and_the_engine_is_kept(project: Project, pipeline: Pipeline) -> None:
    first = best(pipeline)
    engine, contexts = pipeline._loaded.engine, dict(pipeline._ready.engines)
    misses = pipeline._ready._cubins.misses
    held = pipeline(PICTURE)
    edit(project.header, "1.0f", "0.5f")
    assert best(pipeline) == first
    pipeline.reload()
    assert best(pipeline) == first / 2
    assert float(held[0].scores[0]) == first
    assert pipeline._loaded.engine is engine
    assert pipeline._ready.engines == contexts
    assert pipeline._ready._cubins.misses <= misses + 1
    edit(project.header, "0.5f", "1.0f")
    pipeline.reload()
    assert best(pipeline) == first


def test_an_edited_contract_and_parameter_take_effect(project: Project, pipeline: Pipeline) -> None:
    assert len(pipeline(PICTURE)[0]) > 1
    edit(project.registry, "max_detections: 300", "max_detections: 1")
    pipeline.reload()
    assert len(pipeline(PICTURE)[0]) == 1
    edit(project.contract, "default: 0.25", "default: 2.0")
    pipeline.reload()
    assert len(pipeline(PICTURE)[0]) == 0
    pipeline.set(score_threshold=0.3)
    edit(project.contract, "block: 128", "block: 64")
    pipeline.reload()
    assert len(pipeline(PICTURE)[0]) == 1


@pytest.mark.parametrize(
    ("file", "old", "new", "error", "said"),
    [
        ("kernel", "int label = 0;", "int label = zero;", CompileError, "kernel.cu:8:17"),
        ("header", "1.0f", "one", CompileError, "gain.cuh:1:24"),
        ("contract", "block: 128", "block: 128, shared: 9000000", CompileError, "shared memory"),
        ("contract", "block: 128", "blok: 128", SpecError, "Did you mean 'block'?"),
        ("pipeline", "path: tiny.onnx", "path: other.onnx", SpecError, "Load the pipeline again"),
    ],
)
def test_a_mistake_leaves_the_old_one_running(
    project: Project,
    pipeline: Pipeline,
    file: str,
    old: str,
    new: str,
    error: type[Exception],
    said: str,
) -> None:
    mistake_leaves_the_old_one_running(
        project, pipeline, file=file, old=old, new=new, error=error, said=said
    )


def test_frames_go_on_meanwhile_and_each_is_old_or_new(
    project: Project, pipeline: Pipeline
) -> None:
    pipeline.set(score_threshold=0.01)
    gains = ("1.0f", "0.5f", "0.25f", "0.125f")
    expected = {np.float32(best(pipeline)) * np.float32(gain[:-1]) for gain in gains}
    seen: set[np.float32] = set()
    stop = threading.Event()

    def run_frames() -> None:
        while not stop.is_set():
            seen.add(np.float32(best(pipeline)))

    thread = threading.Thread(target=run_frames)
    thread.start()
    try:
        for old, new in itertools.pairwise(gains):
            edit(project.header, old, new)
            pipeline.reload()
    finally:
        stop.set()
        thread.join()
    assert len(seen) > 1
    assert seen <= expected


def test_a_hundred_reloads_leave_no_memory_behind(project: Project, pipeline: Pipeline) -> None:
    import cupy

    def cycle() -> None:
        pipeline.reload()
        best(pipeline)

    for _ in range(10):
        cycle()
    pool = cupy.get_default_memory_pool()
    before = pool.used_bytes()
    assert growth(cycle, 30) < 16 << 20
    assert pool.used_bytes() <= before


# ---- Two GPUs.


def test_two_pipelines_on_two_gpus_each_have_their_own(project: Project, tmp_path: Path) -> None:
    import cupy

    if cupy.cuda.runtime.getDeviceCount() < 2:
        pytest.skip("one GPU")
    (tmp_path / "second").mkdir()
    engine = project.pipeline.read_text().partition("tiny.onnx, ")[2].partition("}")[0]
    second = Project(tmp_path / "second", engine=engine, more="executor: gpu\ndevice: 1\n")
    with trtpatch.load(project.pipeline) as a, trtpatch.load(second.pipeline) as b:
        first = best(a)
        results: dict[int, list[float]] = {0: [], 1: []}

        def run_frames(number: int, pipeline: Pipeline) -> None:
            for _ in range(50):
                results[number].append(best(pipeline))

        threads = [threading.Thread(target=partial(run_frames, n, p)) for n, p in ((0, a), (1, b))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert set(results[0]) == {first}
        np.testing.assert_allclose(results[1], first, atol=1e-6)
        for here, there in ((a, 1), (b, 0)):
            with cupy.cuda.Device(there):
                frame = cupy.asarray(PICTURE)
            with pytest.raises(InputError, match=f"image 1 of 1: it lies on GPU {there}, but this"):
                here(frame)
            with cupy.cuda.Device(1 - there):
                assert best(here, cupy.asarray(PICTURE)) == pytest.approx(first)
        edit(second.header, "1.0f", "0.5f")
        b.reload()
        assert best(b) == pytest.approx(first / 2)
        assert best(a) == first
