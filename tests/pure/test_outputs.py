"""Outputs of patches of one's own, in words and as plain numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from trtpatch.outputs import in_words, outputs_of, plain


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.int32([0, 3, 1]), "class_counts int32 [3]: min 0, max 3"),
        (np.float32([[0.1, 2.5]]), "class_counts float32 [1, 2]: min 0.1, max 2.5"),
        (np.uint8(7), "class_counts uint8 []: 7"),
        (np.float32([np.nan, 1]), "class_counts float32 [2]: min nan, max nan"),
        (np.zeros((0, 4), np.float16), "class_counts float16 [0, 4]: empty"),
    ],
)
def test_in_words(array: Any, words: str) -> None:
    assert in_words("class_counts", np.asarray(array)) == words


def test_as_plain_numbers() -> None:
    large = np.arange(1001, dtype=np.float32).reshape(7, 143)
    assert plain({}) == {}
    assert plain({"small": np.arange(1000), "large": large})["outputs"] == {
        "small": list(range(1000)),
        "large": {"dtype": "float32", "shape": [7, 143], "min": 0.0, "max": 1000.0},
    }


def test_a_number_a_picture_is_an_array_too() -> None:
    counts = {"each": np.int32([4, 5]), "all": np.int32([4, 5])}
    row = outputs_of(counts, 1, {"each": True, "all": False})
    assert isinstance(row["each"], np.ndarray)
    assert row["each"] == 5
    np.testing.assert_array_equal(row["all"], [4, 5])
