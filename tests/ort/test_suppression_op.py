"""select_nms against ONNX Runtime's NonMaxSuppression."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.nms_operator import operator
from tests.patch_runs import kept, run, suppress


@st.composite
def images(draw):
    """Boxes, scores with equals, classes."""
    count = draw(st.integers(1, 400))
    random = np.random.default_rng(draw(st.integers(0, 10**6)))
    spread = draw(st.sampled_from([5, 60, 600]))
    corner = random.uniform(-spread, spread, (count, 2))
    boxes = np.concatenate([corner, corner + random.uniform(0, 80, (count, 2))], axis=1)
    scores = np.float32(random.integers(0, draw(st.sampled_from([3, 10**6])), count) / 10**6)
    return np.float32(boxes), scores, random.integers(0, draw(st.integers(1, 6)), count)


@settings(max_examples=150, deadline=None)
@given(image=images(), threshold=st.sampled_from([0.0, 0.1, 0.3, 0.45, 0.5, 0.7, 0.99]))
def test_boxes_are_kept_as_by_the_operator(image, threshold):
    assert kept(suppress(image, iou_threshold=threshold)) == operator(*image, threshold)


@settings(max_examples=50, deadline=None)
@given(image=images(), threshold=st.sampled_from([0.3, 0.5, 0.65]))
def test_without_classes_as_the_operator_on_one_class(image, threshold):
    boxes, scores, classes = image
    outputs = suppress(image, iou_threshold=threshold, class_aware=False)
    assert kept(outputs) == operator(boxes, scores, classes * 0, threshold)


@pytest.mark.parametrize("count", [8400, 25200])
def test_a_picture_in_which_every_anchor_passes(count):
    random = np.random.default_rng(count)
    centre, size = random.uniform(0, 640, (count, 2)), random.uniform(4, 200, (count, 2))
    boxes = np.float32(np.concatenate([centre - size / 2, centre + size / 2], axis=1))
    scores = random.uniform(0, 1, count).astype(np.float32)
    classes = random.integers(0, 80, count)
    outputs = suppress((boxes, scores, classes), iou_threshold=0.65)
    assert kept(outputs) == operator(boxes, scores, classes, 0.65)


def test_a_low_threshold_leaves_no_image_empty():
    random = np.random.default_rng(0)
    head = random.uniform(0, 0.5, (3, 84, 8400)).astype(np.float32)
    head[:, :2] *= 1280
    head[:, 2:4] = 4 + head[:, 2:4] * 300
    port = run("decode_yolov8", {"head": head}, {"score_threshold": 0.001})
    port["geometry"] = np.tile(np.float32([1, 1, 0, 0, 640, 640]), (3, 1))
    outputs = run("select_nms", port, {"max_detections": 8400})
    for n in range(3):
        columns = head[n].T
        boxes = np.concatenate([columns[:, :2] - columns[:, 2:4] / 2,
                                columns[:, :2] + columns[:, 2:4] / 2], axis=1)  # fmt: skip
        scores, classes = columns[:, 4:].max(axis=1), columns[:, 4:].argmax(axis=1)
        assert outputs["detections_counters"][n, 0] == 8400
        assert kept(outputs, n) == operator(boxes, scores, classes, 0.45)
