"""select_nms against OpenCV, and on the inputs on which others fail."""

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.patch_runs import candidates, kept, run, suppress

# No fraction of whole numbers: an overlap at the threshold is a test of its own.
THRESHOLDS = st.integers(1, 18).map(lambda n: n / 20 + np.pi / 1e4)
CHAIN = [[0, 0, 100, 100], [40, 0, 140, 100], [80, 0, 180, 100]]


def crowd(count, seed=0, *, classes=1):
    """Boxes on whole pixels, so that float32 and float64 agree on every overlap."""
    random = np.random.default_rng(seed)
    corner = random.integers(0, 300, (count, 2))
    boxes = np.concatenate([corner, corner + random.integers(1, 90, (count, 2))], axis=1)
    scores = random.permutation(count) + 1.0  # all different: OpenCV's order of equals is its own
    return boxes, scores / count, random.integers(0, classes, count)


def opencv(boxes, scores, threshold):
    sizes = np.asarray(boxes, float)
    sizes[:, 2:] -= sizes[:, :2]
    return list(cv2.dnn.NMSBoxes(sizes, np.float32(scores), 0.0, threshold))


@settings(max_examples=60, deadline=None)
@given(count=st.integers(1, 300), seed=st.integers(0, 10**6), threshold=THRESHOLDS)
def test_class_agnostic_as_in_opencv(count, seed, threshold):
    boxes, scores, classes = crowd(count, seed, classes=5)
    outputs = suppress((boxes, scores, classes), class_aware=False, iou_threshold=threshold)
    assert kept(outputs) == opencv(boxes, scores, threshold)


@settings(max_examples=60, deadline=None)
@given(count=st.integers(1, 300), seed=st.integers(0, 10**6), threshold=THRESHOLDS)
def test_class_aware_as_opencv_class_by_class(count, seed, threshold):
    boxes, scores, classes = crowd(count, seed, classes=5)
    outputs = suppress((boxes, scores, classes), iou_threshold=threshold)
    expected = []
    for label in range(5):
        own = np.flatnonzero(classes == label)
        if len(own):
            expected += own[opencv(boxes[own], scores[own], threshold)].tolist()
    assert kept(outputs) == sorted(expected, key=lambda anchor: -scores[anchor])


def test_a_dead_box_kills_nobody():
    assert kept(suppress((CHAIN, [0.9, 0.8, 0.7], [0] * 3), iou_threshold=0.4)) == [0, 2]


def test_the_better_box_kills():
    boxes = [[7, 0, 12, 63], [7, 0, 12, 65]]
    assert kept(suppress((boxes, [0, 1], [0, 0]), iou_threshold=0.3)) == [1]


@pytest.mark.parametrize("threshold", [0.5, np.nextafter(np.float32(0.5), np.float32(0))])
def test_an_overlap_at_the_threshold_keeps_both(threshold):
    boxes = [[0, 0, 10, 10], [0, 0, 10, 5]]
    outputs = suppress((boxes, [0.9, 0.8], [0, 0]), iou_threshold=float(threshold))
    assert kept(outputs) == ([0, 1] if threshold == 0.5 else [0])


@pytest.mark.parametrize("aware", [True, False])
def test_images_and_classes_do_not_meet(aware):
    boxes = np.array([[0, 0, 3, 3], [0, 0, 4, 4], [0, 0, 5, 5], [5, 5, 9, 9], [5, 5, 10, 10]]) / 10
    images = [
        (boxes, [0.9, 0.75, 0.6, 0.95, 0.8], [0, 0, 1, 1, 0]),
        (boxes, [0.6, 0.75, 0.9, 0.8, 0.95], [1, 0, 0, 1, 1]),
    ]
    batch = suppress(*images, class_aware=aware)
    for n, image in enumerate(images):
        assert kept(batch, n) == kept(suppress(image, class_aware=aware))


