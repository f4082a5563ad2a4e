"""What loading leaves: every buffer, every launch, every argument, as data that can be printed.

A plan is a chain of patches bound to an engine's real tensors. Nothing here touches a GPU.
Executors walk a plan; `unit` turns one of its steps into CUDA text.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, Union

from trtpatch.catalog import Patch
from trtpatch.spec.dtypes import ITEMSIZE
from trtpatch.spec.patch import ParamValue
from trtpatch.spec.ports import PORTS, FrameLayout

ALIGNMENT = 256
"""Bytes that every buffer's start is a multiple of."""

Region = Literal["frame", "cleared", "work", "result", "lazy"]
REGIONS: tuple[Region, ...] = ("frame", "cleared", "work", "result", "lazy")
BATCH_REGIONS: tuple[Region, ...] = ("frame", "result", "lazy")
"""Those that each batch has for itself while others are under way."""


@dataclass(frozen=True)
class Buffer:
    """A dense array in memory.

    Attributes:
        name: unique in the plan.
        dtype: NumPy name of the element type.
        shape: sizes of the axes.
        region: the block of memory that it lies in. `frame` is written from the host before each
            frame, `cleared` is zeroed as a whole before it, `result` is copied back after it,
            `lazy` when it is looked at.
        offset: bytes from the start of the region.
        cleared: zeroed before each frame, whatever its region.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    region: Region
    offset: int = 0
    cleared: bool = False

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return math.prod(self.shape) * ITEMSIZE[self.dtype]

    def view(self, region: Any) -> Any:
        """A typed array over its place in its region, given as an array of bytes."""
        place = region[self.offset : self.offset + self.nbytes]
        return place.view(self.dtype).reshape(self.shape)


@dataclass(frozen=True)
class Tensor:
    """A member of `Args` that points to one buffer, or to one a level of a group."""

    name: str
    dtype: str
    shapes: tuple[tuple[int, ...], ...]
    buffers: tuple[str, ...]
    grouped: bool = False
    written: bool = False
    ragged: bool = False


@dataclass(frozen=True)
class Setting:
    """A runtime parameter: one number in device memory, `float32` or `int32`.

    Attributes:
        value: at load.
        room: whether sizes were worked out from that value, which is then the most allowed.
    """

    name: str
    dtype: str
    value: float | int
    buffer: str
    room: bool = False


@dataclass(frozen=True)
class Launch:
    """One kernel launch; grid and block as x, y, z."""

    entry: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int = 0


@dataclass(frozen=True)
class PatchStep:
    """A patch bound to buffers.

    Attributes:
        sizes: symbols and derived sizes; a tuple where the levels of a group differ.
        params: baked parameters.
    """

    patch: Patch
    sizes: Mapping[str, Union[int, tuple[int, ...]]]
    params: Mapping[str, ParamValue]
    settings: tuple[Setting, ...]
    tensors: tuple[Tensor, ...]
    launches: tuple[Launch, ...]

    @property
    def name(self) -> str:
        """The patch's name."""
        return self.patch.name

    def check(self, setting: Setting, value: object) -> float:
        """A new value of a runtime parameter, as the kernel will see it.

        Raises:
            ValueError: wrong type, out of range, or more than there is room for.
        """
        number = self.patch.spec.params[setting.name].check(value)
        assert isinstance(number, (int, float))
        if setting.room and number > setting.value:
            raise ValueError(
                f"loaded with room for {setting.value}, found {value!r}. Give"
                f" '{setting.name}: {number}' in the pipeline file and load it again"
            )
        return number


@dataclass(frozen=True)
class EngineStep:
    """The engine's place: its own tensor names to buffers."""

    inputs: Mapping[str, str]
    outputs: Mapping[str, str]
    name: str = "engine"


Step = Union[PatchStep, EngineStep]


@dataclass(frozen=True)
class Plan:
    """Steps in order and the buffers that they share.

    Attributes:
        batch: frames that go through at once.
        frame_layout: how the bytes of the frames lie.
        results: names of the ports that the caller gets.
        more_results: names of the tensors that he gets besides: those that no step takes.
    """

    batch: int
    frame_layout: FrameLayout
    steps: tuple[Step, ...]
    buffers: Mapping[str, Buffer]
    results: tuple[str, ...]
    more_results: tuple[str, ...] = ()

    @property
    def patch_steps(self) -> Iterator[PatchStep]:
        """The steps that are patches."""
        return (step for step in self.steps if isinstance(step, PatchStep))

    @property
    def settings(self) -> Iterator[tuple[PatchStep, Setting]]:
        """Every runtime parameter with its step."""
        return ((step, setting) for step in self.patch_steps for setting in step.settings)

    @property
    def result_buffers(self) -> dict[str, str]:
        """Name of each field of the results' ports, and of the others, to its buffer."""
        fields = {name for port in self.results for name, _ in PORTS[port].fields()}
        fields.update(self.more_results)
        tensors = (tensor for step in self.patch_steps for tensor in step.tensors)
        return {t.name: t.buffers[0] for t in tensors if t.written and t.name in fields}

    @property
    def more_by_image(self) -> dict[str, bool]:
        """For each of `more_results`, whether its first axis is N, a row an image."""
        specs = {n: s for step in self.patch_steps for n, s in step.patch.spec.outputs.items()}
        tensors = ((name, specs[name]) for name in self.more_results)
        return {n: s != "port" and list(map(str, s.shape[:1])) == ["N"] for n, s in tensors}

    def views(self, regions: Mapping[str, Any]) -> dict[str, Any]:
        """A typed array over each buffer of the given regions, by the buffer's name."""
        found = {name: b for name, b in self.buffers.items() if b.region in regions}
        return {name: b.view(regions[b.region]) for name, b in found.items()}

    def region_bytes(self, region: Region) -> int:
        """Size of a region in bytes."""
        ends = (b.offset + b.nbytes for b in self.buffers.values() if b.region == region)
        return max(ends, default=0)


def lay_out(buffers: Mapping[str, Buffer]) -> dict[str, Buffer]:
    """Give each buffer its place in its region, each start a multiple of `ALIGNMENT` bytes."""
    ends = dict.fromkeys(REGIONS, 0)
    placed = {}
    for name, b in buffers.items():
        placed[name] = replace(b, offset=ends[b.region])
        ends[b.region] += -(-b.nbytes // ALIGNMENT) * ALIGNMENT
    return placed
