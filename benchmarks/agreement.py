"""What a GPU gives in every case of every built-in patch, and whether this machine agrees with it.

    python benchmarks/agreement.py [--executor gpu] [--only decode] [--out folder]
    python benchmarks/agreement.py --compare benchmarks/results/agreement.npz

The first line writes `results/agreement.npz`: of each output its shape, its type, a digest of all
of its bits, and some of its values. The second runs executor `host` on the same cases. An output
agrees where its digest and the values that were kept are the same, or where its contract names a
tolerance and none of these values is beyond it.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from trtpatch.catalog import Catalog, Patch
from trtpatch.compiler.cubins import Cubins
from trtpatch.plan import Plan
from trtpatch.verify import Case, in_order, load_cases, plan_case, run_case
from trtpatch.verify.comparison import Array, difference

VALUES = 32
"""So many places of an output are kept, and as many again of those that are not zero."""


@dataclass(frozen=True)
class Output:
    """One output of one case.

    Attributes:
        digest: of all elements.
        places: `[P]` int64, into the flat output.
        values: `[P]` float64.
    """

    shape: tuple[int, ...]
    dtype: str
    digest: str
    places: Array
    values: Array

    def __str__(self) -> str:
        return f"{self.dtype} {[*self.shape]}"


@dataclass(frozen=True)
class Record:
    """One case of a patch.

    Attributes:
        inputs: digest of all that the case gives, the contract's defaults included.
        outputs: by field, with what has no order brought into one.
    """

    patch: str
    case: str
    inputs: str
    outputs: dict[str, Output]


@dataclass(frozen=True)
class Agreement:
    """What came of a comparison.

    Attributes:
        compared: cases.
        same_bits: outputs of these, all elements of which are the same.
        within_tolerance: the other outputs that agree.
        wrong: what does not, in words.
        stale: recorded cases that there are no more, or that have other inputs now.
        unrecorded: cases of the recorded patches that were not.
    """

    compared: int
    same_bits: int
    within_tolerance: int
    wrong: tuple[str, ...]
    stale: tuple[str, ...]
    unrecorded: tuple[str, ...]

    def __str__(self) -> str:
        counts = (
            f"{self.compared} cases compared: {self.same_bits} outputs are the same bit for bit,"
            f" {self.within_tolerance} within their tolerance, {len(self.wrong)} are wrong"
        )
        lines = [*self.wrong, *(f"stale: {one}" for one in self.stale)]
        lines += [f"not recorded: {one}" for one in self.unrecorded]
        return "\n".join([*lines, counts])


def record(executor: str, *, only: str = "", cubins: Cubins | None = None) -> Iterator[Record]:
    """Run every case of the built-in patches with `only` in their names."""
    names = [name for name in Catalog().names if only in name]
    for patch, case, plan, inputs in _cases(names):
        outputs = in_order(run_case(plan, case, executor, cubins=cubins))
        kept = {name: _output(array) for name, array in outputs.items()}
        yield Record(patch.name, case.name, inputs, kept)


def compare(
    records: Iterable[Record], *, executor: str = "host", cubins: Cubins | None = None
) -> Agreement:
    """Run the recorded cases again, and look at what has changed."""
    recorded = {(one.patch, one.case, one.inputs): one for one in records}
    compared = same_bits = within = 0
    wrong: list[str] = []
    unrecorded: list[str] = []
    names = {name for name, *_ in recorded} & set(Catalog().names)
    for patch, case, plan, inputs in _cases(sorted(names)):
        before = recorded.pop((patch.name, case.name, inputs), None)
        if before is None:
            unrecorded.append(f"{patch.name}, {case.name}")
            continue
        compared += 1
        outputs = in_order(run_case(plan, case, executor, cubins=cubins))
        for name, array in outputs.items():
            now, then = _output(array), before.outputs.get(name)
            if then is None or (now.shape, now.dtype) != (then.shape, then.dtype):
                wrong.append(f"{patch.name}, {case.name}: {name} is {now}, was {then}")
            elif now.digest == then.digest and _same(array.ravel()[then.places], then.values):
                same_bits += 1
            elif told := _disagrees(patch, name, array, then):
                wrong.append(f"{patch.name}, {case.name}: {told}")
            else:
                within += 1
    stale = [f"{one.patch}, {one.case}" for one in recorded.values()]
    return Agreement(compared, same_bits, within, tuple(wrong), tuple(stale), tuple(unrecorded))


def _same(found: Array, expected: Array) -> bool:
    return np.array_equal(found.astype(np.float64), expected, equal_nan=True)


def _disagrees(patch: Patch, name: str, array: Array, then: Output) -> str:
    """What is wrong with an output whose bits have changed; empty where it may be so."""
    found = difference(patch, name, array.ravel()[then.places], then.values)
    if found.wrong:
        return f"{found}, of the places that were kept"
    if patch.spec.tolerance.get(name, "exact") == "exact":
        return f"{name}: must be exact and differs, in none of the places that were kept"
    return ""


def _cases(patches: Iterable[str]) -> Iterator[tuple[Patch, Case, Plan, str]]:
    for name in patches:
        patch = Catalog().patch(name)
        for case in load_cases(patch):
            plan = plan_case(patch, case)
            yield patch, case, plan, _inputs_digest(case, plan)


def _inputs_digest(case: Case, plan: Plan) -> str:
    (step,) = plan.patch_steps
    digest = hashlib.sha256()
    sizes, params = sorted(step.sizes.items()), sorted(step.params.items())
    settings = [(one.name, one.value) for one in step.settings]
    digest.update(repr((sizes, params, settings, case.frame)).encode())
    for name, given in sorted(case.inputs.items()):
        for array in [given] if isinstance(given, np.ndarray) else given:
            digest.update(f"{name} {array.dtype} {array.shape}".encode())
            digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:16]


def _output(array: Array) -> Output:
    """What is kept of an output; zeros of either sign are one, and so are all NaN."""
    plain = array.copy()
    plain[plain == 0] = 0
    if np.issubdtype(plain.dtype, np.floating):
        plain[np.isnan(plain)] = np.nan
    flat = plain.ravel()
    places = np.union1d(_spread(np.arange(flat.size)), _spread(np.flatnonzero(flat)))
    digest = hashlib.sha256(plain.tobytes()).hexdigest()[:16]
    values = flat[places].astype(np.float64)
    return Output(plain.shape, plain.dtype.name, digest, places, values)


def _spread(places: Array) -> Array:
    """At most `VALUES` of them, from the first to the last."""
    count = min(VALUES, places.size)
    chosen: Array = places[np.linspace(0, places.size - 1, count).astype(np.int64)]
    return chosen


def save(path: Path, records: Iterable[Record], **about: Any) -> None:
    """Write records, and what is to be known about them."""
    records = list(records)
    outputs = [output for one in records for output in one.outputs.values()]
    index = {**about, "cases": [asdict(one) for one in records]}
    for case in index["cases"]:
        for output in case["outputs"].values():
            output["kept"] = len(output.pop("places"))
            del output["values"]
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(
        path,
        index=np.frombuffer(json.dumps(index).encode(), np.uint8),
        places=np.concatenate([output.places for output in outputs]),
        values=np.concatenate([output.values for output in outputs]),
    )


def load(path: Path) -> tuple[dict[str, Any], list[Record]]:
    """What `save` has written: what is to be known, and the records."""
    with np.load(path) as file:
        about = json.loads(file["index"].tobytes())
        places, values = file["places"], file["values"]
    records, at = [], 0
    for case in about.pop("cases"):
        outputs = {}
        for name, one in case["outputs"].items():
            end = at + one["kept"]
            kept = places[at:end], values[at:end]
            outputs[name] = Output(tuple(one["shape"]), one["dtype"], one["digest"], *kept)
            at = end
        records.append(Record(case["patch"], case["case"], case["inputs"], outputs))
    return about, records


def main() -> None:
    import measure

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--executor", default="gpu", choices=["gpu", "host", "cpu"])
    parser.add_argument("--only", default="", help="part of the names of patches")
    parser.add_argument("--out", type=Path, default=measure.RESULTS)
    parser.add_argument("--compare", type=Path, metavar="FILE", help="with what a file has")
    arguments = parser.parse_args()
    if arguments.compare:
        about, records = load(arguments.compare)
        agreement = compare(records)
        print(about["executor"], about["machine"])
        print(agreement)
        sys.exit(bool(agreement.wrong))
    path = arguments.out / "agreement.npz"
    records = list(record(arguments.executor, only=arguments.only))
    save(path, records, executor=arguments.executor, machine=measure.machine())
    print(f"{path}: {len(records)} cases")


if __name__ == "__main__":
    main()
