"""The registry, `registry.yaml`: where patches lie, and which chain goes with which engine."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field

from trtpatch.spec.dims import Dim
from trtpatch.spec.patch import Dtype, Listed, Name
from trtpatch.spec.validate import Schema

ENGINE = "engine"
"""The place of the engine in a chain."""


class TensorPattern(Schema):
    """What an engine's tensor must look like to go by a name that the chain's patches use."""

    shape: Annotated[tuple[Dim, ...], Listed]
    tensor: str = "*"
    """Pattern for the engine's own name of it, such as `cls_*`."""
    dtype: Annotated[tuple[Dtype, ...], Listed] = ()
    levels: Annotated[tuple[Name, ...], Listed] = ()
    """Takes all tensors that fit as one group, the largest first; the symbols that differ."""


def _pattern(value: object) -> object:
    return {"shape": value} if isinstance(value, list) else value


Pattern = Annotated[TensorPattern, BeforeValidator(_pattern)]


def _engine_once(chain: tuple[str, ...]) -> tuple[str, ...]:
    if chain.count(ENGINE) != 1:
        raise ValueError(f"a chain has {ENGINE!r} in it, once; found {', '.join(chain)}")
    return chain


Chain = Annotated[tuple[str, ...], Listed, AfterValidator(_engine_once)]


class RuleSpec(Schema):
    """An engine whose tensors look like this goes to this chain of patches."""

    name: str
    help: str = ""
    inputs: dict[Name, Pattern] = {}
    outputs: Annotated[dict[Name, Pattern], Field(min_length=1)]
    where: Annotated[tuple[Dim, ...], Listed] = ()
    chain: Chain
    params: dict[str, dict[str, Any]] = {}


class RegistrySpec(Schema):
    """A registry file."""

    patches: Annotated[tuple[str, ...], Listed] = ()
    """Folders that hold patch folders, relative to this file."""
    rules: Annotated[tuple[RuleSpec, ...], Listed] = ()
