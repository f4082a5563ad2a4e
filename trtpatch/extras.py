"""What pip installs for what: the extras of setup.cfg by the names of their packages.

Who installed from a clone cannot ask an index for `trtpatch[cu13]`.
"""

from __future__ import annotations

import shlex

EXTRAS: dict[str, tuple[str, ...]] = {
    "cpu": ("onnx", "onnxruntime"),
    "cu12": ("cupy-cuda12x", "cuda-toolkit[cudart,nvrtc]==12.*"),
    "cu13": ("cupy-cuda13x", "cuda-toolkit[cudart,nvrtc]==13.*"),
    "nvrtc": ("cuda-pathfinder", "nvidia-cuda-nvrtc"),
    "trt": ("onnx", "tensorrt"),
    "rtx": ("onnx", "tensorrt-rtx"),
    "verify": ("hypothesis",),
    "watch": ("watchfiles",),
}


def install(extra: str) -> str:
    """The command that installs what an extra brings."""
    return f"pip install {shlex.join(EXTRAS[extra])}"
