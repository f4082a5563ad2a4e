"""A plugin of pytest that lets trtpatch find the simulated GPU, and on it an engine of its own.

`kind: trt` becomes ONNX Runtime behind the protocol of engines on a GPU. Everything else is what
runs on a real one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from cupy.cuda.function import UNITS
from cupy.cuda.memory import bytes_at
from cupy.streams import QUEUES

from trtpatch import engines, executors
from trtpatch.compiler.compile import Cubin
from trtpatch.compiler.cubins import Cubins
from trtpatch.engines import device
from trtpatch.engines.ort import OrtEngine, OrtRunner
from trtpatch.executors import gpu
from trtpatch.executors.host_unit import HostUnit
from trtpatch.unit import Unit


class Context:
    """See `DeviceEngine`."""

    on_device: Literal[True] = True
    obstacle = ""

    def __init__(self, runner: OrtRunner) -> None:
        self.info = runner.info
        self._runner = runner

    def enqueue(self, addresses: Mapping[str, int], stream: int) -> None:
        arrays = {}
        for tensor in (*self.info.inputs, *self.info.outputs):
            size = int(np.prod(tensor.shape)) * np.dtype(tensor.dtype).itemsize
            memory = bytes_at(addresses[tensor.name], size)
            arrays[tensor.name] = memory.view(tensor.dtype).reshape(tensor.shape)

        def run() -> None:
            inputs = {tensor.name: arrays[tensor.name] for tensor in self.info.inputs}
            for name, output in self._runner.run(inputs).items():
                arrays[name][...] = output

        QUEUES[stream].put(run)

    def keep_compiled(self) -> None:
        pass

    def close(self) -> None:
        self._runner.close()


class Engine:
    """See `OpenEngine`."""

    def __init__(self, engine: OrtEngine) -> None:
        self.info = engine.info
        self._engine = engine

    def at(self, input_shapes: Mapping[str, tuple[int, ...]]) -> Context:
        return Context(self._engine.at(input_shapes))

    def check_pictures(self, sizes: Sequence[tuple[int, int]]) -> None:
        self._engine.check_pictures(sizes)

    def close(self) -> None:
        self._engine.close()


def _open(path: Any, *, gpu: bool, kind: str = "auto", options: Any = None, **more: Any) -> Any:
    if gpu and kind == "trt":
        return Engine(OrtEngine(path, options))
    return _open_really(path, gpu=gpu, kind=kind, options=options, **more)


def _compile(cubins: Cubins | None, bundle: object) -> Any:
    def compile_unit(unit: Unit, *, arch: str) -> Cubin:
        code = hashlib.sha256(unit.text.encode()).digest()
        if code not in UNITS:
            UNITS[code] = HostUnit.build(unit, cubins or Cubins())
        return Cubin(name=unit.name, arch=arch, code=code, compiler="", log="", kernels=())

    return compile_unit


def _find(ordinal: int = 0) -> device.Gpu:
    return device.Gpu(ordinal, "simulated", (9, 0), "13.0")


_open_really = engines.open_engine
engines.open_engine = _open
executors._compile = _compile
device.find_gpu = gpu.find_gpu = _find
