"""Turned rectangles: ProbIoU against integrals, boxes around them against OpenCV."""

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.patch_runs import candidates, kept, run

SEEDS = st.integers(0, 10**6)


def crowd(count, seed):
    """`[count, 5]` around one place, and scores that all differ."""
    random = np.random.default_rng(seed)
    centre = 50 + random.normal(0, 6, (count, 2))
    turned = random.uniform(-np.pi, np.pi, (count, 1))
    rectangles = np.concatenate([centre, random.uniform(8, 40, (count, 2)), turned], axis=1)
    return rectangles, random.permutation(count) / count + 0.001


def select(rectangles, scores, *, classes=None, geometry=(1, 1, 0, 0, 1e9, 1e9), **params):
    count = len(scores)
    port = candidates((np.zeros((count, 4)), scores, [0] * count if classes is None else classes))
    port["rectangles"] = np.float32(rectangles)[None]
    port["geometry"] = np.float32([geometry])
    return run("select_nms_rotated", port, {"max_detections": 2**63 - 1, **params})


def density(rectangle, x, y):
    """Of the normal distribution with the mean and the covariance of a rectangle."""
    centre_x, centre_y, width, height, angle = rectangle
    along = (x - centre_x) * np.cos(angle) + (y - centre_y) * np.sin(angle)
    across = (y - centre_y) * np.cos(angle) - (x - centre_x) * np.sin(angle)
    deviations = width / np.sqrt(12), height / np.sqrt(12)
    exponent = (along / deviations[0]) ** 2 + (across / deviations[1]) ** 2
    return np.exp(-exponent / 2) / (2 * np.pi * deviations[0] * deviations[1])


def prob_ious(rectangles):
    """`[K, K]`, one less the Hellinger distances, by summing over a grid.

    The narrowest deviation is 2.3 cells, so the sum is off the integral by e^-100.
    """
    x, y = np.meshgrid(np.arange(-60, 160), np.arange(-60, 160))
    roots = np.stack([np.sqrt(density(one, x, y)).ravel() for one in rectangles])
    return 1 - np.sqrt(np.maximum(1 - roots @ roots.T, 0))


@settings(max_examples=25, deadline=None)
@given(count=st.integers(2, 25), seed=SEEDS, threshold=st.integers(2, 9).map(lambda n: n / 10))
def test_greedy_by_integrated_overlaps(count, seed, threshold):
    rectangles, scores = crowd(count, seed)
    overlaps = prob_ious(rectangles)
    near = np.abs(overlaps - threshold) < 1e-4
    if near.any():
        return
    expected = []
    for one in np.argsort(-scores).tolist():
        if all(overlaps[one, better] <= threshold for better in expected):
            expected.append(one)
    assert kept(select(rectangles, scores, iou_threshold=threshold)) == expected


@settings(max_examples=25, deadline=None)
@given(seed=SEEDS, threshold=st.integers(2, 9).map(lambda n: n / 10 + np.pi / 1e3))
def test_a_rectangle_is_the_same_after_a_quarter_turn_with_its_sides_swapped(seed, threshold):
    rectangles, scores = crowd(60, seed)
    before = select(rectangles, scores, iou_threshold=threshold)
    other = np.random.default_rng(seed).random(60) < 0.5
    rectangles[other] = rectangles[other][:, [0, 1, 3, 2, 4]] + [0, 0, 0, 0, np.pi / 2]
    after = select(rectangles, scores, iou_threshold=threshold)
    assert kept(before) == kept(after)
    rotated = before["rotated"][0], after["rotated"][0]
    near_a_quarter = np.abs(rotated[0][:, 4] / (np.pi / 2) - 0.5) > 0.499
    np.testing.assert_allclose(*(one[~near_a_quarter] for one in rotated), atol=1e-3)


def test_a_plus_sign_is_two_things():
    plus = [[50, 50, 80, 8, 0], [50, 50, 80, 8, np.pi / 2]]
    assert kept(select(plus, [0.9, 0.8], iou_threshold=0.45)) == [0, 1]
    assert kept(select([plus[0], plus[0]], [0.9, 0.8], iou_threshold=0.99)) == [0]


def test_classes_do_not_meet():
    same = [[50, 50, 80, 8, 1]] * 3
    assert kept(select(same, [0.9, 0.8, 0.7], classes=[0, 1, 0])) == [0, 1]
    assert kept(select(same, [0.9, 0.8, 0.7], classes=[0, 1, 0], class_aware=False)) == [0]


@pytest.mark.parametrize("scale", [1.0, 2.5])
def test_rectangles_in_the_frame_cover_what_they_covered(scale):
    rectangles, scores = crowd(40, 7)
    geometry = scale, scale, 10, 20, 640, 480
    outputs = select(rectangles, scores, geometry=geometry, iou_threshold=1.0)
    assert kept(outputs) == np.argsort(-scores).tolist()
    assert ((outputs["rotated"][0, :, 4] >= 0) & (outputs["rotated"][0, :, 4] < 1.5708)).all()
    for found, anchor in zip(outputs["rotated"][0], kept(outputs), strict=True):
        corners, expected = corners_of(found), corners_of(rectangles[anchor])
        expected = (expected - [10, 20]) * scale
        distances = np.linalg.norm(corners[:, None] - expected, axis=2)
        assert distances.min(axis=1).max() < 1e-2


def test_the_angle_turns_with_scales_that_differ():
    outputs = select([[30, 40, 20, 10, np.pi / 4]], [0.9], geometry=(1, 3, 0, 0, 640, 480))
    x, y, width, height, angle = outputs["rotated"][0, 0].tolist()
    assert (x, y) == (30, 120)
    assert angle == pytest.approx(np.arctan2(3, 1), abs=1e-6)
    assert width == pytest.approx(20 * np.sqrt(5), rel=1e-6)
    assert height == pytest.approx(10 * np.sqrt(5), rel=1e-6)


def corners_of(rectangle):
    x, y, width, height, angle = (float(one) for one in rectangle)
    return cv2.boxPoints(((x, y), (width, height), np.degrees(angle)))


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_candidates_have_the_boxes_around_their_rectangles(dtype):
    rectangles, scores = crowd(50, 3)
    head = np.concatenate([rectangles[:, :4], scores[:, None], rectangles[:, 4:]], axis=1)
    head = head.T[None].astype(dtype)
    port = run("decode_yolov8_obb", {"head": head}, {"score_threshold": 0.0})
    assert port["candidates_count"][0] == 50
    np.testing.assert_array_equal(port["rectangles"][0], head[0][[0, 1, 2, 3, 5]].T)
    for box, anchor in zip(
        port["candidates_boxes"][0], port["candidates_anchors"][0].tolist(), strict=True
    ):
        corners = corners_of(port["rectangles"][0, anchor])
        around = np.concatenate([corners.min(axis=0), corners.max(axis=0)])
        np.testing.assert_allclose(box, around, atol=1e-3)


def test_rows_past_the_count_are_zero():
    outputs = select([[50, 50, 80, 8, 1]] * 5, [0.9] * 5, max_detections=4)
    assert outputs["detections_count"].tolist() == [1]
    assert not outputs["rotated"][0, 1:].any()
