"""What the contracts of the decode patches refuse, and what their parameters become."""

import numpy as np
import pytest

from tests.patch_runs import read
from trtpatch.catalog import Catalog
from trtpatch.errors import MatchError
from trtpatch.unit import make_unit
from trtpatch.verify import Case, load_cases, plan_case


def refused(name, inputs, params=None, model=(64, 64)):
    with pytest.raises(MatchError) as caught:
        plan_case(read(name), Case("wrong", inputs, params or {}, {"model": model}))
    return str(caught.value)


def levels(channels, *sizes):
    return [np.zeros((1, channels, *size), np.float32) for size in sizes]


def test_anchor_boxes_that_do_not_go_with_the_levels():
    head = levels(30, (8, 8), (4, 4))
    message = refused("decode_yolov5_raw", {"head": head}, {"anchors": [1, 2, 3, 4, 5, 6]})
    assert "anchors_count = 6, head_count = 2" in message
    message = refused("decode_yolov5_raw", {"head": levels(31, (8, 8))})
    assert "'D == K * (5 + C)' does not hold" in message


def test_levels_that_do_not_lie_on_the_picture():
    boxes, classes = levels(64, (8, 8), (4, 4)), levels(80, (8, 8), (4, 4))
    inputs = {"boxes": boxes, "classes": classes}
    message = refused("decode_yolov8_split", inputs, model=(100, 64))
    assert "'sum(model_H % H) + sum(model_W % W) == 0' does not hold" in message
    message = refused("decode_yolov8_split", inputs, model=(64, 128))
    assert "'model_H // H == model_W // W' does not hold" in message
    inputs["classes"] = levels(80, (8, 8), (2, 2))
    assert "levels of classes have H = (8, 2)" in refused("decode_yolov8_split", inputs)


@pytest.mark.parametrize(
    ("name", "shape", "known"),
    [
        ("decode_yolov8", (1, 3549, 85), "A = 85, C = 3545"),
        ("decode_yolov8_obb", (1, 3549, 85), "A = 85, C = 3544"),
        ("decode_yolov5", (1, 84, 8400), "A = 84, C = 8395"),
    ],
)
def test_a_head_of_another_layout(name, shape, known):
    message = refused(name, {"head": np.zeros(shape, np.float32)})
    assert f"'A >= C' does not hold: {known}" in message


def test_prior_boxes_that_do_not_go_with_the_anchors():
    inputs = {"scores": np.zeros((1, 4420, 2)), "boxes": np.zeros((1, 4420, 4))}
    inputs = {name: array.astype(np.float32) for name, array in inputs.items()}
    assert "A = 4420" in refused("decode_ssd", inputs, model=(320, 320))
    message = refused("decode_ssd", inputs, {"priors": [1, 2]}, (240, 320))
    assert "'priors_count == 2 * sum(priors_a_cell)' does not hold" in message
    message = refused("decode_ssd", inputs, {"strides": [8]}, (240, 320))
    assert "'priors_a_cell_count == strides_count' does not hold" in message


def test_a_default_reaches_the_kernel_with_the_type_of_its_parameter():
    patch = read("decode_ssd")
    text = make_unit(next(plan_case(patch, load_cases(patch)[0]).patch_steps)).text
    assert "float priors[20];" in text
    assert "int strides[4];" in text
    assert text.count("priors_count =") == 1


def test_score_thresholds_have_a_range():
    catalog = Catalog()
    params = [catalog.patch(name).spec.params for name in catalog.names]
    found = [one["score_threshold"] for one in params if "score_threshold" in one]
    assert len(found) > 10
    assert {(spec.min, spec.max) for spec in found} == {(0.0, 1.0)}


@pytest.mark.parametrize(("model", "side"), [((32, 64), "H"), ((64, 32), "W")])
def test_cells_that_are_larger_than_the_picture(model, side):
    (case,) = (case for case in load_cases(read("points_yolo")) if case.name == "raw")
    message = refused("points_yolo", case.inputs, {"V": 3, "strides": [16, 48]}, model)
    assert f"'strides <= model_{side}' does not hold" in message
