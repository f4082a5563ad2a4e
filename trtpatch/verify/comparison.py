"""What a patch gave against what it should have given, within its contract's tolerances."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from trtpatch.bits import Array, differ, first_index
from trtpatch.catalog import Patch
from trtpatch.spec.ports import PORTS


@dataclass(frozen=True)
class Difference:
    """One output of one case, compared with the reference.

    Attributes:
        largest: the largest absolute difference; NaN where the shapes of NaN differ.
        wrong: how many elements are beyond the tolerance.
        size: how many elements were compared.
        example: the first wrong element, as `[0, 3]: found 1.5, expected 1.25`.
        allowed: the tolerance, in words.
    """

    field: str
    largest: float
    wrong: int
    size: int
    example: str = ""
    allowed: str = "exact"

    def __str__(self) -> str:
        return (
            f"{self.field}: {self.wrong} of {self.size} elements are wrong, {self.example}; the"
            f" largest difference is {self.largest:.2g}, the tolerance {self.allowed}"
        )


def compare(
    patch: Patch, found: Mapping[str, Array], expected: Mapping[str, Array]
) -> tuple[Difference, ...]:
    """Differences of all outputs, with what has no order brought into one."""
    found, expected = in_order(found), in_order(expected)
    return tuple(difference(patch, name, found[name], expected[name]) for name in expected)


def difference(patch: Patch, name: str, found: Array, expected: Array) -> Difference:
    """How far one output, or a part of it, is from what is expected of it."""
    tolerance = patch.spec.tolerance.get(name, "exact")
    a, b = found.astype(np.float64), expected.astype(np.float64)
    with np.errstate(invalid="ignore"):
        gap = np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0.0, np.abs(a - b))
    allowed = np.zeros_like(b)
    if tolerance != "exact":
        finite = np.isfinite(b)  # what is not must be met as it is
        allowed[finite] = tolerance.atol + tolerance.rtol * np.abs(b[finite])
    wrong = ~(gap <= allowed)
    count = int(np.count_nonzero(wrong))
    example = ""
    if count:
        at = tuple(np.argwhere(wrong)[0])
        example = f"{first_index(wrong)}: found {found[at]:.9g}, expected {expected[at]:.9g}"
    words = "exact"
    if tolerance != "exact":
        words = f"{tolerance.atol:g} + {tolerance.rtol:g} * |expected|"
    return Difference(name, float(gap.max(initial=0.0)), count, gap.size, example, words)


def in_order(outputs: Mapping[str, Array]) -> dict[str, Array]:
    """Candidates sorted by anchor and class, and what is past a row's use blanked."""
    ordered = dict(outputs)
    for port in PORTS.values():
        for name, tensor in port.fields():
            if tensor.used and name in outputs:
                used = outputs[f"{port.name}_{tensor.used}"][:, None]
                means = np.arange(outputs[name].shape[1]) < used
                ordered[name] = np.where(means, outputs[name], np.zeros_like(outputs[name]))
    if "candidates_count" not in outputs:
        return ordered
    rows = [f"candidates_{name}" for name in ("boxes", "scores", "classes", "anchors")]
    by_anchor = [name for port in PORTS.values() for name, t in port.fields() if t.by_anchor]
    by_anchor = [name for name in by_anchor if name in outputs]
    for name in (*rows, *by_anchor):
        ordered[name] = np.zeros_like(outputs[name])
    anchors, classes = outputs["candidates_anchors"], outputs["candidates_classes"]
    for image, count in enumerate(outputs["candidates_count"].tolist()):
        count = max(0, min(count, anchors.shape[1]))
        order = np.lexsort((classes[image, :count], anchors[image, :count]))
        for name in rows:
            ordered[name][image, :count] = outputs[name][image, :count][order]
        kept = ordered["candidates_anchors"][image, :count]
        for name in by_anchor:
            ordered[name][image, kept] = outputs[name][image, kept]
    return ordered


def other_bits(before: Mapping[str, Array], after: Mapping[str, Array]) -> Iterator[str]:
    """Outputs of two runs, brought into one order, that are not the same bit for bit."""
    for name, array in before.items():
        others = differ(array, after[name])
        if count := int(others.sum()):
            first = first_index(others)
            yield f"{name}: {count} of {array.size} elements differ, the first is {first}"
