"""Recorded engine outputs, kept in one `.npz` file and played back in order.

They stand in for an engine in tests and bug reports: the same outputs on every machine. The file
is an ordinary NumPy archive: `recording` (JSON text: format, version, the engine's `EngineInfo`),
and for frame i its `sizes_i`, int32 `[N, 2]` (height, width), and `i_j`, the j-th output.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from io import BytesIO
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from trtpatch.engines import EngineInfo, Shape, Tensor
from trtpatch.engines.files import content_of, read_file, what_is
from trtpatch.engines.metadata import Metadata
from trtpatch.engines.options import BuildOptions
from trtpatch.engines.shapes import check_shapes
from trtpatch.errors import EngineError
from trtpatch.keep import keep

if TYPE_CHECKING:
    from numpy.typing import NDArray

_FORMAT = "trtpatch recording"
_VERSION = 1


@dataclass(frozen=True)
class RecordedFrame:
    """What one run of an engine gave.

    Attributes:
        outputs: by output name, for the whole batch.
        sizes: int32 `[N, 2]`, (height, width) in pixels of each frame of the batch.
    """

    outputs: Mapping[str, NDArray[Any]]
    sizes: NDArray[np.int32]


def save_recording(path: Path, *, info: EngineInfo, frames: Iterable[RecordedFrame]) -> None:
    """Write a recording.

    Args:
        path: the file, overwritten as a whole.
        info: of the engine that ran; its inputs and outputs as they were prepared, without -1.
        frames: in order, each with every output of `info`, of its dtype and shape.

    Raises:
        EngineError: there is no frame, or one has not the outputs that `info` announces.
    """
    arrays: dict[str, Any] = {}
    count = 0
    for count, frame in enumerate(frames, start=1):
        i = count - 1
        if set(frame.outputs) != {output.name for output in info.outputs}:
            raise EngineError(
                f"frame {i} of the recording has the outputs {sorted(frame.outputs)}, "
                f"expected {sorted(output.name for output in info.outputs)}"
            )
        for j, output in enumerate(info.outputs):
            array = np.asarray(frame.outputs[output.name])
            if array.dtype != output.dtype or array.shape != output.shape:
                raise EngineError(
                    f"frame {i} of the recording: expected output {output}, "
                    f"found {array.dtype} {list(array.shape)}"
                )
            arrays[f"{i}_{j}"] = array
        sizes = np.asarray(frame.sizes, np.int32)
        if sizes.ndim != 2 or sizes.shape[1] != 2:
            raise EngineError(
                f"frame {i} of the recording: sizes are [N, 2], found {list(sizes.shape)}"
            )
        arrays[f"sizes_{i}"] = sizes
    if not count:
        raise EngineError("a recording needs at least one frame")
    head = {"format": _FORMAT, "version": _VERSION, "frames": count, "info": asdict(info)}
    arrays = {"recording": np.array(json.dumps(head)), **arrays}
    buffer = BytesIO()
    np.savez_compressed(buffer, **arrays)
    try:
        keep(path, buffer.getvalue())
    except OSError as error:
        raise EngineError(f"{path}: cannot be written: {error.strerror or error}") from None


class RecordedEngine:
    """See `OpenEngine` and `HostEngine`: it is ready to run in the shapes that were recorded.

    Every `run` gives the outputs of the next recorded frame.

    Attributes:
        sizes: of every recorded frame, int32 `[N, 2]` (height, width), in pixels.
    """

    on_device: Literal[False] = False
    needs_inputs = False

    def __init__(self, path: Path, options: BuildOptions | None = None) -> None:
        """Read a whole recording.

        Args:
            path: the file.
            options: of which none plays a part, which is told.

        Raises:
            EngineError: the file cannot be read, is no recording, or is damaged.
        """
        data = read_file(path)
        if content_of(data) != "recorded":
            raise EngineError(f"{path}: not a recording; it is {what_is(data)}")
        try:
            with np.load(BytesIO(data), allow_pickle=False) as archive:
                head = _head(path, archive)
                self.info = _info(path, head, options or BuildOptions())
                self.sizes = tuple(archive[f"sizes_{i}"] for i in range(head["frames"]))
                self._frames = [
                    {output.name: archive[f"{i}_{j}"] for j, output in enumerate(self.info.outputs)}
                    for i in range(head["frames"])
                ]
        except EngineError:
            raise
        except Exception as error:  # what a damaged archive raises is not documented
            raise EngineError(f"{path}: the recording is damaged: {error}") from None
        for i, (frame, sizes) in enumerate(zip(self._frames, self.sizes, strict=True)):
            if sizes.ndim != 2 or sizes.shape[1] != 2 or sizes.dtype.kind not in "iu":
                raise EngineError(
                    f"{path}: the recording is damaged: frame {i} has {sizes.dtype}"
                    f" {list(sizes.shape)} for the sizes of its pictures"
                )
            for output in self.info.outputs:
                array = frame[output.name]
                if array.dtype != output.dtype or array.shape != output.shape:
                    raise EngineError(
                        f"{path}: the recording is damaged: frame {i} has {array.dtype} "
                        f"{list(array.shape)} for output {output}"
                    )
        self._next = 0

    def __len__(self) -> int:
        return len(self._frames)

    def at(self, input_shapes: Mapping[str, Shape]) -> RecordedEngine:
        """See `OpenEngine.at`; the shapes can only be those that were recorded."""
        check_shapes(self.info.path, input_shapes, self.info.inputs)
        return self

    def check_pictures(self, sizes: Sequence[tuple[int, int]]) -> None:
        """See `OpenEngine.check_pictures`; they must be those of the next frame."""
        recorded = self.sizes[self._next : self._next + 1]
        for place, (height, width) in enumerate(sizes if recorded else ()):
            was = recorded[0][place].tolist() if place < len(recorded[0]) else [0, 0]
            if was != [height, width]:
                found = f"{was[1]} x {was[0]} px" if was[0] else "none"
                raise EngineError(
                    f"{self.info.path}: picture {place + 1} of recorded frame {self._next + 1} was"
                    f" {found}, and this one is {width} x {height} px. Give the pictures that were"
                    " recorded, in the same order"
                )

    def run(self, inputs: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
        """The outputs of the next frame; inputs are not looked at.

        Raises:
            EngineError: all frames have been played.
        """
        del inputs
        if self._next >= len(self._frames):
            raise EngineError(
                f"{self.info.path}: {len(self._frames)} frames were recorded and all have been "
                "played; rewind() starts again"
            )
        self._next += 1
        return dict(self._frames[self._next - 1])

    def rewind(self) -> None:
        """Play from the first frame again."""
        self._next = 0

    def close(self) -> None:
        """See `HostEngine.close`."""


def _head(path: Path, archive: Mapping[str, NDArray[Any]]) -> dict[str, Any]:
    if "recording" not in archive:
        raise EngineError(
            f"{path}: a NumPy archive, but not a recording; 'trtpatch record' writes one"
        )
    head: dict[str, Any] = json.loads(str(archive["recording"]))
    if head.get("format") != _FORMAT:
        raise EngineError(f"{path}: not a recording; its format is {head.get('format')!r}")
    if head.get("version") != _VERSION:
        raise EngineError(
            f"{path}: a recording of version {head.get('version')}; this trtpatch reads "
            f"version {_VERSION}. Record it again, or use the trtpatch that wrote it"
        )
    return head


def _info(path: Path, head: Mapping[str, Any], options: BuildOptions) -> EngineInfo:
    """The recorded engine's `EngineInfo`, with the recording as its file."""
    info = dict(head["info"])
    for side in ("inputs", "outputs"):
        info[side] = tuple(_tensor(one) for one in info[side])
    metadata = info["metadata"]
    _refuse_unless(str, info["flavour"], info["version"], *metadata["names"])
    _refuse_unless(str, *metadata["extra"], *metadata["extra"].values())
    _refuse_unless((int, NoneType), metadata["stride"])
    made_by = f"recorded from {info['flavour']} {info['version']}, {Path(info['path']).name}"
    unheeded = options.unheeded(
        "outputs are as they were recorded", "input_shape", "profile", "tf32", "float16"
    )
    return EngineInfo(
        kind="recorded",
        path=str(path),
        flavour=info["flavour"],
        version=info["version"],
        inputs=info["inputs"],
        outputs=info["outputs"],
        metadata=Metadata(tuple(metadata["names"]), metadata["stride"], dict(metadata["extra"])),
        notes=(made_by, *unheeded),
    )


def _tensor(one: Mapping[str, Any]) -> Tensor:
    _refuse_unless(str, one["name"])
    _refuse_unless(int, *one["shape"])
    return Tensor(one["name"], np.dtype(one["dtype"]).name, tuple(one["shape"]))


def _refuse_unless(kind: Any, *values: object) -> None:
    for value in values:
        if not isinstance(value, kind) or isinstance(value, bool):
            raise ValueError(f"{value!r} does not belong there")
