"""The form of a case: all of it that is compiled in, sizes, element types and baked parameters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from trtpatch.catalog import Patch
from trtpatch.spec.expressions import Value
from trtpatch.spec.patch import TensorSpec
from trtpatch.spec.ports import FRAMEWORK_SIZES, PORTS, FrameLayout
from trtpatch.verify.cases import Case, as_group, plan_case


@dataclass(frozen=True)
class Form:
    """What is compiled in.

    Attributes:
        base: the case that it was made from.
        sizes: value of each symbol that inputs decide; a tuple where levels differ.
        dtypes: element type of each of the engine's tensors.
        params: values that differ from the contract's defaults.
        frame: how the bytes of the frames lie.
        changes: from the base, in words.
    """

    base: Case
    sizes: Mapping[str, Value]
    dtypes: Mapping[str, str]
    params: Mapping[str, Any]
    frame: FrameLayout = "rgb"
    changes: tuple[str, ...] = ()

    def shapes(self, patch: Patch, spec: TensorSpec) -> list[tuple[int, ...]]:
        """Shape of a tensor, level after level if it is a group.

        Raises:
            ValueError: a symbol has no value, or several.
        """
        levels = self.sizes[spec.levels[0]] if spec.levels else (0,)
        if not isinstance(levels, tuple):
            raise ValueError(f"{spec.levels[0]} is the same in all levels")
        found = []
        for number in range(len(levels)):
            known = known_names(patch, self.sizes, self.params)
            for name in spec.levels:
                known[name] = self.sizes[name][number]  # type: ignore[index]
            shape = [dim.evaluate(known) for dim in spec.shape]
            if not all(isinstance(size, int) and size > 0 for size in shape):
                raise ValueError(f"{shape} is no shape")
            found.append(tuple(shape))
        return found  # type: ignore[return-value]

    def case(self, patch: Patch, inputs: Mapping[str, Any]) -> Case:
        """A case of this form with the given inputs."""
        outputs = {
            name: self.shapes(patch, spec)[0]
            for name, spec in patch.spec.outputs.items()
            if isinstance(spec, TensorSpec) and name in self.base.shapes
        }
        if "model" in self.base.shapes:
            outputs["model"] = self.sizes["model_H"], self.sizes["model_W"]  # type: ignore[assignment]
        dtypes = {name: self.dtypes[name] for name in outputs if name in self.dtypes}
        return Case("", inputs, self.params, outputs, dtypes, self.frame)

    def blank(self, patch: Patch) -> Case:
        """A case of this form in which all is zero.

        Raises:
            ValueError: the sizes do not make shapes.
        """
        inputs: dict[str, Any] = {}
        for name, spec in patch.spec.inputs.items():
            if name == "frame":
                inputs["frame_images"] = [np.zeros((0, 0, 3), np.uint8)] * self.batch
            elif isinstance(spec, TensorSpec):
                arrays = [np.zeros(shape, self.dtypes[name]) for shape in self.shapes(patch, spec)]
                inputs[name] = arrays if spec.levels else arrays[0]
            else:
                inputs |= {
                    field: np.zeros(self.port_shape(tensor.shape), tensor.dtype)
                    for field, tensor in PORTS[name].fields()
                }
        return self.case(patch, inputs)

    def port_shape(self, axes: Sequence[str | int]) -> tuple[int, ...]:
        """Shape of a tensor of a port."""
        return tuple(self.sizes[a] if isinstance(a, str) else a for a in axes)  # type: ignore[misc]

    @property
    def batch(self) -> int:
        """Images."""
        return self.sizes["N"]  # type: ignore[return-value]

    @property
    def elements(self) -> int:
        """About how much there is to do; the smallest forms come first."""
        values = [v if isinstance(v, tuple) else (v,) for v in self.sizes.values()]
        return sum(map(sum, values))


def form_of(patch: Patch, case: Case) -> Form:
    """The form of a case.

    Raises:
        TrtpatchError: it does not fit the contract.
    """
    (step,) = plan_case(patch, case).patch_steps
    free = set(_free_symbols(patch, case))
    dtypes = {}
    for name, spec in {**patch.spec.inputs, **patch.spec.outputs}.items():
        if isinstance(spec, TensorSpec):
            given = case.inputs.get(name)
            there = case.dtypes.get(name, spec.dtype[0])
            dtypes[name] = there if given is None else as_group(given)[0].dtype.name
    sizes = {name: size for name, size in step.sizes.items() if name in free}
    return Form(case, sizes, dtypes, case.params, case.frame)


def _free_symbols(patch: Patch, case: Case) -> Iterator[str]:
    spec = patch.spec
    derived = {*spec.sizes, *spec.params}
    yield from ("N", *FRAMEWORK_SIZES)
    for name, tensor in {**spec.inputs, **spec.outputs}.items():
        if isinstance(tensor, TensorSpec):
            if name in spec.inputs or name in case.shapes:
                yield from (s for dim in tensor.shape for s in dim.names if s not in derived)
        elif name in spec.inputs:
            for one in PORTS[name].tensors:
                yield from (axis for axis in one.shape if isinstance(axis, str) and not one.ragged)


def known_names(
    patch: Patch, sizes: Mapping[str, Value], params: Mapping[str, Any]
) -> dict[str, Value]:
    """All that an expression of the contract may use, as far as it is known."""
    known: dict[str, Any] = dict(sizes)
    for name, spec in patch.spec.params.items():
        value = frozen(params.get(name, spec.default))
        if isinstance(value, tuple):
            known[f"{name}_count"] = len(value)
        if spec.type in ("int", "[int]"):
            known[name] = value
    for name, tensor in patch.spec.inputs.items():
        if isinstance(tensor, TensorSpec) and tensor.levels:
            known[f"{name}_count"] = len(sizes[tensor.levels[0]])  # type: ignore[arg-type]
    for name, size in patch.spec.sizes.items():
        try:
            known[name] = size.evaluate(known)
        except ValueError:
            continue
    return known


def frozen(value: Any) -> Any:
    """A parameter's value, a list as a tuple."""
    return tuple(value) if isinstance(value, list) else value
