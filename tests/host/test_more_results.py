"""What a patch gives and no later one takes belongs to a picture's result, by its name."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import trtpatch
from tests.histogram import add_histogram
from tests.reloads import PICTURE, Project, edit
from tests.tiny_model import save_tiny


@pytest.mark.parametrize("executor", ["cpu", "host"])
def test_the_output_of_a_patch_of_ones_own(tmp_path: Path, executor: str) -> None:
    project = Project(tmp_path)
    add_histogram(project)
    with trtpatch.load(project.pipeline, executor=executor) as pipeline:
        for least in (0.3, 0.6):
            pipeline.set(least=least)
            (found,) = pipeline(PICTURE)
            expected = np.bincount(found.labels[found.scores > np.float32(least)], minlength=3)
            assert expected.any()
            assert [*found.outputs] == ["histogram"]
            np.testing.assert_array_equal(found.outputs["histogram"], expected)


def test_each_picture_has_its_own_row_of_a_call_and_of_a_stream(tmp_path: Path) -> None:
    project = Project(tmp_path)
    add_histogram(project)
    mine = project.registry.parent / "mine/histogram_classes"
    clear = "clear: true}\n"
    edit(mine / "patch.yaml", clear, f"{clear}  total: {{dtype: int32, shape: [], clear: true}}\n")
    edit(mine / "reference.py", "minlength=3)", "minlength=3)\n        args.total += count")
    save_tiny(tmp_path / "tiny.onnx", batch=2, size=(128, 128))
    pictures = [PICTURE, PICTURE[::-1], np.zeros_like(PICTURE)]
    with trtpatch.load(project.pipeline, executor="cpu") as pipeline:
        called, streamed = list(pipeline(pictures)), list(pipeline.stream(pictures))
    totals = [len(called[0]) + len(called[1])] * 2 + [len(called[2])]
    for one, other, total in zip(called, streamed, totals, strict=True):
        expected = np.bincount(one.labels[one.scores > np.float32(0.3)], minlength=3)
        for found in (one, other):
            np.testing.assert_array_equal(found.outputs["histogram"], expected)
            assert found.outputs["total"] == total
        assert one.to_dict()["outputs"] == {"histogram": expected.tolist(), "total": total}


def test_what_a_later_patch_takes_is_no_output(tmp_path: Path) -> None:
    with trtpatch.load(Project(tmp_path).pipeline, executor="cpu") as pipeline:
        assert not pipeline.plan.more_results
        (found,) = pipeline(PICTURE)
        assert found.outputs == {}
        assert "outputs" not in found.to_dict()
