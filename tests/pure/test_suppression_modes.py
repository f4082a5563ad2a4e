"""select_nms by class, by DIoU, and with limits that change from frame to frame."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.patch_runs import kept, suppress
from tests.pure.test_suppression import THRESHOLDS, crowd, opencv

COUNTS, SEEDS = st.integers(1, 300), st.integers(0, 10**6)


@settings(max_examples=40, deadline=None)
@given(count=COUNTS, seed=SEEDS, thresholds=st.lists(THRESHOLDS, min_size=1, max_size=6))
def test_a_class_has_its_own_iou_threshold(count, seed, thresholds):
    boxes, scores, classes = crowd(count, seed, classes=4)
    outputs = suppress(
        (boxes, scores, classes), iou_threshold=0.777, class_iou_thresholds=thresholds
    )
    expected = []
    for label in range(4):
        own = np.flatnonzero(classes == label)
        if len(own):
            threshold = [*thresholds, *[0.777] * 4][label]
            expected += own[opencv(boxes[own], scores[own], threshold)].tolist()
    assert kept(outputs) == sorted(expected, key=lambda anchor: -scores[anchor])


@settings(max_examples=40, deadline=None)
@given(count=COUNTS, seed=SEEDS, aware=st.booleans(), threshold=THRESHOLDS)
def test_a_class_has_its_own_score_threshold(count, seed, aware, threshold):
    image = boxes, scores, classes = crowd(count, seed, classes=4)
    least = np.array([0.5, 0.0, threshold, -np.inf])[classes]
    passing = np.flatnonzero(np.float32(scores) > np.float32(least))
    alone = suppress((boxes[passing], scores[passing], classes[passing]), class_aware=aware)
    outputs = suppress(image, class_aware=aware, class_score_thresholds=[0.5, 0.0, threshold])
    assert kept(outputs) == passing[kept(alone)].tolist()
    assert outputs["detections_counters"][0, 0] == len(passing)


def test_a_score_at_its_class_threshold_takes_no_part():
    boxes = [[0, 0, 5, 5], [10, 0, 15, 5], [20, 0, 25, 5]]
    outputs = suppress((boxes, [0.5, 0.75, 0.5], [0, 0, 1]), class_score_thresholds=[0.5])
    assert kept(outputs) == [1, 2]
    assert outputs["detections_counters"].tolist() == [[2, 2, 0, 0, 0]]


def diou(a, b):
    """IoU less d2 / c2, as Zheng et al. have it (Distance-IoU Loss, AAAI 2020, equation 7)."""
    width = max(0.0, min(a[2], b[2]) - max(a[0], b[0]))
    height = max(0.0, min(a[3], b[3]) - max(a[1], b[1]))
    areas = [(x2 - x1) * (y2 - y1) for x1, y1, x2, y2 in (a, b)]
    centres = [((x1 + x2) / 2, (y1 + y2) / 2) for x1, y1, x2, y2 in (a, b)]
    d2 = sum((p - q) ** 2 for p, q in zip(*centres, strict=True))
    c2 = (max(a[2], b[2]) - min(a[0], b[0])) ** 2 + (max(a[3], b[3]) - min(a[1], b[1])) ** 2
    return width * height / (sum(areas) - width * height) - d2 / c2


@settings(max_examples=40, deadline=None)
@given(count=st.integers(1, 80), seed=SEEDS, threshold=THRESHOLDS)
def test_diou_as_published(count, seed, threshold):
    boxes, scores, classes = crowd(count, seed)
    expected = []
    for one in np.argsort(-scores).tolist():
        if all(diou(boxes[one], boxes[better]) <= threshold for better in expected):
            expected.append(one)
    outputs = suppress((boxes, scores, classes), metric="diou", iou_threshold=threshold)
    assert kept(outputs) == expected


@settings(max_examples=20, deadline=None)
@given(seed=SEEDS, threshold=THRESHOLDS)
def test_diou_of_boxes_around_one_centre_is_their_iou(seed, threshold):
    half = np.random.default_rng(seed).integers(1, 60, (100, 2))
    image = np.concatenate([100 - half, 100 + half], axis=1), np.linspace(1, 0, 100), [0] * 100
    both = [suppress(image, metric=name, iou_threshold=threshold) for name in ("iou", "diou")]
    assert kept(both[0]) == kept(both[1])


@pytest.mark.parametrize("limit", [2**31 - 1, 2**63 - 1])
def test_limits_beyond_every_count_are_none(limit):
    image = crowd(300, classes=2)
    outputs = suppress(image, max_detections=limit, pre_nms_topk=limit)
    assert kept(outputs) == kept(suppress(image))
    assert not outputs["detections_counters"][0, 2:].any()
