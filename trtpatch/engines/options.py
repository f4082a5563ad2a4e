"""What a user may say of how an engine is built and in which shapes it runs."""

from __future__ import annotations

from dataclasses import dataclass

from trtpatch.engines import InputShape, Profile


@dataclass(frozen=True)
class BuildOptions:
    """In which shapes an engine runs, and how its plan is built.

    Attributes:
        flavour: of TensorRT; `auto` takes the first that builds.
        tf32: whether float32 layers may multiply with 10 bits of mantissa on the matrix units.
            TensorRT-RTX 1.4 does so in any case, in all convolutions but depthwise ones and in
            matrix products; `NVIDIA_TF32_OVERRIDE=0` in the environment prevents it, when the plan
            is loaded, and some of these then have no kernel (`benchmarks/tf32.py`).
        float16: whether layers may run in half precision. Flavours that keep the types of the ONNX
            file cannot; the plan then carries a note that says so.
        workspace_bytes: most scratch memory of a layer; 0 leaves it to TensorRT.
        input_shape: shapes instead of those that the ONNX file declares: by input name, or one
            for the only input with that many axes; -1 leaves a size open.
        profile: smallest, best and largest shape of the inputs with open sizes: likewise.
        batch: pictures at once, at most, where the file leaves that open and no profile tells.
        compute_capabilities: names such as `SM89`, for a flavour that builds for chosen GPUs; empty
            for its default.
        version_compatible: whether later versions, and the lean runtime, may run the plan.
    """

    flavour: str = "auto"
    tf32: bool = True
    float16: bool = False
    workspace_bytes: int = 0
    input_shape: InputShape = None
    profile: Profile = None
    batch: int | None = None
    compute_capabilities: tuple[str, ...] = ()
    version_compatible: bool = False

    def unheeded(self, why: str, *names: str) -> tuple[str, ...]:
        """A note on those of the named options that were asked for and play no part."""
        plain = BuildOptions()
        asked = [name for name in names if getattr(self, name) != getattr(plain, name)]
        return (f"without effect: {', '.join(asked)}; {why}",) if asked else ()
