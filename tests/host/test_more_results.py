"""What a patch gives and no later one takes is a result, read by its name."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import trtpatch
from tests.histogram import add_histogram
from tests.reloads import PICTURE, Project


@pytest.mark.parametrize("executor", ["cpu", "host"])
def test_the_output_of_a_patch_of_ones_own(tmp_path: Path, executor: str) -> None:
    project = Project(tmp_path)
    add_histogram(project)
    with trtpatch.load(project.pipeline, executor=executor) as pipeline:
        for least in (0.3, 0.6):
            pipeline.set(least=least)
            results = pipeline(PICTURE)
            (batch,) = results.arrays()
            found = results[0]
            expected = np.bincount(found.labels[found.scores > np.float32(least)], minlength=3)
            assert expected.any()
            np.testing.assert_array_equal(batch["histogram"], [expected])
            np.testing.assert_array_equal(batch["detections_boxes"][0, : len(found)], found.boxes)


def test_what_a_later_patch_takes_is_no_result(tmp_path: Path) -> None:
    with trtpatch.load(Project(tmp_path).pipeline, executor="cpu") as pipeline:
        assert not pipeline.plan.more_results
        assert "image" not in pipeline(PICTURE).arrays()[0]
