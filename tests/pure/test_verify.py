"""How outputs are compared with the reference."""

import re
import shutil

import numpy as np
import pytest

from tests.patch_runs import read
from trtpatch.catalog import Patch
from trtpatch.errors import VerifyError
from trtpatch.executors.cpu import Args, load_reference
from trtpatch.verify import compare, load_cases

INF, NAN = np.inf, np.nan


@pytest.mark.parametrize(
    ("found", "expected", "passes"),
    [
        (0.5, 0.5, True),
        (0.5 + 1e-7, 0.5, True),
        (0.5 + 1e-4, 0.5, False),
        (INF, INF, True),
        (-INF, INF, False),
        (1e30, INF, False),
        (INF, 1.0, False),
        (NAN, NAN, True),
        (NAN, 1.0, False),
        (1.0, NAN, False),
        (INF, NAN, False),
    ],
)
def test_numbers_that_are_not_finite_must_be_met(found, expected, passes):
    patch = read("decode_yolov8_split")  # boxes have atol and rtol, scores atol alone
    for field, width in (("candidates_boxes", 4), ("candidates_scores", 1)):
        (difference,) = compare(
            patch,
            {field: np.full((1, 1, width), found, np.float32)},
            {field: np.full((1, 1, width), expected, np.float32)},
        )
        if field == "candidates_boxes" and found == pytest.approx(expected, abs=1e-3):
            continue  # within the boxes' millipixel
        assert (difference.wrong == 0) == passes


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        ("{}", "case 'mine' has no inputs"),
        ("{'head': 'abc'}", "case 'mine': head: expected a NumPy array, or a list of them"),
        ("{'head': [[1.0]]}", "case 'mine': head: expected a NumPy array, or a list of them"),
    ],
)
def test_a_case_without_arrays(tmp_path, inputs, said):
    patch = Patch.read(shutil.copytree(read("decode_yolov8").folder, tmp_path / "mine"))
    (patch.folder / "cases.py").write_text(
        f"from trtpatch.verify import Case\ndef cases():\n    yield Case('mine', {inputs})\n"
    )
    with pytest.raises(VerifyError, match=re.escape(f"{patch.folder / 'cases.py'}: {said}")):
        load_cases(patch)


def test_a_reference_that_ends_the_process(tmp_path):
    patch = Patch.read(shutil.copytree(read("decode_yolov8").folder, tmp_path / "mine"))
    (patch.folder / "reference.py").write_text("raise SystemExit(0)")
    with pytest.raises(VerifyError, match="SystemExit: 0"):
        load_reference(patch)


def test_a_reference_that_reads_what_there_is_not():
    args = Args(head=1)
    with pytest.raises(AttributeError, match=r"no field 'haed'. Did you mean 'head'\?"):
        _ = args.haed
    with pytest.raises(AttributeError, match="model_W is known only where a case gives"):
        _ = args.model_W
