"""Shapes and bounds that a user gives, held against what an engine takes."""

import pytest

from trtpatch.engines import Tensor
from trtpatch.engines.shapes import bounds_of, check_shapes, named_shapes, narrowed
from trtpatch.errors import EngineError

PICTURE = Tensor("images", "float32", (-1, 3, -1, -1))
SIZES = Tensor("orig_target_sizes", "int64", (1, 2))
BOUNDS = {"images": ((1, 3, 32, 32), (1, 3, 320, 320), (4, 3, 640, 640))}


def test_a_bare_shape_is_for_the_only_input_with_as_many_axes():
    given = named_shapes("m.onnx", [1, 3, 320, 320], (PICTURE, SIZES))
    assert given == {"images": (1, 3, 320, 320)}
    assert named_shapes("m.onnx", None, (PICTURE,)) == {}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((1, 3, 320), "has 3 axes, which none of its inputs has: images float32"),
        ((1, 3, 320, 0), "expected 4 sizes of 1 or more"),
        ((1, 3, -2, 320), "expected 4 sizes of 1 or more, or -1 to leave one open"),
        ({"image": (1, 3, 32, 32)}, "no input is called 'image'.* Did you mean 'images'"),
        ({"images": (1, 3)}, "expected 4 sizes"),
    ],
)
def test_input_shapes_that_cannot_be_meant(given, message):
    with pytest.raises(EngineError, match=f"^m.onnx: .*{message}"):
        named_shapes("m.onnx", given, (PICTURE, SIZES))


def test_two_inputs_of_as_many_axes():
    other = Tensor("mask", "float32", (1, 1, -1, -1))
    with pytest.raises(EngineError, match="more than one of its inputs has"):
        named_shapes("m.onnx", (1, 3, 32, 32), (PICTURE, other))


def test_shapes_of_a_run_that_fit():
    given = {"images": (4, 3, 640, 32), "orig_target_sizes": (1, 2)}
    check_shapes("m.plan", given, (PICTURE, SIZES), bounds=BOUNDS)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "no shape is given for input images"),
        ({"images": (1, 3, 32, 32), "boxes": (1,)}, "no input is called 'boxes'"),
        ({"images": (1, 1, 32, 32)}, r"takes \[-1, 3, -1, -1\], found \[1, 1, 32, 32\]"),
        ({"images": (1, 3, 32)}, r"takes \[-1, 3, -1, -1\], found \[1, 3, 32\]"),
        ({"images": (0, 3, 32, 32)}, r"found \[0, 3, 32, 32\]"),
        (
            {"images": (1, 3, 672, 640)},
            r"min \[1, 3, 32, 32\], opt \[1, 3, 320, 320\], max \[4, 3, 640, 640\]",
        ),
        ({"images": (5, 3, 32, 32)}, "outside what the plan was built for"),
    ],
)
def test_shapes_of_a_run_that_do_not_fit(given, message):
    with pytest.raises(EngineError, match=f"^m.plan: .*{message}"):
        check_shapes("m.plan", given, (PICTURE,), bounds=BOUNDS)


def test_bounds_of_a_batch_that_is_open():
    boxes = Tensor("boxes", "float32", (-1, 4))
    whole = Tensor("images", "float32", (-1, 3, 64, 64))
    assert bounds_of("m.onnx", (whole, boxes, SIZES), batch=8) == {
        "images": ((1, 3, 64, 64), (8, 3, 64, 64), (8, 3, 64, 64)),
        "boxes": ((1, 4), (8, 4), (8, 4)),
    }
    assert bounds_of("m.onnx", (whole, boxes, SIZES)) == {}


def test_bounds_of_a_size_that_is_open_come_from_a_profile():
    boxes = Tensor("boxes", "float32", (-1, 4))
    assert bounds_of("m.onnx", (PICTURE,), batch=8) == {}
    expected = {**BOUNDS, "boxes": ((1, 4), (1, 4), (4, 4))}
    for profile in (BOUNDS, BOUNDS["images"]):
        assert bounds_of("m.onnx", (PICTURE, boxes), profile=profile, batch=8) == expected


@pytest.mark.parametrize(
    ("profile", "message"),
    [
        ({"image": BOUNDS["images"]}, "no input is called 'image'.* Did you mean 'images'"),
        (((1, 3, 32), (1, 3, 32), (1, 3, 32)), "has 3 axes, which none of its inputs has"),
        (((1, 3, 32, 32), (1, 3, 32), (1, 3, 64, 64)), "expected 4 sizes each"),
        (((1, 3, 64, 32), (1, 3, 32, 32), (1, 3, 64, 64)), "that grow from min to max"),
        (((0, 3, 32, 32), (1, 3, 32, 32), (1, 3, 64, 64)), "sizes of 1 or more"),
        (((1, 1, 32, 32), (1, 3, 32, 32), (1, 3, 64, 64)), "fixes a size that the profile varies"),
    ],
)
def test_profiles_that_are_none(profile, message):
    with pytest.raises(EngineError, match=f"^m.onnx: .*{message}"):
        bounds_of("m.onnx", (PICTURE, SIZES), profile=profile)


def test_a_profile_for_sizes_that_the_file_fixes_says_how_to_open_them():
    fixed = Tensor("images", "float32", (1, 3, 64, 64))
    profile = ((1, 3, 32, 64), (1, 3, 64, 64), (1, 3, 96, 64))
    with pytest.raises(EngineError, match=r"'input_shape: \[1, 3, -1, 64\]' opens it"):
        bounds_of("m.onnx", (fixed,), profile=profile)


def test_a_plan_is_narrowed():
    (picture,) = narrowed("m.plan", (-1, 3, 320, 640), (PICTURE,), BOUNDS)
    assert picture.shape == (-1, 3, 320, 640)
    assert narrowed("m.plan", None, (PICTURE, SIZES), BOUNDS) == (PICTURE, SIZES)
    fixed = Tensor("images", "float32", (2, 3, 64, 64))
    assert narrowed("m.plan", (-1, 3, -1, 64), (fixed,), {}) == (fixed,)
    with pytest.raises(EngineError, match="outside what the plan was built for"):
        narrowed("m.plan", (-1, 3, 1280, 320), (PICTURE,), BOUNDS)
    with pytest.raises(EngineError, match=r"takes \[2, 3, 64, 64\], found \[2, 3, 96, 64\]"):
        narrowed("m.plan", (-1, 3, 96, 64), (fixed,), {})
