"""What a pipeline will have to compile, found out before it runs and without a GPU."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from trtpatch.executors import gpu_found
from trtpatch.executors.begin import begin_unit
from trtpatch.loaded import Loaded
from trtpatch.unit import Unit, make_unit


def plan_ahead(path: Path) -> Loaded:
    """Load a pipeline file to see what it will compile.

    Without a GPU, ONNX Runtime tells the shapes and types of an ONNX file's tensors, whatever is to
    run the file. TensorRT keeps both, but for outputs whose size depends on the picture, which are
    refused here. A plan of TensorRT tells its tensors on a GPU alone.

    Raises:
        TrtpatchError: as `trtpatch.load`; and for a TensorRT plan without a GPU.
    """
    if gpu_found():
        return Loaded(path, executor="gpu")
    return Loaded(path, executor="cpu", anywhere=True)


def units_of(loaded: Loaded) -> Iterator[Unit]:
    """The units of a pipeline in every shape that it runs in by itself.

    Raises:
        CompileError: a kernel file cannot be read.
        EngineError, MatchError: a shape does not fit.
    """
    yield begin_unit()
    for shape in loaded.shapes.all():
        if shape == loaded.binding.shape:
            plan = loaded.plan
        else:
            binding = loaded.bind(shape)
            binding.engine.close()
            plan = binding.plan
        for step in plan.patch_steps:
            yield make_unit(step)
