"""The contract, `patch.yaml`: what a patch takes, gives and needs, and how it is launched."""

from __future__ import annotations

import math
import re
from numbers import Integral, Real
from typing import Annotated, Any, Literal, Union

from pydantic import BeforeValidator, Discriminator, Field, Tag, model_validator

from trtpatch.spec.dims import Dim
from trtpatch.spec.dtypes import Dtype
from trtpatch.spec.ports import FRAMEWORK_SIZES, PORTS, FrameLayout
from trtpatch.spec.validate import AlsoWritten, MisplacedError, Schema, choose, nearest

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")

Scalar = Union[bool, int, float, str]
ParamValue = Union[Scalar, tuple[Scalar, ...]]


def _listed(value: object) -> object:
    if isinstance(value, list):
        return tuple(value)
    return value if isinstance(value, tuple) or value is None else (value,)


def _name(value: object) -> str:
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise ValueError(f"expected a name of letters, digits and _, found {value!r}")
    return value


Name = Annotated[str, BeforeValidator(_name)]
Listed = AlsoWritten(_listed, lambda listed: listed["items"])
"""A list; one item may stand alone."""


def _unlisted(value: object) -> object:
    return f"[{value[0]}]" if isinstance(value, list) and len(value) == 1 else value


class TensorSpec(Schema):
    """A tensor: element types that the kernel can read, and its shape."""

    dtype: Annotated[tuple[Dtype, ...], Listed, Field(min_length=1)]
    """Element types that the kernel can read; the first is used where nothing else decides."""
    shape: Annotated[tuple[Dim, ...], Listed]
    """Sizes of the axes: numbers, symbols, or expressions such as 4 + C."""
    levels: Annotated[tuple[Name, ...], Listed] = ()
    """Makes a group, one tensor a level of the detector, the largest first: the symbols of the
    shape that differ from level to level."""
    clear: bool = False
    """Zeroed before each frame (outputs and scratch)."""


def _word_or_mapping(value: object) -> str:
    return "mapping" if isinstance(value, (dict, Schema)) else "word"


BY_FORM = Discriminator(_word_or_mapping)
PortOrTensor = Annotated[
    Union[Annotated[Literal["port"], Tag("word")], Annotated[TensorSpec, Tag("mapping")]], BY_FORM
]


