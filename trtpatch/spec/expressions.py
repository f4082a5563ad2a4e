"""The tiny arithmetic of shapes: `4 + C`.

Expressions have whole numbers, names, `+ - * // %`, comparisons, `and or not`, and the functions
`min`, `max`, `ceil_div` and `sum`; nothing else.
A name may stand for one number or, in a group of tensors, for one number a level; arithmetic then
goes level by level, a comparison holds if it does at every level, and `sum` adds the levels up.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Union

from trtpatch.spec.validate import nearest

Value = Union[int, tuple[int, ...]]

MAX_TEXT = 200
MAX_VALUE = 2**63 - 1

_BINARY: dict[type[ast.AST], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_COMPARE: dict[type[ast.AST], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_FUNCTIONS: dict[str, Callable[..., int]] = {
    "min": lambda *values: min(values),
    "max": lambda *values: max(values),
    "ceil_div": lambda a, b: -(-a // b),
}
_ALLOWED = (
    *_BINARY,
    *_COMPARE,
    *(ast.Expression, ast.BinOp, ast.UnaryOp, ast.USub, ast.Compare, ast.BoolOp),
    *(ast.And, ast.Or, ast.Not, ast.Call, ast.Name, ast.Load, ast.Constant),
)


@dataclass(frozen=True)
class Expression:
    """A parsed expression; equal and hashed by its text."""

    text: str

    @classmethod
    def parse(cls, source: object) -> Expression:
        """Read an expression from a YAML value.

        Raises:
            ValueError: `source` is not a number or text, or holds more than the tiny arithmetic.
        """
        if isinstance(source, Expression):
            return source
        if isinstance(source, bool) or not isinstance(source, (int, str)):
            raise ValueError(f"expected a number or an expression such as '4 + C', got {source!r}")
        expression = cls(str(source))
        _parse(expression.text)
        return expression

    @property
    def names(self) -> frozenset[str]:
        """The symbols that the expression uses."""
        return _names(_parse(self.text))

    def evaluate(self, symbols: Mapping[str, Value]) -> Value:
        """The expression's value.

        Raises:
            ValueError: a symbol is unknown, a division is by zero, or a value leaves 63 bits.
        """
        return _evaluate(_parse(self.text).body, symbols, self.text)

    def solve(self, value: int, symbols: Mapping[str, Value]) -> tuple[str, int] | None:
        """The one unknown symbol and its value that make the expression equal to `value`.

        Returns:
            None where no symbol, or more than one, is unknown.

        Raises:
            ValueError: no whole number from 0 up fits.
        """
        unknown = self.names - symbols.keys()
        if len(unknown) != 1:
            return None
        return _invert(_parse(self.text).body, value, symbols, self.text)

    def __str__(self) -> str:
        return self.text


@lru_cache(maxsize=1024)
def _parse(text: str) -> ast.Expression:
    if len(text) > MAX_TEXT:
        raise ValueError(f"expression longer than {MAX_TEXT} characters")
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ValueError(f"{text!r} is not an expression such as '4 + C'") from None
    for node in ast.walk(tree):
        _refuse_foreign(node, text)
    return tree


def _refuse_foreign(node: ast.AST, text: str) -> None:
    if not isinstance(node, _ALLOWED):
        what = type(node).__name__
        raise ValueError(f"{text!r}: {what} is not part of the arithmetic of shapes (+ - * // %)")
    if isinstance(node, ast.Call):
        known = [*_FUNCTIONS, "sum"]
        if not isinstance(node.func, ast.Name) or node.func.id not in known or node.keywords:
            raise ValueError(f"{text!r}: the functions are {', '.join(known)}")
        wanted = {"ceil_div": (2,), "sum": (1,)}.get(node.func.id, range(1, 20))
        if len(node.args) not in wanted:
            raise ValueError(f"{text!r}: wrong number of arguments for {node.func.id}")
    if isinstance(node, ast.Constant) and type(node.value) is not int:
        raise ValueError(f"{text!r}: {node.value!r} is not a whole number")


def _evaluate(node: ast.expr, symbols: Mapping[str, Value], text: str) -> Value:
    def inner(child: ast.expr) -> Value:
        return _evaluate(child, symbols, text)

    if isinstance(node, ast.Constant):
        return _bounded(int(node.value), text)  # type: ignore[arg-type]
    if isinstance(node, ast.Name):
        if node.id not in symbols:
            near = nearest(node.id, symbols)
            raise ValueError(f"{text!r}: symbol {node.id!r} has no value{near and '.'}{near}")
        return symbols[node.id]
    if isinstance(node, ast.UnaryOp):
        operand = inner(node.operand)
        return int(not operand) if isinstance(node.op, ast.Not) else _levels(_minus, [operand])
    if isinstance(node, ast.BinOp):
        compute = _BINARY[type(node.op)]
        return _levels(_guard(compute, text), [inner(node.left), inner(node.right)])
    if isinstance(node, ast.BoolOp):
        results = [bool(inner(value)) for value in node.values]
        return int(all(results) if isinstance(node.op, ast.And) else any(results))
    if isinstance(node, ast.Compare):
        values = [inner(node.left), *(inner(one) for one in node.comparators)]
        pairs = zip(node.ops, values, values[1:], strict=False)
        return int(all(_holds(_COMPARE[type(op)], a, b) for op, a, b in pairs))
    assert isinstance(node, ast.Call)
    assert isinstance(node.func, ast.Name)
    arguments = [inner(argument) for argument in node.args]
    if node.func.id == "sum":
        only = arguments[0]
        return _bounded(sum(only) if isinstance(only, tuple) else only, text)
    return _levels(_guard(_FUNCTIONS[node.func.id], text), arguments)


def _holds(compare: Callable[[Any, Any], bool], left: Value, right: Value) -> bool:
    held = _levels(compare, [left, right])
    return all(held) if isinstance(held, tuple) else bool(held)


def _minus(value: int) -> int:
    return -value


def _guard(compute: Callable[..., int], text: str) -> Callable[..., int]:
    def guarded(*values: int) -> int:
        try:
            return _bounded(compute(*values), text)
        except ZeroDivisionError:
            raise ValueError(f"{text!r} divides by zero") from None

    return guarded


def _levels(compute: Callable[..., int], values: Sequence[Value]) -> Value:
    counts = {len(value) for value in values if isinstance(value, tuple)}
    if not counts:
        return compute(*values)
    if len(counts) > 1:
        raise ValueError(f"groups of {' and '.join(map(str, sorted(counts)))} levels do not meet")
    count = counts.pop()
    columns = [value if isinstance(value, tuple) else (value,) * count for value in values]
    return tuple(compute(*row) for row in zip(*columns, strict=True))


def _bounded(value: int, text: str) -> int:
    if abs(value) > MAX_VALUE:
        raise ValueError(f"{text!r} leaves the range of 64-bit numbers")
    return value


def _invert(
    node: ast.expr, value: int, symbols: Mapping[str, Value], text: str
) -> tuple[str, int] | None:
    if isinstance(node, ast.Name):
        if value < 0:
            raise ValueError(f"{text!r} would need {node.id} = {value}")
        return node.id, value
    if not isinstance(node, ast.BinOp) or type(node.op) not in (ast.Add, ast.Sub, ast.Mult):
        return None
    left_known = not (_names(node.left) - symbols.keys())
    known, unknown = (node.left, node.right) if left_known else (node.right, node.left)
    if _names(known) - symbols.keys():
        return None
    constant = _evaluate(known, symbols, text)
    if isinstance(constant, tuple):
        return None
    if isinstance(node.op, ast.Add):
        return _invert(unknown, value - constant, symbols, text)
    if isinstance(node.op, ast.Sub):
        rest = constant - value if left_known else value + constant
        return _invert(unknown, rest, symbols, text)
    if constant == 0 or value % constant:
        raise ValueError(f"{text!r} cannot be {value}: not a multiple of {constant}")
    return _invert(unknown, value // constant, symbols, text)


def _names(node: ast.AST) -> frozenset[str]:
    called = {id(call.func) for call in ast.walk(node) if isinstance(call, ast.Call)}
    named = (one for one in ast.walk(node) if isinstance(one, ast.Name))
    return frozenset(one.id for one in named if id(one) not in called)
