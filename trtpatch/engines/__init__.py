"""Engines: what runs a network, whoever made it, behind a few small protocols.

`open_engine` opens a file; `at` gives it the shapes of its inputs and makes it ready to run. What
is ready is a `HostEngine`, which takes and gives NumPy arrays: an ONNX file on ONNX Runtime's CPU
provider (`ort`) or recorded outputs that are played back (`recorded`); or a `DeviceEngine`, which
takes device addresses and a CUDA stream: a TensorRT plan run by one of its flavours (`trt`).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, Union

from trtpatch.engines.metadata import Metadata
from trtpatch.errors import EngineError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from trtpatch.engines.options import BuildOptions

_log = logging.getLogger("trtpatch.engines")

EngineKind = Literal["trt", "ort", "recorded"]
Shape = tuple[int, ...]
InputShape = Union[Shape, Mapping[str, Shape], None]
Bounds = tuple[Shape, Shape, Shape]
"""Smallest, best and largest shape of an input, as an optimisation profile has them."""
Profile = Union[Bounds, Mapping[str, Bounds], None]


@dataclass(frozen=True)
class Tensor:
    """One input or output of an engine.

    Attributes:
        name: as the network calls it.
        dtype: NumPy name of the element type; `bfloat16` and the like where NumPy has none.
        shape: sizes of the axes, -1 where the engine leaves one open.
    """

    name: str
    dtype: str
    shape: Shape

    def __str__(self) -> str:
        return f"{self.name} {self.dtype} {list(self.shape)}"


@dataclass(frozen=True)
class EngineInfo:
    """What an engine is, and what it takes and gives.

    Attributes:
        kind: who runs it.
        path: the file that the user named.
        flavour: TensorRT's flavour, `onnxruntime`, or for recorded outputs the flavour recorded.
        version: version of the running library.
        inputs, outputs: without -1 once the engine is ready to run.
        bounds: of the inputs with open sizes, as far as there are any, by name.
        notes: what the user is told when the engine is loaded.
        scratch_bytes: GPU memory that it takes for each set of shapes that is ready.
    """

    kind: EngineKind
    path: str
    flavour: str
    version: str
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    metadata: Metadata = field(default_factory=Metadata)
    bounds: Mapping[str, Bounds] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    scratch_bytes: int = 0


class OpenEngine(Protocol):
    """An engine's file, read and loaded."""

    info: EngineInfo

    def at(self, input_shapes: Mapping[str, Shape]) -> Engine:
        """Make the engine ready to run in the given shapes, beside others that are ready.

        An output whose size depends on the data has the shape of its bound: rows past what a run
        finds are not written.

        Args:
            input_shapes: a shape for every input, by the engine's own names.

        Returns:
            An engine whose `info` has no open sizes. It is closed with this one, if not before.

        Raises:
            EngineError: a name is missing or unknown, a shape does not fit the engine, or an
                output's shape depends on the data without a bound.
        """
        ...

    def check_pictures(self, sizes: Sequence[tuple[int, int]]) -> None:
        """Refuse pictures that the engine has no outputs for: a recording has those of its own.

        Args:
            sizes: height and width in pixels of each picture of the next run.

        Raises:
            EngineError: one is of another size than the picture that was recorded.
        """
        ...

    def close(self) -> None:
        """Give back what the engine holds, and close all that `at` gave."""
        ...


