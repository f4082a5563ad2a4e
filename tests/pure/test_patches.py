"""What holds for every built-in patch, found by its folder."""

import copy
import shutil

import numpy as np
import pytest

from tests.patch_runs import PATCHES, read
from trtpatch.catalog import Patch
from trtpatch.errors import SpecError
from trtpatch.verify import POISON, compare, in_order, load_cases, plan_case, run_case


@pytest.mark.parametrize("name", PATCHES)
def test_a_patch_is_a_folder_of_five_files(name):
    files = {path.name for path in read(name).folder.iterdir() if path.is_file()}
    assert {"patch.yaml", "kernel.cu", "reference.py", "cases.py", "README.md"} <= files


@pytest.mark.parametrize("name", PATCHES)
def test_the_reference_gives_every_output_of_every_case(name):
    patch = read(name)
    names = [case.name for case in load_cases(patch)]
    assert len(set(names)) == len(names), "two cases of one name"
    for case in load_cases(patch):
        outputs = in_order(run_case(plan_case(patch, case), case, "cpu"))
        for field, array in outputs.items():
            poison = np.full(array.itemsize, POISON, np.uint8).view(array.dtype)[0]
            assert not (array == poison).any(), f"{case.name}: {field} is not all written"


@pytest.mark.parametrize("name", PATCHES)
def test_the_reference_leaves_its_inputs_alone_and_repeats_itself(name):
    patch = read(name)
    for case in load_cases(patch):
        before = copy.deepcopy(case.inputs)
        plan = plan_case(patch, case)
        first, second = (run_case(plan, case, "cpu") for _ in range(2))
        assert not any(one.wrong for one in compare(patch, first, second)), case.name
        for field, given in before.items():
            arrays = [given] if isinstance(given, np.ndarray) else given
            after = case.inputs[field]
            now = [after] if isinstance(after, np.ndarray) else after
            for a, b in zip(arrays, now, strict=True):
                np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", PATCHES)
def test_every_output_has_a_tolerance_that_its_contract_names(name):
    spec = read(name).spec
    unordered = {"candidates_anchors", "candidates_count", "candidates_nans"}
    assert set(spec.fields(spec.outputs)) - unordered == set(spec.tolerance)


@pytest.mark.parametrize("name", ["mi-ne", "mi ne", 'mi"ne', "5mine", "class", "engine", "mi\nne"])
def test_a_folder_whose_name_no_reference_can_have(tmp_path, name):
    folder = shutil.copytree(read("decode_yolov8").folder, tmp_path / name)
    with pytest.raises(SpecError, match="is no name for a patch: expected letters, digits and _"):
        Patch.read(folder)
