"""One execution context of a TensorRT engine: ready to run in one set of input shapes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

from trtpatch.engines import EngineInfo, Shape, Tensor
from trtpatch.engines.device import Gpu, current
from trtpatch.engines.flavours import Found
from trtpatch.engines.rtx import KernelCache
from trtpatch.engines.shapes import ready_info
from trtpatch.engines.trtlog import explain, log_of, quote
from trtpatch.errors import EngineError
from trtpatch.spec.dtypes import ITEMSIZE

_LEGACY_STREAMS = (0, 1)


class TrtContext:
    """See `DeviceEngine`."""

    on_device: Literal[True] = True

    def __init__(
        self,
        context: Any,
        info: EngineInfo,
        shapes: Mapping[str, Shape],
        *,
        found: Found,
        gpu: Gpu,
        kernels: KernelCache | None,
    ) -> None:
        """Fix the shapes of a new execution context; its GPU is the current one.

        Args:
            context: TensorRT's.
            info: of the engine, its sizes open.
            shapes: of every input, checked.
            found: the flavour that runs it.
            gpu: that runs it.
            kernels: what was compiled, shared by all contexts of the engine.

        Raises:
            EngineError: TensorRT refuses the shapes, or an output has no bound.
        """
        self._context = context
        self._found = found
        self._gpu = gpu
        self._kernels = kernels
        self._log = log_of(found.flavour.module)
        self._addresses: dict[str, int] = {}
        self._warm = False
        self.obstacle = ""
        self.info = info
        self.info = ready_info(info, shapes, self._outputs(shapes))

    def _outputs(self, shapes: Mapping[str, Shape]) -> list[Tensor]:
        with self._log.collect() as lines:
            for name, shape in shapes.items():
                if not self._context.set_input_shape(name, tuple(shape)):
                    raise EngineError(
                        f"{self.info.path}: {self._found} refuses {list(shape)} for {name!r}"
                        f"{quote(lines)}"
                    )
            try:
                self._context.infer_shapes()
            except RuntimeError as error:
                raise EngineError(
                    f"{self.info.path}: {self._found} cannot run on {dict(shapes)}: {error}"
                    f"{quote(lines)}"
                ) from None
            return [self._concrete(output) for output in self.info.outputs]

    def _concrete(self, output: Tensor) -> Tensor:
        """An output with its shape in the runs to come; one open size takes its bound."""
        shape = tuple(self._context.get_tensor_shape(output.name))
        if -1 in shape:
            self.obstacle = f"the size of its output {output.name!r} depends on the data"
            most_bytes = self._context.get_max_output_size(output.name)
            itemsize = ITEMSIZE.get(output.dtype, 1)  # no buffer can be of another type
            row = math.prod(size for size in shape if size != -1) * itemsize
            if shape.count(-1) > 1 or most_bytes <= 0 or row <= 0:
                raise EngineError(
                    f"{self.info.path}: the size of output {output} depends on what is in the "
                    "picture and has no bound. Export the model without its NMS, or with a fixed "
                    "number of detections; patches do the NMS"
                )
            shape = tuple(most_bytes // row if size == -1 else size for size in shape)
        return Tensor(output.name, output.dtype, shape)

    def enqueue(self, addresses: Mapping[str, int], stream: int) -> None:
        """See `DeviceEngine.enqueue`."""
        context = self._context
        if context is None:
            raise EngineError(f"{self.info.path}: the engine is closed")
        for name, address in addresses.items():
            if self._addresses.get(name) != address:
                if not context.set_tensor_address(name, address):
                    raise EngineError(
                        f"{self.info.path}: {self._found} refuses address {address:#x} for {name!r}"
                    )
                self._addresses[name] = address
        if not self._warm:
            self._warm_up(stream)
        elif not context.execute_async_v3(stream):
            raise EngineError(f"{self.info.path}: {self._found} could not enqueue a run")

    @property
    def closed(self) -> bool:
        """Whether it has been closed."""
        return self._context is None

    def keep_compiled(self) -> None:
        """See `DeviceEngine.keep_compiled`."""
        if self._kernels:
            self._kernels.save()

    def close(self) -> None:
        """See `DeviceEngine.close`."""
        if self._context is not None:
            self.keep_compiled()
            with current(self._gpu.ordinal):
                self._context = self._kernels = None

    def _warm_up(self, stream: int) -> None:
        """The first run, with the checks that need not be made again."""
        if stream in _LEGACY_STREAMS:
            raise EngineError(
                f"{self.info.path}: an engine runs on the pipeline's own stream, "
                f"found the legacy default stream ({stream})"
            )
        tensors = (*self.info.inputs, *self.info.outputs)
        missing = [tensor.name for tensor in tensors if not self._addresses.get(tensor.name)]
        if missing:
            raise EngineError(f"{self.info.path}: no address is given for {', '.join(missing)}")
        with self._log.collect() as lines:
            if not self._context.execute_async_v3(stream):
                raise EngineError(
                    f"{self.info.path}: {self._found} could not enqueue a run. "
                    f"{explain(lines)}{quote(lines)}"
                )
        self._warm = True