class ParamSpec(Schema):
    """A parameter: its type, its range, and whether it may change from frame to frame."""

    type: Annotated[
        Literal["float", "int", "bool", "choice", "[float]", "[int]"],
        AlsoWritten(_unlisted, lambda _: {"enum": [["float"], ["int"]]}),
    ]
    """What its value is; [float] and [int] are lists."""
    default: Annotated[ParamValue, BeforeValidator(lambda v: tuple(v) if type(v) is list else v)]
    """Its value where neither a rule nor a pipeline file gives one."""
    help: str
    """What it does, in half a sentence."""
    min: Union[int, float, None] = None
    """Smallest value allowed."""
    max: Union[int, float, None] = None
    """Largest value allowed."""
    choices: Annotated[tuple[str, ...], Listed] = ()
    """With type choice: the values allowed."""
    length: Union[int, None] = None
    """How many values a list has."""
    runtime: bool = False
    """Whether it may change from frame to frame: it then lies in device memory, a whole number in
    32 bits, in which larger ones are held at the end. Where a size depends on it, its value at
    load is the most that it can be set to."""

    @model_validator(mode="after")
    def _consistent(self) -> ParamSpec:
        if (self.type == "choice") != bool(self.choices):
            raise ValueError("'choices' goes with 'type: choice', and only with it")
        if self.runtime and self.type not in ("float", "int"):
            raise ValueError("'runtime: true' is for parameters of type float or int")
        self.check(self.default)
        return self

    def check(self, value: object) -> ParamValue:
        """The value as the kernel will see it.

        Raises:
            ValueError: wrong type, out of range, not among the choices, or of the wrong length.
        """
        if self.type in ("[float]", "[int]"):
            # An empty list says that nothing is given; only where that is the default.
            if not isinstance(value, (list, tuple)) or (not value and self.default):
                raise ValueError(f"expected a list of {self.type[1:-1]}, found {value!r}")
            if value and self.length is not None and len(value) != self.length:
                raise ValueError(f"expected {self.length} values, found {len(value)}")
            return tuple(self._check_one(one, self.type[1:-1]) for one in value)
        return self._check_one(value, self.type)

    @property
    def bounds(self) -> str:
        """Which numbers are allowed, in words; empty where all are."""
        if self.min is None:
            return "" if self.max is None else f"{self.max} or less"
        return f"{self.min} or more" if self.max is None else f"{self.min} to {self.max}"

    def _check_one(self, value: object, kind: str) -> Scalar:
        if kind == "choice":
            if not isinstance(value, str) or value not in self.choices:
                expected = " or ".join(self.choices)
                hint = nearest(str(value), self.choices)
                raise ValueError(f"expected {expected}, found {value!r}.{hint}")
            return value
        if kind == "bool":
            if not isinstance(value, bool):
                raise ValueError(f"expected true or false, found {value!r}")
            return value
        whole = kind == "int"
        if isinstance(value, bool) or not isinstance(value, Integral if whole else Real):
            raise ValueError(f"expected {'a whole' if whole else 'a'} number, found {value!r}")
        bits = 31 if self.type == "[int]" else 63  # of a list, each is an int in `Args`
        if not -(2**bits) <= value < 2**bits:  # nor is NaN
            raise ValueError(f"expected a finite number of at most {bits} bits, found {value!r}")
        number = int(value) if whole and isinstance(value, Integral) else float(value)
        low = self.min if self.min is not None else -math.inf
        high = self.max if self.max is not None else math.inf
        if not low <= number <= high:
            raise ValueError(f"expected {self.bounds}, found {value!r}")
        if self.runtime and whole:
            return int(max(-(2**31), min(number, 2**31 - 1)))
        return number


class LaunchSpec(Schema):
    """One kernel launch: over elements (`over`) or in so many blocks (`grid`)."""

    entry: Name
    """Name of the kernel function."""
    over: Annotated[tuple[Dim, ...], Listed, Field(max_length=3)] = ()
    """Elements that the threads cover, axis by axis, the last along x."""
    grid: Annotated[tuple[Dim, ...], Listed, Field(max_length=3)] = ()
    """Instead of over: blocks, axis by axis, the last along x."""
    block: Annotated[tuple[Dim, ...], Listed, Field(min_length=1, max_length=3)]
    """Threads in a block: x, or x, y, or x, y, z."""
    per_thread: Dim = Field(default=1, validate_default=True)
    """With over: elements along x that one thread covers."""
    shared: Dim = Field(default=0, validate_default=True)
    """Bytes of dynamic shared memory in a block."""

    @model_validator(mode="after")
    def _one_of(self) -> LaunchSpec:
        if bool(self.over) == bool(self.grid):
            raise ValueError("a launch says either 'over' (elements) or 'grid' (blocks)")
        return self


class Options(Schema):
    """How the kernels are compiled, beyond what trtpatch always passes."""

    fast_math: bool = False
    """Approximate mathematics, as NVRTC's --use_fast_math has it."""
    nvrtc: Annotated[tuple[str, ...], Listed] = ()
    """Further options of NVRTC."""


class Closeness(Schema):
    """How far a kernel may be from the reference: |difference| <= atol + rtol * |reference|."""

    atol: float = Field(default=0.0, ge=0.0)
    """Difference allowed as it is."""
    rtol: float = Field(default=0.0, ge=0.0)
    """Difference allowed as a part of the reference."""


Tolerance = Annotated[
    Union[Annotated[Literal["exact"], Tag("word")], Annotated[Closeness, Tag("mapping")]], BY_FORM
]


