"""Writing what an engine gives for some pictures, to be played back without it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from trtpatch.engines import EngineInfo, Tensor
from trtpatch.engines.recorded import RecordedFrame, save_recording
from trtpatch.errors import InputError
from trtpatch.executors import Executor, make_executor
from trtpatch.frame import Frame, as_frames
from trtpatch.loaded import Loaded
from trtpatch.plan import EngineStep, Plan


def record(loaded: Loaded, images: Sequence[Any], path: Path) -> EngineInfo:
    """Run a pipeline's chain up to its engine and keep what the engine gives.

    A pipeline file whose engine is the written file then gives, for the same pictures in the same
    order, the detections that this engine gave.

    Args:
        loaded: the pipeline; its engine stays open.
        images: paths or arrays, as a pipeline takes them.
        path: the `.npz` file, overwritten as a whole.

    Returns:
        What the recording says of the engine, with the shapes that were run.

    Raises:
        InputError: there is no picture, or one cannot be used.
        EngineError: the engine fails, or the file cannot be written.
    """
    if not images:
        raise InputError("a recording needs at least one picture")
    frames = as_frames(list(images), layout=loaded.spec.frame)
    plan, step = _up_to_engine(loaded.plan)
    info = replace(
        loaded.engine.info,
        inputs=_tensors(plan, step.inputs),
        outputs=_tensors(plan, step.outputs),
    )
    engine = loaded.binding.engine
    executor = make_executor(loaded.executor_name, plan, engine, device=loaded.spec.device)
    try:
        save_recording(path, info=info, frames=_run(executor, plan, step, frames))
    finally:
        executor.close()
    return info


def _up_to_engine(plan: Plan) -> tuple[Plan, EngineStep]:
    steps = plan.steps
    index = next(i for i, step in enumerate(steps) if isinstance(step, EngineStep))
    engine = steps[index]
    assert isinstance(engine, EngineStep)
    return replace(plan, steps=steps[: index + 1]), engine


def _tensors(plan: Plan, side: Any) -> tuple[Tensor, ...]:
    named = ((name, plan.buffers[buffer]) for name, buffer in side.items())
    return tuple(Tensor(name, buffer.dtype, buffer.shape) for name, buffer in named)


def _run(
    executor: Executor, plan: Plan, step: EngineStep, frames: Sequence[Frame]
) -> Iterator[RecordedFrame]:
    for start in range(0, len(frames), plan.batch):
        chunk = frames[start : start + plan.batch]
        executor.put_frames(chunk)
        executor.walk()
        sizes = np.zeros((plan.batch, 2), np.int32)
        sizes[: len(chunk)] = [(frame.height, frame.width) for frame in chunk]
        outputs = {name: executor.read(buffer) for name, buffer in step.outputs.items()}
        yield RecordedFrame(outputs, sizes)