def test_a_mixed_batch_equals_its_images_one_by_one():
    pictures = crowd(200, 1, classes=3), crowd(150, 2, classes=3)
    batch = suppress(*[pictures[0]] * 4, *[pictures[1]] * 4)
    for n in range(8):
        assert kept(batch, n) == kept(suppress(pictures[n // 4]))


def test_more_than_1024_images():
    images = [crowd(5, seed) for seed in range(1500)]
    batch = suppress(*images)
    for n in (0, 1023, 1024, 1499):
        assert kept(batch, n) == kept(suppress(images[n]))


def test_equal_scores_come_by_anchor():
    corner = np.arange(100)[:, None] * [20.0, 0]
    boxes = np.concatenate([corner, corner + 10], axis=1)
    assert kept(suppress((boxes, np.full(100, 0.5), [0] * 100))) == list(range(100))


@pytest.mark.parametrize("cap", [7900, 300])
def test_of_7900_boxes_that_do_not_touch_none_is_lost_unseen(cap):
    index = np.arange(7900)
    corner = np.stack([index % 100, index // 100], axis=1) * 6.0
    boxes = np.concatenate([corner, corner + 5], axis=1)
    outputs = suppress((boxes, np.linspace(1, 0, 7900), [0] * 7900), max_detections=cap)
    assert kept(outputs) == list(range(cap))
    assert outputs["detections_counters"].tolist() == [[7900, cap, 0, 7900 - cap, 0]]


def test_25200_candidates_of_a_crowd():
    boxes, scores, classes = crowd(25200, classes=80)
    outputs = suppress((boxes, scores, classes), iou_threshold=0.65)
    total = 0
    for label in range(80):
        own = np.flatnonzero(classes == label)
        total += len(opencv(boxes[own], scores[own], 0.65))
    assert outputs["detections_count"][0] == total


def test_a_cut_by_pre_nms_topk_is_by_score_and_counted():
    boxes, scores, classes = crowd(400)
    cut = np.argsort(-scores)[:100]
    expected = [int(cut[i]) for i in opencv(boxes[cut], scores[cut], 0.45)]
    outputs = suppress((boxes, scores, classes), pre_nms_topk=100)
    assert kept(outputs) == expected
    assert outputs["detections_counters"].tolist() == [[400, len(expected), 300, 0, 0]]


def test_negative_coordinates_and_scores_are_ordinary():
    boxes = [[-30, -20, 10, 10], [-28, -20, 10, 10], [-90, -90, -50, -50]]
    assert kept(suppress((boxes, [-3, -5, -4], [0] * 3))) == [0, 2]


def test_boxes_without_area_give_no_nan():
    boxes = [[5, 5, 5, 5], [5, 5, 5, 5], [0, 0, 10, 10]]
    outputs = suppress((boxes, [0.9, 0.8, 0.7], [0] * 3), iou_threshold=0.0)
    assert kept(outputs) == [0, 1, 2]
    assert np.isfinite(outputs["detections_boxes"]).all()


def test_rows_past_the_count_are_zero_and_the_counts_add_up():
    image = crowd(300, classes=2)
    inputs = {**candidates(image), "geometry": np.float32([[2, 3, 10, 20, 640, 480]])}
    inputs["candidates_nans"][:] = 5
    outputs = run("select_nms", inputs, {"max_detections": 20})
    survivors = kept(suppress(image))
    assert kept(outputs) == survivors[:20]
    assert outputs["detections_counters"].tolist() == [[300, 20, 0, len(survivors) - 20, 5]]
    boxes = (image[0][survivors[:20]] - [10, 20, 10, 20]) * [2, 3, 2, 3]
    np.testing.assert_array_equal(
        outputs["detections_boxes"][0], np.clip(boxes, 0, [640, 480, 640, 480])
    )
    few = run("select_nms", {**inputs, "candidates_count": np.int32([3])})
    count = few["detections_count"][0]
    for name in ("boxes", "scores", "classes"):
        assert not few[f"detections_{name}"][0, count:].any()
    assert (few["detections_anchors"][0, count:] == -1).all()


def test_a_large_box_in_half_precision_keeps_its_area_and_its_class():
    # 300 x 300 is beyond the largest half; label 79 leaves no room for a shift of coordinates.
    head = np.zeros((1, 84, 80), np.float16)
    head[0, :4, :3] = np.float16(
        [[200, 210, 500], [200, 210, 500], [300, 300, 300], [300, 300, 300]]
    )
    head[0, 4 + 79, :3] = [0.75, 0.5, 0.625]
    port = run("decode_yolov8", {"head": head})
    port["geometry"] = np.float32([[1, 1, 0, 0, 1000, 1000]])
    outputs = run("select_nms", port)
    assert kept(outputs) == [0, 2]
    assert outputs["detections_classes"][0, :2].tolist() == [79, 79]
    assert outputs["detections_boxes"][0, 0].tolist() == [50, 50, 350, 350]


def test_half_precision_coordinates_are_taken_as_they_are():
    head = np.zeros((1, 5, 1), np.float16)
    head[0, :, 0] = [1201.3, 1201.3, 40, 40, 0.5]
    port = run("decode_yolov8", {"head": head})
    assert np.abs(port["candidates_boxes"][0, 0] - [1181.3, 1181.3, 1221.3, 1221.3]).max() <= 0.5
