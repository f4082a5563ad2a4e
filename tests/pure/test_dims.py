"""Shapes with symbols, and the arithmetic in them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trtpatch.spec.dims import solve_shapes
from trtpatch.spec.expressions import Expression, Value


def solve(written: list[object], real: tuple[int, ...], **known: Value) -> dict[str, Value]:
    return solve_shapes([("t", [Expression.parse(one) for one in written], real)], known)


def test_symbols_are_solved_from_a_shape() -> None:
    assert solve(["N", "A", "5 + C"], (1, 3549, 85)) == {"N": 1, "A": 3549, "C": 80}
    assert solve(["N", "4 * R + C"], (2, 144), C=80) == {"N": 2, "C": 80, "R": 16}
    assert solve([1, 3, "H", "2 * H"], (1, 3, 320, 640)) == {"H": 320}


def test_an_axis_may_wait_for_a_later_one() -> None:
    assert solve(["C + A", "A"], (10, 4)) == {"A": 4, "C": 6}


@given(c=st.integers(0, 10**6), k=st.integers(1, 64), b=st.integers(0, 1000))
def test_solving_undoes_python_arithmetic(c: int, k: int, b: int) -> None:
    size = eval(f"{k} * C + {b}", {"C": c})
    assert solve([f"{k} * C + {b}"], (size,)) == {"C": c}


@pytest.mark.parametrize(
    ("written", "real", "message"),
    [
        (["N", "A"], (1, 2, 3), "2 axes, found .* 3 axes"),
        (["N", 3], (1, 4), "axis 1 is 4, not 3"),
        (["N", "5 + C"], (1, 3), "would need C = -2"),
        (["2 * C"], (5,), "not a multiple of 2"),
        (["N", "N"], (1, 2), "axis 1 is 2, not 1"),
        (["R + C"], (9,), "leaves C, R open"),
    ],
)
def test_what_does_not_fit_names_both_sides(
    written: list[object], real: tuple[int, ...], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        solve(written, real)


def test_levels_go_one_by_one_and_sum_adds_them() -> None:
    sizes: dict[str, Value] = {"H": (80, 40, 20), "W": (80, 40, 20)}
    assert Expression.parse("sum(H * W)").evaluate(sizes) == 8400
    assert Expression.parse("H // 2").evaluate(sizes) == (40, 20, 10)
    assert Expression.parse("H == 4 * W").evaluate({"H": (80, 40), "W": (20, 10)}) == 1
    assert Expression.parse("H >= 40").evaluate({"H": (80, 40)}) == 1
    assert Expression.parse("H > 40").evaluate({"H": (80, 40)}) == 0
    with pytest.raises(ValueError, match="2 and 3 levels"):
        Expression.parse("H + K").evaluate({**sizes, "K": (1, 2)})


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("ceil_div(A, 4)", 3),
        ("min(A, 5, B)", 5),
        ("max(A, B)", 9),
        ("A > 5 and not B < 3", 1),
        ("1 < A < 5", 0),
        ("-A % 7", 5),
    ],
)
def test_expressions_have_their_value(text: str, value: int) -> None:
    assert Expression.parse(text).evaluate({"A": 9, "B": 7}) == value


@pytest.mark.parametrize(
    "text",
    [
        "A ** B",
        "A.real",
        "__import__('os')",
        "open(A)",
        "[A][0]",
        "A if B else C",
        "lambda: A",
        "A / 2",
        "1.5",
        "'a'",
        "min(*A)",
        "sum(A, B)",
        "A = 2",
        "A +",
        "",
        "A" * 201,
        "(" * 150,
        "f'{A}'",
    ],
)
def test_nothing_but_the_tiny_arithmetic(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        Expression.parse(text)


def test_values_stay_within_64_bits() -> None:
    big = Expression.parse("A * A")
    with pytest.raises(ValueError, match="64-bit"):
        big.evaluate({"A": 2**40})
    with pytest.raises(ValueError, match="divides by zero"):
        Expression.parse("A // 0").evaluate({"A": 1})
