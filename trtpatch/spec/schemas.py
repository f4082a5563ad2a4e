"""The three schemas as JSON Schema, for editors that complete and check YAML."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from typing import Any

from trtpatch.spec.patch import PatchSpec
from trtpatch.spec.pipeline import PipelineSpec
from trtpatch.spec.registry import RegistrySpec
from trtpatch.spec.validate import Schema

SCHEMAS: dict[str, type[Schema]] = {
    "patch": PatchSpec,
    "registry": RegistrySpec,
    "pipeline": PipelineSpec,
}


def json_schema(name: str) -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of `patch`, `registry` or `pipeline`.

    What stands under a field in the source becomes the description of its key.
    """
    model = SCHEMAS[name]
    schema = model.model_json_schema()
    definitions = {**schema.get("$defs", {}), model.__name__: schema}
    for one in Schema.__subclasses__():
        for field, text in _words(one):
            if one.__name__ in definitions:
                definitions[one.__name__]["properties"][field]["description"] = text
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def _words(model: type[Schema]) -> Iterator[tuple[str, str]]:
    """Each field of a schema with the text under it.

    Pydantic can read these itself, when a class is made: 40 ms at every start for all of them.
    """
    (definition,) = ast.parse(inspect.getsource(model)).body
    assert isinstance(definition, ast.ClassDef)
    for field, under in zip(definition.body, definition.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(under, ast.Expr):
            yield ast.unparse(field.target), " ".join(ast.literal_eval(under.value).split())
