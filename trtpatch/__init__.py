"""trtpatch: CUDA kernel patches around a TensorRT engine, chosen and chained by YAML.

Reading order, as a pipeline is loaded and a frame walks through it: `pipeline`; `loaded` (its file
and all that it names), with `spec/`, `catalog` and `match`; `planner` (the chain bound to the
engine's tensors), with `sizes` and `launches`, and what it leaves, the `plan`; `ready` (an executor
a shape); `executors/` (who walks the plan), with `unit` (a step as CUDA text) and `compiler/`;
`engines/`; and `results`, with `detections`, `labels`, `masks` and `outputs`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trtpatch.errors import TrtpatchError

if TYPE_CHECKING:
    from trtpatch.detections import Counters, Detections
    from trtpatch.labels import Classification, Segmentation
    from trtpatch.masks import Masks
    from trtpatch.pipeline import Pipeline, load
    from trtpatch.results import Results

__all__ = [
    "Classification",
    "Counters",
    "Detections",
    "Masks",
    "Pipeline",
    "Results",
    "Segmentation",
    "TrtpatchError",
    "load",
]
__version__ = "0.1.0"

_HOMES = {
    "Classification": "trtpatch.labels",
    "Counters": "trtpatch.detections",
    "Detections": "trtpatch.detections",
    "Masks": "trtpatch.masks",
    "Pipeline": "trtpatch.pipeline",
    "Results": "trtpatch.results",
    "Segmentation": "trtpatch.labels",
    "load": "trtpatch.pipeline",
}


def __getattr__(name: str) -> Any:
    # Late, so that `import trtpatch` and `trtpatch --help` load nothing heavy.
    if name not in _HOMES:
        raise AttributeError(f"module 'trtpatch' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
