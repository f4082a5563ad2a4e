"""resize_letterbox against OpenCV, and the way there and back."""

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.patch_runs import candidates, run

GREY = {"scale": 1.0, "pad_value": 7}


def picture(height, width, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)


def letterbox(pixels, height, width, *, frame="rgb", **params):
    """The image as `[height, width, 3]`, and the geometry."""
    shapes = {"image": (1, 3, height, width)}
    outputs = run(
        "resize_letterbox", {"frame_images": [pixels]}, {**GREY, **params}, shapes, frame=frame
    )
    return outputs["image"][0].transpose(1, 2, 0), outputs["geometry"][0]


def placed(frame, height, width, **params):
    """Left, top, width and height of the picture inside the model's input, seen from outside."""
    white = np.full(frame.shape, 255, np.uint8)
    image, geometry = letterbox(white, height, width, **{**params, "pad_value": 0})
    rows, columns = np.nonzero(image[..., 0])
    left, top = int(columns.min()), int(rows.min())
    assert geometry[2:4].tolist() == [left, top]
    return left, top, int(columns.max()) - left + 1, int(rows.max()) - top + 1


@pytest.mark.parametrize(
    ("frame", "model", "expected"),
    [
        ((1571, 3775), (1280, 1280), (0, 373, 1280, 533)),  # 374 rows below
        ((2128, 1600), (640, 640), (79, 0, 481, 640)),  # 80 columns at the right
        ((1080, 1920), (1088, 640), (0, 364, 640, 360)),  # not square: width is not height
        ((640, 640), (640, 640), (0, 0, 640, 640)),
        ((1, 20000), (640, 640), (0, 319, 640, 1)),
        ((20000, 1), (640, 640), (319, 0, 1, 640)),
        ((1, 1), (640, 640), (0, 0, 640, 640)),
    ],
)
def test_a_picture_fills_one_side_and_is_padded_at_the_other(frame, model, expected):
    assert placed(picture(*frame), *model) == expected
    image, geometry = letterbox(picture(*frame), *model)
    left, top, width, height = expected
    outside = np.ones(model, bool)
    outside[top : top + height, left : left + width] = False
    assert (image[outside] == 7).all()
    gain = min(model[0] / frame[0], model[1] / frame[1])
    np.testing.assert_allclose(geometry, [1 / gain, 1 / gain, left, top, *frame[::-1]], rtol=1e-6)


@settings(max_examples=150, deadline=None)
@given(
    frame=st.tuples(st.integers(1, 300), st.integers(1, 300)),
    model=st.tuples(st.integers(1, 150), st.integers(1, 150)),
    fit=st.sampled_from(["letterbox", "stretch"]),
    pad=st.sampled_from(["center", "bottom-right"]),
)
def test_bilinear_is_opencvs_to_one_grey_level(frame, model, fit, pad):
    pixels = picture(*frame)
    image, _ = letterbox(pixels, *model, fit=fit, pad=pad)
    left, top, width, height = placed(pixels, *model, fit=fit, pad=pad)
    if pad == "bottom-right" or fit == "stretch":
        assert (left, top) == (0, 0)
    expected = np.full((*model, 3), 7, np.uint8)
    expected[top : top + height, left : left + width] = cv2.resize(
        pixels, (width, height), interpolation=cv2.INTER_LINEAR
    )
    assert np.abs(image - expected).max() <= 1


@pytest.mark.parametrize("size", [(1080, 1920), (427, 640), (91, 77), (2, 20000)])
@pytest.mark.parametrize("model", [(640, 640), (416, 416)])
def test_bilinear_is_nearly_always_opencvs_very_level(size, model):
    pixels = picture(*size)
    image, _ = letterbox(pixels, *model, fit="stretch")
    gap = np.abs(image - cv2.resize(pixels, model[::-1], interpolation=cv2.INTER_LINEAR))
    assert gap.max() <= 1
    assert gap.mean() < 0.025


@settings(max_examples=100, deadline=None)
@given(
    frame=st.tuples(st.integers(1, 300), st.integers(1, 300)),
    model=st.tuples(st.integers(1, 150), st.integers(1, 150)),
)
def test_nearest_is_opencvs(frame, model):
    pixels = picture(*frame)
    image, _ = letterbox(pixels, *model, fit="stretch", interpolation="nearest")
    expected = cv2.resize(pixels, model[::-1], interpolation=cv2.INTER_NEAREST)
    # Where a position is a whole pixel, OpenCV's floating point may fall just below it.
    sure_rows, sure_columns = (
        np.arange(size) * source % size != 0 for source, size in zip(frame, model, strict=True)
    )
    sure = np.outer(sure_rows, sure_columns)
    assert (image == expected).all(axis=2)[sure].all()


@pytest.mark.parametrize("frame", ["rgb", "bgr"])
@pytest.mark.parametrize("color", ["rgb", "bgr"])
def test_channels_come_in_the_models_order(frame, color):
    pixels = np.full((8, 8, 3), [10, 20, 30], np.uint8)
    image, _ = letterbox(pixels, 8, 8, frame=frame, color=color)
    expected = [10, 20, 30] if frame == color else [30, 20, 10]
    assert image[3, 3].tolist() == expected


def test_values_and_padding_are_normalised_in_the_models_order():
    mean, std = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
    frame = np.full((4, 8, 3), [10, 20, 30], np.uint8)
    image, _ = letterbox(frame, 8, 8, scale=1 / 255, mean=mean, std=std, pad_value=114)
    for found, grey in ((image[4, 4], [10, 20, 30]), (image[0, 0], [114, 114, 114])):
        expected = (np.array(grey) / 255 - mean) / std
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


def test_a_box_goes_there_and_back_within_a_hundredth_of_a_pixel():
    random = np.random.default_rng(0)
    canvas = np.zeros((4000, 5000, 3), np.uint8)
    boxes, there, geometries = [], [], []
    for model in ((32, 32), (48, 32), (32, 80)):
        sizes = random.integers(1, canvas.shape[:2], (1000, 2))
        frames = {"frame_images": [canvas[:height, :width] for height, width in sizes]}
        shapes = {"image": (len(sizes), 3, *model)}
        params = {"interpolation": "nearest"}
        geometry = run("resize_letterbox", frames, params, shapes)["geometry"]
        for (height, width), row in zip(sizes, geometry, strict=True):
            box = np.sort(random.uniform(0, [width, height], (2, 2)), axis=0)
            boxes.append(box.ravel())
            there.append((box * min(model[0] / height, model[1] / width) + row[2:4]).ravel())
        geometries.append(geometry)
    port = candidates(*((box, [0.5], [0]) for box in there))
    inputs = {**port, "geometry": np.concatenate(geometries)}
    back = run("select_nms", inputs)["detections_boxes"][:, 0]
    np.testing.assert_allclose(back, boxes, rtol=0, atol=0.01)


def test_a_box_that_ends_below_the_picture_is_clipped_and_kept():
    _, geometry = letterbox(picture(360, 640), 640, 640)
    below = [100, 400, 200, 500.5]  # the picture ends at 500
    inputs = {**candidates((below, [0.5], [0])), "geometry": geometry[None]}
    outputs = run("select_nms", inputs)
    assert outputs["detections_count"].tolist() == [1]
    assert outputs["detections_boxes"][0, 0].tolist() == [100, 260, 200, 360]


def test_rows_may_be_longer_than_the_picture():
    wide = picture(40, 90)
    for frame in (wide[:, :61], wide[3:30, 10:70]):
        image, _ = letterbox(frame, 32, 32)
        np.testing.assert_array_equal(image, letterbox(frame.copy(), 32, 32)[0])