class PatchSpec(Schema):
    """A contract."""

    summary: str
    """What the patch does, in one line."""
    kind: Name
    """What it can stand in for: patches of one kind are exchanged for one another."""
    inputs: dict[Name, PortOrTensor]
    """What it takes: name of a port to the word port, or name of a tensor to its form."""
    outputs: dict[Name, PortOrTensor]
    """What it gives, written like inputs."""
    frames: Annotated[tuple[FrameLayout, ...], Listed, Field(min_length=1)] = ("rgb", "bgr")
    """Of a patch that takes the port frame: how the bytes of frames may lie."""
    params: dict[Name, ParamSpec] = {}
    """Its parameters by name."""
    sizes: dict[Name, Dim] = {}
    """Further sizes by name, worked out from the symbols of the shapes."""
    where: Annotated[tuple[Dim, ...], Listed] = ()
    """Conditions that the sizes must meet."""
    scratch: dict[Name, TensorSpec] = {}
    """Memory of its own, by name, between its launches."""
    launch: Annotated[tuple[LaunchSpec, ...], Listed, Field(min_length=1)]
    """Its kernel launches, in order."""
    options: Options = Options()
    """How its kernels are compiled."""
    tolerance: dict[Name, Tolerance] = {}
    """How near to the reference an output must be; one that is not named must be exact."""

    @model_validator(mode="after")
    def _names(self) -> PatchSpec:
        names = [*self.fields(self.inputs), *self.fields(self.outputs), *self.params]
        names += [*self.sizes, *self.scratch]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"name {twice[0]!r} is used twice; the kernel's Args has one of each")
        for side, tensors in (("inputs", self.inputs), ("outputs", self.outputs)):
            for name, spec in tensors.items():
                if (spec == "port") != (name in PORTS):
                    raise MisplacedError(
                        (side, name),
                        f"{name!r}: a port is written '{name}: port'."
                        if name in PORTS
                        else f"{name!r} is no port.{choose(name, PORTS)}",
                    )
        outputs = self.fields(self.outputs)
        for name in self.tolerance:
            if name not in outputs:
                message = f"tolerance for {name!r}, no output.{choose(name, outputs)}"
                raise MisplacedError(("tolerance", name), message)
        return self

    def fields(self, tensors: dict[str, Any]) -> tuple[str, ...]:
        """Names in `Args` of the given inputs or outputs: a port's tensors one by one."""
        return tuple(
            field
            for name, spec in tensors.items()
            for field in (
                [n for n, _ in PORTS[name].fields()] if spec == "port" and name in PORTS else [name]
            )
        )

    def symbols(self) -> frozenset[str]:
        """Every name that the contract's expressions may use."""
        names = {*FRAMEWORK_SIZES, *self.sizes}
        names |= {name for name, param in self.params.items() if param.type in ("int", "[int]")}
        names |= {f"{name}_count" for name, param in self.params.items() if "[" in param.type}
        for name, spec in (*self.inputs.items(), *self.outputs.items()):
            if isinstance(spec, TensorSpec):
                names |= {symbol for dim in spec.shape for symbol in dim.names}
                names |= {f"{name}_count"} if spec.levels else set()
            elif name in self.inputs:
                shapes = (tensor.shape for tensor in PORTS[name].tensors if not tensor.ragged)
                names |= {dim for shape in shapes for dim in shape if isinstance(dim, str)}
        return frozenset(names)

    def sizing(self) -> frozenset[str]:
        """Every name that a size, a shape of its own or a launch depends on."""
        dims = [*self.sizes.values(), *self.where]
        for spec in (*self.outputs.values(), *self.scratch.values()):
            dims += spec.shape if isinstance(spec, TensorSpec) else ()
        for launch in self.launch:
            dims += [*launch.over, *launch.grid, *launch.block, launch.per_thread, launch.shared]
        return frozenset(name for dim in dims for name in dim.names)
