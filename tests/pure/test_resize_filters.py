"""Area, antialias and other layouts than RGB: against OpenCV, Pillow and the formulas of ITU-R."""

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from tests.patch_runs import run

SIZES = st.tuples(st.integers(1, 200), st.integers(1, 200))


def picture(height, width, channels=3):
    shape = (height, width, channels)
    return np.random.default_rng(height + width).integers(0, 256, shape, dtype=np.uint8)


def stretched(pixels, height, width, *, frame="rgb", **params):
    """Grey levels `[height, width, 3]`, the whole frame in them."""
    params = {"fit": "stretch", "scale": 1.0, **params}
    shapes = {"image": (1, 3, height, width)}
    inputs = {"frame_images": [pixels]}
    image = run("resize_letterbox", inputs, params, shapes, frame=frame)["image"]
    return image[0].transpose(1, 2, 0)


@settings(max_examples=100, deadline=None)
@given(frame=SIZES, model=SIZES)
def test_area_is_opencvs_where_the_picture_shrinks(frame, model):
    model = tuple(map(min, frame, model))
    pixels = picture(*frame)
    found = stretched(pixels, *model, interpolation="area")
    expected = cv2.resize(pixels, model[::-1], interpolation=cv2.INTER_AREA)
    assert np.abs(found - expected).max() <= 1


@settings(max_examples=100, deadline=None)
@given(frame=SIZES, model=SIZES)
def test_antialias_is_pillows(frame, model):
    pixels = picture(*frame)
    found = stretched(pixels, *model, interpolation="antialias")
    expected = Image.fromarray(pixels).resize(model[::-1], Image.Resampling.BILINEAR)
    assert np.abs(found - np.asarray(expected)).max() <= 1


@pytest.mark.parametrize("interpolation", ["area", "antialias"])
def test_large_frames(interpolation):
    pixels = picture(1080, 1920)
    found = stretched(pixels, 90, 160, interpolation=interpolation)
    area = cv2.resize(pixels, (160, 90), interpolation=cv2.INTER_AREA)
    smooth = Image.fromarray(pixels).resize((160, 90), Image.Resampling.BILINEAR)
    expected = area if interpolation == "area" else np.asarray(smooth)
    assert np.abs(found - expected).max() <= 1


@pytest.mark.parametrize("interpolation", ["bilinear", "nearest", "area", "antialias"])
def test_gray_and_planar_frames_are_as_interleaved_ones(interpolation):
    pixels = picture(61, 83)
    expected = stretched(pixels, 32, 40, interpolation=interpolation)
    planes = np.ascontiguousarray(pixels.transpose(2, 0, 1))
    for arranged, frame, order in (
        (planes, "rgb-planar", [0, 1, 2]),
        (planes, "bgr-planar", [2, 1, 0]),
        (pixels, "bgr", [2, 1, 0]),
    ):
        found = stretched(arranged, 32, 40, frame=frame, interpolation=interpolation)
        np.testing.assert_array_equal(found, expected[..., order])
    found = stretched(pixels[..., 1].copy(), 32, 40, frame="gray", interpolation=interpolation)
    np.testing.assert_array_equal(found, expected[..., [1, 1, 1]])


# ---- NV12.


def video(height, width):
    """Levels as video has them: luma 16 to 235, chroma 16 to 240."""
    random = np.random.default_rng(height)
    luma = random.integers(16, 236, (height, width), dtype=np.uint8)
    chroma = random.integers(16, 241, (height // 2, width), dtype=np.uint8)
    return np.concatenate([luma, chroma])


def by_formula(pixels, red, blue, limited):
    """RGB in double precision, from the definitions of ITU-R BT.601 and BT.709."""
    height = len(pixels) * 2 // 3
    y = pixels[:height].astype(float)
    u, v = (np.kron(pixels[height:, i::2].astype(float), np.ones((2, 2))) - 128 for i in (0, 1))
    if limited:
        y, u, v = (y - 16) / 219, u / 224, v / 224
    else:
        y, u, v = y / 255, u / 255, v / 255
    r = y + 2 * (1 - red) * v
    b = y + 2 * (1 - blue) * u
    g = (y - red * r - blue * b) / (1 - red - blue)
    return np.rint(np.stack([r, g, b], axis=2).clip(0, 1) * 255).astype(np.uint8)


@pytest.mark.parametrize("limited", [True, False])
@pytest.mark.parametrize(
    ("matrix", "red", "blue"), [("bt601", 0.299, 0.114), ("bt709", 0.2126, 0.0722)]
)
def test_nv12_is_the_formulas(matrix, red, blue, limited):
    pixels = np.random.default_rng(0).integers(0, 256, (900, 400), dtype=np.uint8)
    params = {"yuv_matrix": matrix, "yuv_range": "limited" if limited else "full"}
    found = stretched(pixels, 600, 400, frame="nv12", **params)
    gap = np.abs(found - by_formula(pixels, red, blue, limited))
    assert gap.max() <= 1  # a tie that is rounded the other way
    assert gap.mean() < 1e-3


def test_nv12_is_nearly_opencvs():
    pixels = video(600, 400)
    found = stretched(pixels, 600, 400, frame="nv12", yuv_matrix="bt601")
    expected = cv2.cvtColor(pixels, cv2.COLOR_YUV2RGB_NV12)
    gap = np.abs(found - expected)
    assert gap.max() <= 1  # OpenCV rounds the coefficients to three digits
    assert gap.mean() < 0.1


@pytest.mark.parametrize("model", [(360, 640), (33, 35), (200, 300)])
@pytest.mark.parametrize("interpolation", ["bilinear", "area"])
def test_nv12_is_resized_as_rgb_is(model, interpolation):
    pixels = video(180, 320)
    found = stretched(pixels, *model, frame="nv12", yuv_matrix="bt601", interpolation=interpolation)
    rgb = stretched(pixels, 180, 320, frame="nv12", yuv_matrix="bt601").astype(np.uint8)
    np.testing.assert_array_equal(found, stretched(rgb, *model, interpolation=interpolation))
    bgr = stretched(
        pixels, *model, frame="nv12", yuv_matrix="bt601", interpolation=interpolation, color="bgr"
    )
    np.testing.assert_array_equal(bgr[..., ::-1], found)


def test_nv12_with_pitch():
    wide = video(60, 100)
    found = stretched(wide[:, 10:74], 32, 32, frame="nv12")
    np.testing.assert_array_equal(found, stretched(wide[:, 10:74].copy(), 32, 32, frame="nv12"))
