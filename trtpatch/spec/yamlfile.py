"""YAML with places: every value knows its line and column, and nothing is read by surprise.

The rules are those of `yaml.safe_load` with YAML 1.2's core schema: `1e-4` is a number, `no` is a
text, `012` is twelve, a key that stands twice is a mistake. Size, depth and the number of values
that aliases expand to are bounded, so that no file can eat the machine.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Union, cast

import yaml

from trtpatch.errors import Problem, SpecError

MAX_BYTES = 1 << 20
MAX_DEPTH = 40
MAX_VALUES = 50_000

Key = Union[str, int]
Location = tuple[Key, ...]

_FAST: Any = getattr(yaml, "CSafeLoader", None)
_STANDARD = "tag:yaml.org,2002:"
_INT = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NO_TEXT = re.compile("[\\0\ud800-\udfff]")
_SPECIAL_FLOAT = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_CONSTANTS = {"": None, "~": None, "null": None, "Null": None, "NULL": None}
_CONSTANTS.update(dict.fromkeys(("true", "True", "TRUE"), True))  # type: ignore[arg-type]
_CONSTANTS.update(dict.fromkeys(("false", "False", "FALSE"), False))  # type: ignore[arg-type]


@dataclass(frozen=True)
class Document:
    """A file's data, and where each part of it stands.

    Attributes:
        file: the path, as it is shown in messages.
        data: dicts, lists and scalars.
        values, keys: location of a part, such as `("params", "strides", 0)`, to its
            `(line, column)`, counted from 1; `keys` has the place of a mapping's key.
    """

    file: str
    data: Any
    values: dict[Location, tuple[int, int]] = field(default_factory=dict)
    keys: dict[Location, tuple[int, int]] = field(default_factory=dict)

    def problem(self, where: Location, message: str, *, at_key: bool = False) -> Problem:
        """A mistake at `where`, or at the nearest enclosing part that the file has."""
        if at_key and where in self.keys:
            return Problem(self.file, *self.keys[where], message)
        while where and where not in self.values:
            where = where[:-1]
        return Problem(self.file, *self.values.get(where, (0, 0)), message)


def load(path: Path) -> Document:
    """Read one YAML file.

    Raises:
        SpecError: the file is missing, too large or too deep, is not UTF-8 or not YAML, holds
            several documents, a tag of its own or the same key twice.
    """
    file = str(path)
    try:
        with path.open("rb") as stream:
            raw = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise SpecError(Problem(file, 0, 0, f"cannot be read: {error.strerror}")) from None
    if len(raw) > MAX_BYTES:
        message = f"larger than {MAX_BYTES} bytes, which no contract, registry or pipeline file is"
        raise SpecError(Problem(file, 0, 0, message))
    try:
        return parse(raw.decode("utf-8"), file=file)
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise SpecError(Problem(file, line, 1, "not text in UTF-8")) from None


def parse(text: str, *, file: str) -> Document:
    """Read YAML text; see `load`."""
    try:
        node = _compose(text, file)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (0, 0)
        raise SpecError(Problem(file, line, column, f"not valid YAML: {error.problem}")) from None
    except yaml.YAMLError as error:
        text = str(error).splitlines()[0]
        raise SpecError(Problem(file, 0, 0, f"not valid YAML: {text}")) from None
    reader = _Reader(file)
    data = reader.read(node, (), 0) if node is not None else None
    if reader.problems:
        raise SpecError(*reader.problems)
    return Document(file, data, reader.values, reader.keys)


def written(value: dict[str, Any] | list[str]) -> str:
    """A mapping or a list in one line, as it can be pasted into a file behind `key: `."""
    text = yaml.safe_dump(value, default_flow_style=True, sort_keys=False, width=1 << 30)
    return str(text).strip()


def _compose(text: str, file: str) -> yaml.Node | None:
    """The tree of nodes, by libyaml where PyYAML has it: ten times as fast.

    A text that it refuses goes to PyYAML's own parser, which knows the place of a mistake better.
    """
    if _FAST is not None:
        try:
            _refuse_oversize(text, file, _FAST)
            return yaml.compose(text, Loader=_FAST)
        except yaml.YAMLError:
            pass
    _refuse_oversize(text, file, yaml.SafeLoader)
    return yaml.compose(text, Loader=yaml.SafeLoader)


def _refuse_oversize(text: str, file: str, loader: Any) -> None:
    depth = values = 0
    for event in yaml.parse(text, Loader=loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        values += isinstance(event, yaml.NodeEvent)
        if depth > MAX_DEPTH or values > MAX_VALUES:
            raise SpecError(_oversize(file, event.start_mark))


def _oversize(file: str, mark: Any) -> Problem:
    message = f"more than {MAX_VALUES} values (aliases expanded) or nested deeper than {MAX_DEPTH}"
    return Problem(file, mark.line + 1, mark.column + 1, message)


class _Reader:
    def __init__(self, file: str) -> None:
        self.file = file
        self.values: dict[Location, tuple[int, int]] = {}
        self.keys: dict[Location, tuple[int, int]] = {}
        self.problems: list[Problem] = []

    def read(self, node: yaml.Node, where: Location, depth: int) -> Any:
        if depth > MAX_DEPTH or len(self.values) >= MAX_VALUES:
            raise SpecError(_oversize(self.file, node.start_mark))
        self.values[where] = _place(node)
        if not isinstance(node, yaml.ScalarNode) and node.tag[len(_STANDARD) :] not in (
            "map",
            "seq",
        ):
            self._report(node, f"tag {node.tag!r} is not allowed")
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, where, depth)
        if isinstance(node, yaml.SequenceNode):
            return [self.read(n, (*where, i), depth + 1) for i, n in enumerate(node.value)]
        return self._scalar(cast(yaml.ScalarNode, node))

    def _mapping(self, node: yaml.MappingNode, where: Location, depth: int) -> dict[Key, Any]:
        result: dict[Key, Any] = {}
        for key_node, value_node in node.value:
            key = self._scalar(key_node) if isinstance(key_node, yaml.ScalarNode) else None
            if not isinstance(key, (str, int)):
                self._report(key_node, "a key must be a text or a whole number")
                continue
            place = (*where, key)
            if key in result:
                message = f"key {key!r} stands twice; the first is in line {self.keys[place][0]}"
                self._report(key_node, message)
                continue
            self.keys[place] = _place(key_node)
            result[key] = self.read(value_node, place, depth + 1)
        return result

    def _scalar(self, node: yaml.ScalarNode) -> Any:
        text: str = node.value
        if _NO_TEXT.search(text):
            self._report(node, "a text cannot have \\0 or half a surrogate pair in it")
            return None
        tag = node.tag.removeprefix(_STANDARD)
        if tag == "str" and (node.style or not _plain_looks_special(text)):
            return text
        if tag in ("str", "bool", "int", "float", "null", "timestamp", "merge", "value"):
            return text if node.style else _plain(text)
        self._report(node, f"tag {node.tag!r} is not allowed")
        return None

    def _report(self, node: yaml.Node, message: str) -> None:
        self.problems.append(Problem(self.file, *_place(node), message))


def _place(node: yaml.Node) -> tuple[int, int]:
    return node.start_mark.line + 1, node.start_mark.column + 1


def _plain_looks_special(text: str) -> bool:
    return text in _CONSTANTS or bool(_INT.fullmatch(text) or _FLOAT.fullmatch(text))


def _plain(text: str) -> Any:
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if _INT.fullmatch(text) and len(text) < 300:
        return int(text, 0) if text[:2] in ("0o", "0x") else int(text)
    if _FLOAT.fullmatch(text):
        return float(text)
    if _SPECIAL_FLOAT.fullmatch(text):
        return float(text.lower().replace(".", ""))
    return text
