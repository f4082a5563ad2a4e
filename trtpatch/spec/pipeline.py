"""The pipeline file: an engine, and what may be said about how it is patched and run."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Union

from pydantic import BeforeValidator, Field, model_validator

from trtpatch.spec.patch import Listed
from trtpatch.spec.ports import FrameLayout
from trtpatch.spec.registry import Chain
from trtpatch.spec.validate import AlsoWritten, Schema

EngineKind = Literal["auto", "trt", "ort", "recorded"]
Flavour = Literal["auto", "tensorrt", "tensorrt_rtx", "tensorrt_lean", "tensorrt_dispatch"]

Shape = Annotated[tuple[int, ...], Listed]


class ProfileSpec(Schema):
    """The shapes of the picture input that an engine can run in."""

    min: Shape
    """Smallest shape."""
    opt: Shape
    """Shape that the engine is built to be best in, and that is used where nothing else is said."""
    max: Shape
    """Largest shape."""


class EngineSpec(Schema):
    """Which engine to run, and how to build it where the file is an ONNX model."""

    path: str
    """A TensorRT plan, an ONNX file or a recording, relative to this file."""
    kind: EngineKind = "auto"
    """Who runs it: TensorRT, ONNX Runtime, or nobody (recorded)."""
    flavour: Flavour = "auto"
    """Which TensorRT runs or builds it; auto takes the first that can."""
    input_shape: Union[Shape, None] = None
    """Shape of the picture input, instead of the one that an ONNX file declares; -1 leaves a size
    open."""
    profile: Union[ProfileSpec, None] = None
    """Bounds of the sizes that an ONNX file leaves open, such as min [1, 3, 320, 320]."""
    tf32: bool = True
    """TF32 in the matrix units, when an engine is built. TensorRT-RTX 1.4 does not heed it: there
    every convolution but depthwise ones and every matrix product is in TF32, unless
    NVIDIA_TF32_OVERRIDE=0 is in the environment, with which some layers have no kernel."""
    float16: bool = False
    """Half precision, when an engine is built and the flavour can choose."""


def _path_alone(value: object) -> object:
    return {"path": value} if isinstance(value, str) else value


class PipelineSpec(Schema):
    """A pipeline file."""

    engine: Annotated[EngineSpec, AlsoWritten(_path_alone, lambda _: {"type": "string"})]
    """The engine to run; its path may stand alone."""
    rule: Union[str, None] = None
    """Name of a registry's rule, instead of letting the engine's outputs decide."""
    chain: Union[Chain, None] = None
    """Names of patches in order, with the word engine in its place. With `rule`: instead of the
    rule's own; what else the rule says holds, parameters of the patches that stay among it."""
    bind: dict[str, Annotated[tuple[str, ...], Listed]] = {}
    """With `chain` alone: a patch's tensor name to the engine's own name of it, a pattern such as
    `cls_*`, or a list of names, one a level."""
    registry: Annotated[tuple[str, ...], Listed] = ()
    """Further registry files, relative to this one; a later rule replaces one of the same name."""
    labels: Annotated[
        Union[str, tuple[str, ...], None],
        BeforeValidator(lambda v: tuple(v) if isinstance(v, list) else v),
    ] = None
    """Class names: a text file with one a line, or a list."""
    params: dict[str, dict[str, Any]] = {}
    """Parameters that differ from the rule's and the contracts': patch to parameter to value."""
    frame: FrameLayout = "rgb"
    """How the bytes of the arrays lie that the pipeline is called with: channel by channel in a
    pixel, one channel alone, as video decoders give them, or channel after channel."""
    batch: Annotated[Union[int, None], Field(ge=1)] = None
    """Pictures at once, at most, where the engine leaves that open; fewer run in their own size."""
    size: Union[Literal["auto"], None] = None
    """With auto, each batch runs in the smallest size of the profile that holds its pictures."""
    shapes: Annotated[int, Field(ge=1)] = 4
    """Shapes of the engine's input that are kept ready at once; the one idle longest goes."""
    executor: Literal["auto", "gpu", "cpu", "host"] = "auto"
    """Who runs the patches; auto takes gpu where CuPy finds one, else cpu."""
    device: Annotated[int, Field(ge=0)] = 0
    """Which GPU, as CUDA numbers them."""
    graph: Literal["auto", "required", "off"] = "auto"
    """CUDA Graph of the whole walk: what can be captured, all of it or an error, or none."""
    bundle: Union[str, None] = None
    """Folder made by trtpatch compile, relative to this file: executor gpu takes its kernels from
    there and from nowhere else."""

    @model_validator(mode="after")
    def _bound_once(self) -> PipelineSpec:
        if self.bind and (self.chain is None or self.rule is not None):
            raise ValueError("'bind' goes with 'chain' alone; a rule names its tensors itself")
        return self
