"""What is drawn on a picture, where OpenCV and the numbers themselves say that it must be."""

import cv2
import numpy as np
import pytest

from trtpatch.detections import Counters, Detections
from trtpatch.drawing import draw

GREY = np.full((220, 300, 3), 200, np.uint8)


def found(boxes: np.ndarray, **more: np.ndarray) -> Detections:
    count = len(boxes)
    return Detections(
        boxes=np.float32(boxes),
        scores=np.linspace(0.9, 0.5, count, dtype=np.float32),
        labels=np.arange(count, dtype=np.int32),
        anchors=np.arange(count, dtype=np.int32),
        counters=Counters(count, count, 0, 0, 0),
        width=300,
        height=220,
        **more,
    )


def drawn(pixels: np.ndarray, x: float, y: float) -> bool:
    """Whether something is drawn within two pixels."""
    column, row = round(x), round(y)
    return bool((pixels[max(0, row - 2) : row + 3, max(0, column - 2) : column + 3] != 200).any())


def test_turned_boxes_are_drawn_turned():
    turned = np.float32([[100, 110, 120, 40, 0.5], [220, 150, 60, 70, 0], [60, 160, 80, 20, 1.2]])
    boxes = []
    for x, y, width, height, angle in turned.tolist():
        four = cv2.boxPoints(((x, y), (width, height), np.degrees(angle)))
        boxes.append([*four.min(axis=0), *four.max(axis=0)])
    objects = found(np.array(boxes), rotated=turned)
    theirs = objects.to_supervision()
    np.testing.assert_array_equal(theirs.data["xyxyxyxy"], objects.corners)
    pixels = np.asarray(draw(GREY, objects))
    for (x, y, width, height, angle), box in zip(turned.tolist(), boxes, strict=True):
        four = cv2.boxPoints(((x, y), (width, height), np.degrees(angle)))
        assert all(drawn(pixels, *corner) for corner in four)
        assert drawn(pixels, box[2], box[3]) == (angle == 0)


def test_key_points_that_are_there_are_marked():
    points = np.float32([[[50, 60, 0.9], [150, 100, 0.1], [250, 200, 0.6]]])
    pixels = np.asarray(draw(GREY, found(np.array([[20, 30, 280, 215]]), keypoints=points)))
    assert drawn(pixels, 50, 60)
    assert not drawn(pixels, 150, 100)
    assert drawn(pixels, 250, 200)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e30])
def test_numbers_that_lie_nowhere(value):
    boxes = np.array([[20, 30, 280, 215]])
    points = np.full((1, 2, 3), value, np.float32)
    bare = np.asarray(draw(GREY, found(boxes)))
    assert (np.asarray(draw(GREY, found(boxes, keypoints=points))) == bare).all()
    turned = draw(GREY, found(boxes, rotated=np.float32([[100, 100, value, 20, 0.4]])))
    assert not drawn(np.asarray(turned), 280, 215)
