"""From a document to one of the three schemas, with every mistake in its place."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler, ValidationError
from pydantic_core import CoreSchema, core_schema

from trtpatch.errors import Problem, SpecError
from trtpatch.spec.yamlfile import Document, Location


class Schema(BaseModel):
    """Base of the schemas: frozen, no unknown keys, no quiet conversion of types."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, arbitrary_types_allowed=True
    )


class MisplacedError(ValueError):
    """A mistake that a check of a whole mapping finds at one of its keys.

    Attributes:
        where: the way to that key.
    """

    def __init__(self, where: Location, message: str) -> None:
        self.where = where
        super().__init__(message)


S = TypeVar("S", bound=Schema)


@dataclass(frozen=True)
class AlsoWritten:
    """Marks a value that may be written in one more form, for reading and in the JSON Schema.

    Attributes:
        read: turns that form into the usual one, and leaves all else alone.
        form: JSON Schema of that form, given that of the usual one.
    """

    read: Callable[[Any], object]
    form: Callable[[dict[str, Any]], dict[str, Any]]

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.no_info_before_validator_function(self.read, handler(source))

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: Any) -> dict[str, Any]:
        usual = handler(core)
        return {"anyOf": [self.form(usual), usual]}


def validate(schema: type[S], document: Document) -> S:
    """Check a document against a schema.

    Raises:
        SpecError: with the mistakes at once, each with line and column; one more than are shown.
    """
    if not isinstance(document.data, dict):
        what = "empty" if document.data is None else f"a {type(document.data).__name__}"
        message = f"{what}; expected a mapping with the keys {', '.join(schema.model_fields)}"
        raise SpecError(Problem(document.file, 1, 1, message))
    try:
        return schema.model_validate(document.data)
    except ValidationError as error:
        some = error.errors(include_url=False)[: SpecError.MOST_SHOWN + 1]
        problems = [_problem(schema, document, one) for one in some]
        raise SpecError(*problems) from None


def nearest(name: str, names: Iterable[str]) -> str:
    """` Did you mean 'x'?` for the closest of `names`, or an empty text."""
    close = difflib.get_close_matches(name, [str(one) for one in names], n=1, cutoff=0.5)
    return f" Did you mean {close[0]!r}?" if close else ""


def choose(name: str, names: Iterable[str]) -> str:
    """The nearest of `names`, or all of them where none is near."""
    known = sorted(str(one) for one in names)
    return nearest(name, known) or f" Known: {', '.join(known) or 'none'}."


def _problem(schema: type[Schema], document: Document, error: Any) -> Problem:
    where = _in_document(document, error["loc"])
    kind, found = error["type"], error.get("input")
    if kind == "extra_forbidden":
        key = str(error["loc"][-1])
        where = (*where, error["loc"][-1]) if where != tuple(error["loc"]) else where
        known = _fields_at(schema, error["loc"][:-1])
        return document.problem(
            where, f"unknown key {_shown(key)}.{choose(key, known)}", at_key=True
        )
    if kind == "missing":
        return document.problem(where, f"key {error['loc'][-1]!r} is missing")
    if kind == "literal_error":
        expected = error["ctx"]["expected"]
        hint = nearest(str(found), expected.replace("'", "").replace(" or ", ", ").split(", "))
        if error["loc"][0] == "tolerance":
            expected += " or {atol: ..., rtol: ...}"
        return document.problem(where, f"expected {expected}, found {_shown(found)}.{hint}")
    if kind == "value_error":
        mistake = error["ctx"]["error"]
        if isinstance(mistake, MisplacedError):
            return document.problem((*where, *mistake.where), str(mistake), at_key=True)
        return document.problem(where, str(mistake))
    message = error["msg"].removeprefix("Input should be ")
    if kind in ("model_type", "dict_type"):
        keys = _fields_at(schema, error["loc"])
        message = f"a mapping with the keys {', '.join(keys)}" if keys else "a mapping"
    return document.problem(where, f"expected {message}, found {_shown(found)}")


def _shown(found: object) -> str:
    text = repr(found)
    return text if len(text) < 60 else text[:57] + "..."


def _in_document(document: Document, loc: Iterable[Any]) -> Location:
    """Pydantic's path without the steps that name a schema and not a place in the file."""
    where: Location = ()
    for step in loc:
        if (*where, step) in document.values:
            where = (*where, step)
    return where


def _fields_at(schema: type[BaseModel], loc: Iterable[Any]) -> list[str]:
    """Names of the keys that the schema has at a path; empty where the path leaves it."""
    current: Any = schema
    for step in loc:
        if isinstance(current, type) and issubclass(current, BaseModel):
            named = current.model_fields.get(str(step))
            current = named.annotation if named else current
        current = _inner_schema(current) or current
    if isinstance(current, type) and issubclass(current, BaseModel):
        return list(current.model_fields)
    return []


def _inner_schema(annotation: Any) -> Any:
    """The first schema inside `dict[str, X]`, `tuple[X, ...]` or a union."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for argument in getattr(annotation, "__args__", ()):
        found = _inner_schema(argument)
        if found is not None:
            return found
    return None
