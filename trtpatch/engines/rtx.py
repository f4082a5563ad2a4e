"""What TensorRT-RTX has besides: kernels compiled for the GPU at hand when a plan is loaded."""

from __future__ import annotations

import hashlib
import logging
from pathlib import Path
from typing import Any

from trtpatch.engines.cache import engine_cache
from trtpatch.engines.device import Gpu
from trtpatch.engines.flavours import Found
from trtpatch.engines.planfile import PlanFile
from trtpatch.keep import as_name, keep

_log = logging.getLogger("trtpatch.engines")


def runtime_config(trt: Any, engine: Any) -> Any:
    """How an engine's context is to run, or None for a flavour that is not asked.

    No CUDA Graphs of TensorRT's own: the whole chain is captured in one. And kernels for the given
    shapes before the first run, else a graph would capture the slow ones that stand in for them.
    """
    if not hasattr(engine, "create_runtime_config"):
        return None
    config = engine.create_runtime_config()
    if hasattr(config, "cuda_graph_strategy"):
        config.cuda_graph_strategy = trt.CudaGraphStrategy.DISABLED
    if hasattr(config, "dynamic_shapes_kernel_specialization_strategy"):
        config.dynamic_shapes_kernel_specialization_strategy = (
            trt.DynamicShapesKernelSpecializationStrategy.EAGER
        )
    return config


class KernelCache:
    """What TensorRT-RTX compiled for this GPU, kept on disk; else a context takes seconds."""

    def __init__(
        self, config: Any, file: PlanFile, found: Found, gpu: Gpu, cache_dir: Path | None
    ) -> None:
        digest = hashlib.sha256(file.plan).hexdigest()[:16]
        name = "-".join(
            (as_name(file.path.stem), as_name(found.version), as_name(gpu.name), digest)
        )
        self._file = engine_cache(cache_dir) / f"{name}.kernels"
        self._cache = config.create_runtime_cache()
        try:
            self._saved = self._file.read_bytes()
        except OSError:
            self._saved = b""
        if self._saved and not self._cache.deserialize(self._saved):
            _log.warning("%s is damaged or out of date; its kernels are compiled anew", self._file)
        config.set_runtime_cache(self._cache)

    def save(self) -> None:
        """Write the file if there is more to keep than before."""
        memory = self._cache.serialize()
        data = bytes(memoryview(memory)) if memory is not None and memory.nbytes else b""
        if data and data != self._saved:
            try:
                keep(self._file, data)
            except OSError as error:
                _log.warning("%s cannot be written: %s", self._file, error)
            self._saved = data