class HostEngine(Protocol):
    """An engine that is ready to compute in host memory.

    Attributes:
        needs_inputs: False where `run` wants no inputs: it plays back what was recorded.
    """

    info: EngineInfo
    on_device: Literal[False]
    needs_inputs: bool

    def run(self, inputs: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
        """Run once. Arrays have the dtypes and shapes of `info`."""
        ...

    def close(self) -> None:
        """Give back what this one holds; it cannot run any more."""
        ...


class DeviceEngine(Protocol):
    """An engine that is ready to compute in the memory of one GPU.

    Attributes:
        obstacle: why `enqueue` cannot be captured in a CUDA Graph; empty where there is nothing
            known against it after one enqueue that was not captured.
    """

    info: EngineInfo
    on_device: Literal[True]
    obstacle: str

    def enqueue(self, addresses: Mapping[str, int], stream: int) -> None:
        """Put one run on a stream: no wait, no allocation.

        The engine's GPU must be the calling thread's current one. The first enqueue is the
        warm-up: it may compile and allocate, and must not be captured.

        Args:
            addresses: device address of every input and output, by name; all of them on the first
                call, later at least those that changed.
            stream: handle of the pipeline's own stream, never the legacy default stream 0.

        Raises:
            EngineError: an address is missing, or the run could not be enqueued.
        """
        ...

    def keep_compiled(self) -> None:
        """Keep on disk what was compiled so far; call it after the warm-up has finished."""
        ...

    def close(self) -> None:
        """Give back what this one holds; it cannot run any more."""
        ...


Engine = Union[HostEngine, DeviceEngine]


def open_engine(
    path: str | Path,
    *,
    gpu: bool,
    kind: Literal["auto", "trt", "ort", "recorded"] = "auto",
    flavour: str = "auto",
    device: int = 0,
    options: BuildOptions | None = None,
    cache_dir: Path | None = None,
) -> OpenEngine:
    """Open an engine file; what the file holds decides what runs it.

    Args:
        path: a TensorRT plan, an ONNX file, or a recording (`.npz`).
        gpu: whether the chain of patches will run on a GPU. With one, and a TensorRT flavour that
            builds, an ONNX file becomes a plan, built once and kept in the cache; else ONNX
            Runtime runs it on the CPU.
        kind: insists on who runs the file.
        flavour: insists on one flavour of TensorRT.
        device: ordinal of the GPU that a plan runs on.
        options: shapes, and how a plan is built; what plays no part is told in the notes.
        cache_dir: where built plans are kept, instead of the user's cache folder.

    Raises:
        EngineError: the file cannot be read, is of another kind, or does not run here.
    """
    from trtpatch.engines.files import content_of, read_file, what_is
    from trtpatch.engines.options import BuildOptions
    from trtpatch.engines.ort import OrtEngine
    from trtpatch.engines.planfile import read_plan
    from trtpatch.engines.recorded import RecordedEngine
    from trtpatch.engines.trt import TrtEngine

    path = Path(path)
    options = options or BuildOptions()
    head = read_file(path, most_bytes=4096)
    content = content_of(head)
    if kind == "recorded" or (kind == "auto" and content == "recorded"):
        return RecordedEngine(path, options)
    if kind == "ort" or (kind == "auto" and content == "onnx" and not gpu):
        return OrtEngine(path, options)
    if kind == "auto" and content == "other":
        raise EngineError(
            f"{path}: not an engine, which is a TensorRT plan, an ONNX file or a recording; "
            f"it is {what_is(head)}"
        )
    if not gpu:
        what = "kind: trt" if content == "onnx" else f"a plan built by {read_plan(path).header}"
        raise EngineError(
            f"{path}: {what} runs on a GPU, and this chain runs on the CPU. Use the gpu executor, "
            "or run an ONNX file by ONNX Runtime (kind: ort)"
        )
    if content == "onnx":
        if flavour != "auto":
            options = replace(options, flavour=flavour)
        return _built(path, options, insists=kind == "trt", device=device, cache_dir=cache_dir)
    return TrtEngine(
        path,
        options,
        flavour=flavour,
        device=device,
        cache_dir=cache_dir,
        any_form=content == "other",
    )


def _built(
    path: Path, options: BuildOptions, *, insists: bool, device: int, cache_dir: Path | None
) -> OpenEngine:
    """An ONNX file as a plan on a GPU; on the CPU, and said so, where nothing builds plans."""
    from trtpatch.engines.build import cached_build
    from trtpatch.engines.device import gpu_for
    from trtpatch.engines.flavours import choose
    from trtpatch.engines.ort import OrtEngine
    from trtpatch.engines.trt import TrtEngine

    try:
        choose(options.flavour, builds=True)
    except EngineError as error:
        if insists or options.flavour != "auto":
            raise
        note = f"the network runs on the CPU, by ONNX Runtime: {error}"
        return OrtEngine(path, options, notes=(note,))
    plan = cached_build(path, options, gpu=gpu_for(path, device), cache_dir=cache_dir)
    _log.info("%s: its plan is %s", path, plan)
    engine = TrtEngine(plan, flavour=options.flavour, device=device, cache_dir=cache_dir)
    engine.info = replace(engine.info, path=str(path))
    return engine
