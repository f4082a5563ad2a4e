"""What a GPU gave, as benchmarks/agreement.py wrote it down, is what the host computes now."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks import agreement
from trtpatch.compiler.cubins import Cubins

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "benchmarks/results").glob("agreement*.npz"))
ONE = "decode_yolov8_split"
"""Its boxes have a tolerance, its classes none."""


@pytest.fixture(scope="module")
def records(cubins: Cubins) -> list[agreement.Record]:
    return list(agreement.record("host", only=ONE, cubins=cubins))


@pytest.mark.parametrize("file", ["made here", *FILES], ids=lambda file: Path(file).stem)
def test_the_host_agrees_with_what_was_recorded(
    file: str | Path,
    records: list[agreement.Record],
    cubins: Cubins,
    record_property: Callable[[str, object], None],
) -> None:
    recorded = records
    if isinstance(file, Path):
        about, recorded = agreement.load(file)
        assert about["executor"] == "gpu"
        assert about["machine"]["gpu"]
    found = agreement.compare(recorded, cubins=cubins)
    record_property("agreement", str(found))
    assert not found.wrong, found
    assert found.compared > len(found.stale) + len(found.unrecorded), f"{found}\nrecord it anew"


def with_output(record: agreement.Record, name: str, **changes: object) -> list[agreement.Record]:
    output = replace(record.outputs[name], **changes)
    return [replace(record, outputs={**record.outputs, name: output})]


@pytest.mark.parametrize(
    ("name", "off", "wrong"),
    [
        ("candidates_boxes", 1e-4, ""),
        ("candidates_boxes", 1.0, "candidates_boxes: "),
        ("candidates_classes", 1, "candidates_classes: "),
    ],
)
def test_a_value_is_held_to_its_tolerance(
    name: str, off: float, wrong: str, records: list[agreement.Record], cubins: Cubins
) -> None:
    record = next(one for one in records if one.outputs[name].values.any())
    values = record.outputs[name].values + off
    found = agreement.compare(with_output(record, name, digest="", values=values), cubins=cubins)
    assert found.compared == 1
    assert (len(found.wrong), found.within_tolerance) == ((1, 0) if wrong else (0, 1))
    assert wrong in "".join(found.wrong)


def test_kept_values_count_where_the_digest_is_the_same(
    records: list[agreement.Record], cubins: Cubins
) -> None:
    name = "candidates_classes"
    changed = with_output(records[0], name, values=records[0].outputs[name].values + 1)
    (wrong,) = agreement.compare(changed, cubins=cubins).wrong
    assert f"{name}: " in wrong


def test_cases_of_the_same_inputs_are_two(records: list[agreement.Record], cubins: Cubins) -> None:
    other = replace(records[0], case="another")
    found = agreement.compare([records[0], other], cubins=cubins)
    assert (found.compared, found.stale) == (1, (f"{ONE}, another",))


def test_what_must_be_exact_is_compared_whole(
    records: list[agreement.Record], cubins: Cubins
) -> None:
    changed = with_output(records[0], "candidates_anchors", digest="other")
    (wrong,) = agreement.compare(changed, cubins=cubins).wrong
    assert "candidates_anchors: must be exact and differs" in wrong
    changed = with_output(records[0], "candidates_boxes", shape=(1, 2, 4))
    (wrong,) = agreement.compare(changed, cubins=cubins).wrong
    assert wrong.endswith("was float32 [1, 2, 4]")


def test_a_case_that_has_changed_is_stale(records: list[agreement.Record], cubins: Cubins) -> None:
    first, second = records[:2]
    found = agreement.compare([replace(first, inputs="others"), second], cubins=cubins)
    assert (found.compared, found.stale) == (1, (f"{ONE}, {first.case}",))
    assert f"{ONE}, {first.case}" in found.unrecorded
    assert f"stale: {ONE}, {first.case}" in str(found)


def test_signs_of_zero_and_kinds_of_nan_are_no_difference() -> None:
    once = np.array([0x0000_0000, 0x7FC0_0000, 0x3F80_0000], np.uint32).view(np.float32)
    again = np.array([0x8000_0000, 0xFFC0_0001, 0x3F80_0000], np.uint32).view(np.float32)
    assert agreement._output(once).digest == agreement._output(again).digest


def run(*arguments: object, cubins: Cubins) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, ROOT / "benchmarks/agreement.py", *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(ROOT), "TRTPATCH_CACHE": str(cubins.folder)},
        capture_output=True,
        text=True,
    )


def test_the_script_writes_a_small_file_and_compares_with_it(
    tmp_path: Path, cubins: Cubins
) -> None:
    done = run("--executor", "cpu", "--out", tmp_path, cubins=cubins)
    assert done.returncode == 0, done.stderr
    file = tmp_path / "agreement.npz"
    assert file.stat().st_size < 2**19
    about, records = agreement.load(file)
    assert about["executor"] == "cpu"
    assert {"python", "versions", "date"} <= about["machine"].keys()
    assert len(records) > 300
    sizes = [output.places.size for one in records for output in one.outputs.values()]
    assert max(sizes) <= 2 * agreement.VALUES
    some = [one for one in records if one.patch == ONE]
    agreement.save(file, some, **about)
    done = run("--compare", file, cubins=cubins)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(some)} cases compared: " in done.stdout
