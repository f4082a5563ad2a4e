"""How outputs are compared with the reference."""

import numpy as np
import pytest

from tests.patch_runs import read
from trtpatch.verify import compare

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
