"""Made-up cases fit the contract they are made for and are the same every time."""

from __future__ import annotations

import numpy as np
import pytest

from tests.patch_runs import PATCHES, read
from trtpatch.unit import make_unit
from trtpatch.verify.cases import as_group, load_cases, plan_case
from trtpatch.verify.generated import generate, is_generated, smallest

COUNT = 8


@pytest.fixture(scope="module", params=PATCHES)
def made(request):
    patch = read(request.param)
    own = load_cases(patch)
    return patch, own, generate(patch, own, count=COUNT, seed=1)


def test_they_fit_the_contract(made):
    patch, _, cases = made
    assert len(cases) == COUNT
    assert all(is_generated(case) for case in cases)
    for case in cases:
        (step,) = plan_case(patch, case).patch_steps
        assert step.launches


def test_some_are_of_another_form_than_those_of_the_patch(made):
    patch, own, cases = made

    def units(some):
        return {make_unit(step).text for one in some for step in plan_case(patch, one).patch_steps}

    assert units(cases) - units(own)


@pytest.mark.parametrize("name", PATCHES[::6])
def test_the_same_seed_gives_the_same_cases(name):
    patch = read(name)
    own = load_cases(patch)
    first, again, other = (generate(patch, own, count=COUNT, seed=seed) for seed in (1, 1, 2))
    assert [case.name for case in first] == [case.name for case in again]
    assert [case.name for case in first] != [case.name for case in other]
    for one, same in zip(first, again, strict=True):
        for field in one.inputs:
            pairs = zip(as_group(one.inputs[field]), as_group(same.inputs[field]), strict=True)
            assert all(np.array_equal(a, b, equal_nan=a.dtype.kind == "f") for a, b in pairs)


def test_ports_hold_what_they_may_hold(made):
    _, _, cases = made
    for case in cases:
        given = case.inputs
        if "candidates_count" in given:
            room = given["candidates_anchors"].shape[1]
            assert (given["candidates_count"] <= room).all()
            assert all(len(set(row)) == room for row in given["candidates_anchors"].tolist())
        if "detections_count" in given:
            for image, count in enumerate(given["detections_count"]):
                anchors = given["detections_anchors"][image]
                assert len(set(anchors[:count].tolist())) == count
                assert (anchors[count:] == -1).all()
                assert (np.diff(given["detections_scores"][image, :count]) <= 0).all()
        if "geometry" in given and "detections_boxes" in given:
            size = np.tile(given["geometry"][:, None, 4:6], 2)
            assert (given["detections_boxes"] <= size).all()


def test_a_failing_case_is_made_smaller():
    patch = read("decode_yolov8")
    own = load_cases(patch)

    def fails(case):
        return bool(np.isnan(case.inputs["head"]).any())

    found = smallest(patch, own, fails, count=32, seed=4)
    assert found is not None
    assert fails(found)
    assert found.inputs["head"].size <= min(case.inputs["head"].size for case in own)
    assert not found.offsets
    assert smallest(patch, own, lambda case: False, count=4, seed=0) is None
