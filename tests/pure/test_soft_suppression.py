"""select_soft_nms against OpenCV, and where it must equal what is known otherwise."""

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.patch_runs import candidates, kept, run, suppress

METHODS = {
    "linear": cv2.dnn.SOFT_NMSMETHOD_SOFTNMS_LINEAR,
    "gaussian": cv2.dnn.SOFT_NMSMETHOD_SOFTNMS_GAUSSIAN,
}
CASES = given(
    count=st.integers(1, 120),
    seed=st.integers(0, 10**6),
    method=st.sampled_from(sorted(METHODS)),
    sigma=st.sampled_from([0.1, 0.5, 2.0]),
    threshold=st.integers(1, 18).map(lambda n: n / 20 + np.pi / 1e4),
)


def crowd(count, seed, *, classes=1):
    """Boxes on whole pixels; the scores all differ."""
    random = np.random.default_rng(seed)
    corner = random.integers(0, 200, (count, 2))
    boxes = np.concatenate([corner, corner + random.integers(1, 90, (count, 2))], axis=1)
    scores = random.uniform(0.05, 1, count).astype(np.float32)
    return boxes, scores, random.integers(0, classes, count)


def soften(*images, **params):
    geometry = np.tile(np.float32([1, 1, 0, 0, 1e9, 1e9]), (len(images), 1))
    inputs = {**candidates(*images), "geometry": geometry}
    return run("select_soft_nms", inputs, {"max_detections": 2**63 - 1, **params})


def opencv(image, method, sigma, threshold, least):
    """Boxes kept, in their order, and their scores."""
    sizes = np.array(image[0])
    sizes[:, 2:] -= sizes[:, :2]
    scores, indices = cv2.dnn.softNMSBoxes(
        sizes, np.float32(image[1]), least, threshold, 0, sigma, METHODS[method]
    )
    return indices.tolist(), scores


def scores_of(outputs):
    return outputs["detections_scores"][0, : outputs["detections_count"][0]]


@settings(max_examples=60, deadline=None)
@CASES
def test_as_in_opencv(count, seed, method, sigma, threshold):
    image = crowd(count, seed)
    params = {"method": method, "sigma": sigma, "iou_threshold": threshold, "min_score": 0.01}
    outputs = soften(image, **params)
    indices, scores = opencv(image, method, sigma, threshold, 0.01)
    assert kept(outputs) == indices
    np.testing.assert_allclose(scores_of(outputs), scores, rtol=1e-5)


@settings(max_examples=40, deadline=None)
@CASES
def test_class_aware_as_opencv_class_by_class(count, seed, method, sigma, threshold):
    image = boxes, scores, classes = crowd(count, seed, classes=4)
    expected = []
    for label in range(4):
        own = np.flatnonzero(classes == label)
        if len(own):
            indices, left = opencv((boxes[own], scores[own]), method, sigma, threshold, 0.01)
            expected += zip(left.tolist(), own[indices].tolist(), strict=True)
    params = {"method": method, "sigma": sigma, "iou_threshold": threshold, "min_score": 0.01}
    outputs = soften(image, **params)
    assert kept(outputs) == [anchor for _, anchor in sorted(expected, reverse=True)]


@settings(max_examples=40, deadline=None)
@given(count=st.integers(1, 200), seed=st.integers(0, 10**6))
def test_a_sigma_near_0_suppresses_whatever_overlaps(count, seed):
    image = crowd(count, seed, classes=3)
    hard = suppress(image, iou_threshold=0.0)
    assert kept(soften(image, sigma=1e-12)) == kept(hard)


@settings(max_examples=40, deadline=None)
@given(count=st.integers(1, 200), seed=st.integers(0, 10**6), settings_=st.sampled_from(
    [{"sigma": 1e12}, {"method": "linear", "iou_threshold": 1.0}]
))  # fmt: skip
def test_where_nothing_costs_all_stay_as_they_are(count, seed, settings_):
    image = _, scores, _ = crowd(count, seed)
    outputs = soften(image, **settings_)
    order = np.argsort(-scores, kind="stable")
    assert kept(outputs) == order.tolist()
    np.testing.assert_array_equal(scores_of(outputs), scores[order])


@settings(max_examples=40, deadline=None)
@CASES
def test_scores_fall_and_never_rise(count, seed, method, sigma, threshold):
    image = _, scores, _ = crowd(count, seed)
    outputs = soften(image, method=method, sigma=sigma, iou_threshold=threshold)
    assert (np.diff(scores_of(outputs)) <= 0).all()
    assert (scores_of(outputs) <= scores[kept(outputs)]).all()
    assert scores_of(outputs)[0] == scores.max()


@pytest.mark.parametrize("threshold", [0.5, np.nextafter(np.float32(0.5), np.float32(0))])
def test_an_overlap_at_the_threshold_costs_nothing(threshold):
    image = [[0, 0, 10, 10], [0, 0, 10, 5]], [0.9, 0.8], [0, 0]
    outputs = soften(image, method="linear", iou_threshold=float(threshold))
    expected = np.float32([0.9, 0.8 if threshold == 0.5 else 0.4])
    np.testing.assert_allclose(scores_of(outputs), expected)


def test_what_there_is_no_room_for_is_counted():
    image = crowd(100, 0)
    everything = soften(image)
    few = soften(image, max_detections=7)
    assert kept(few) == kept(everything)[:7]
    counters = few["detections_counters"][0].tolist()
    assert counters[:3] == [100, 7, 0]
    assert counters[3] >= everything["detections_count"][0] - 7


def test_images_are_on_their_own():
    images = [crowd(count, count, classes=2) for count in (1, 60, 30)]
    batch = soften(*images)
    for n, image in enumerate(images):
        assert kept(batch, n) == kept(soften(image))
