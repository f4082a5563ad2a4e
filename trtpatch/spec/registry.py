"""The registry, `registry.yaml`: where patches lie, and which chain goes with which engine."""

from __future__ import annotations

from typing import Annotated, Any, Union

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from trtpatch.spec.dims import Dim
from trtpatch.spec.dtypes import Dtype
from trtpatch.spec.patch import Listed, Name
from trtpatch.spec.ports import FRAMEWORK_SIZES
from trtpatch.spec.validate import AlsoWritten, Schema, choose

ENGINE = "engine"
"""The place of the engine in a chain."""


class TensorPattern(Schema):
    """What an engine's tensor must look like to go by a name that the chain's patches use."""

    shape: Annotated[tuple[Dim, ...], Listed]
    """Sizes of its axes: numbers, symbols, or expressions such as 4 + C."""
    tensor: Annotated[tuple[str, ...], Listed] = ("*",)
    """The engine's own name of it, or a pattern such as `cls_*`; several where any of them may
    be."""
    dtype: Annotated[tuple[Dtype, ...], Listed] = ()
    """Its element types; any where none is given."""
    levels: Annotated[tuple[Name, ...], Listed] = ()
    """Takes all tensors that fit as one group, the largest first; the symbols that differ."""


def _pattern(value: object) -> object:
    return {"shape": value} if isinstance(value, list) else value


_SHAPE_ALONE = {"type": "array", "items": {"type": ["string", "integer"]}}
Pattern = Annotated[TensorPattern, AlsoWritten(_pattern, lambda _: _SHAPE_ALONE)]


def _engine_once(chain: tuple[str, ...]) -> tuple[str, ...]:
    if chain.count(ENGINE) != 1:
        raise ValueError(f"a chain has {ENGINE!r} in it, once; found {', '.join(chain)}")
    return chain


Chain = Annotated[tuple[str, ...], Listed, AfterValidator(_engine_once)]
Told = Annotated[
    Union[str, tuple[Dim, ...]],
    BeforeValidator(lambda value: tuple(value) if isinstance(value, list) else value),
]
"""A text, or whole numbers as a shape has them."""


class RuleSpec(Schema):
    """An engine whose tensors look like this goes to this chain of patches."""

    name: str
    """Name by which a pipeline file can ask for it."""
    help: str = ""
    """Which engines it is for."""
    inputs: dict[Name, Pattern] = {}
    """What the engine's inputs look like, under the names that the chain's patches use. Where none
    is given, the contracts of the patches before the engine decide."""
    outputs: Annotated[dict[Name, Pattern], Field(min_length=1)]
    """What the engine's outputs look like; each must have its place."""
    where: Annotated[tuple[Dim, ...], Listed] = ()
    """Conditions that the symbols of the shapes must meet."""
    metadata: dict[str, Told] = {}
    """What the exporter wrote into such an engine: a text, or a list of whole numbers, which may be
    symbols as in shapes. It must not say otherwise; where it says all of this, the rule goes before
    those that do not ask for it."""
    usual: dict[Name, int] = {}
    """Values of symbols where the exporter does not say what `metadata` asks for."""
    chain: Chain
    """Names of patches in order, with the word engine in its place."""
    params: dict[str, dict[str, Any]] = {}
    """Parameters that differ from the contracts' defaults: patch to parameter to value. A whole
    number may be an expression of the symbols in the shapes."""

    @model_validator(mode="after")
    def _conditions(self) -> RuleSpec:
        shapes = (pattern.shape for pattern in (*self.inputs.values(), *self.outputs.values()))
        known = FRAMEWORK_SIZES.union(*(dim.names for shape in shapes for dim in shape))
        for name in self.usual:
            if name not in known:
                raise ValueError(f"usual: no shape has {name}.{choose(name, known)}")
        for condition in self.where:
            for name in sorted(condition.names - known):
                raise ValueError(
                    f"where: {str(condition)!r}: no shape has {name}.{choose(name, known)}"
                )
        return self


class RegistrySpec(Schema):
    """A registry file."""

    patches: Annotated[tuple[str, ...], Listed] = ()
    """Folders that hold patch folders, relative to this file."""
    rules: Annotated[tuple[RuleSpec, ...], Listed] = ()
    """Which chain of patches goes with which engine."""
