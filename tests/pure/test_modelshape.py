"""Which shape of an engine a batch of pictures gets."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trtpatch.engines import EngineInfo, Metadata, Tensor
from trtpatch.errors import EngineError
from trtpatch.modelshape import ModelShape, ModelShapes

BOUNDS = ((1, 3, 320, 320), (4, 3, 640, 640), (8, 3, 1280, 1280))


def shapes(shape, *, bounds=None, batch=None, rectangular=False, stride=None, others=()):
    info = EngineInfo(
        kind="ort",
        path="m.onnx",
        flavour="onnxruntime",
        version="1",
        inputs=(Tensor("images", "float32", shape), *others),
        outputs=(),
        metadata=Metadata(stride=stride),
        bounds={"images": bounds} if bounds else {},
    )
    return ModelShapes(info, batch=batch, rectangular=rectangular)


def test_an_engine_of_fixed_sizes_has_one_shape():
    fixed = shapes((2, 3, 480, 640))
    assert fixed.largest == ModelShape(2, (480, 640))
    assert fixed.shape_for([(10, 10)]) == fixed.largest
    assert fixed.inputs_at(fixed.largest) == {"images": (2, 3, 480, 640)}


def test_an_open_batch():
    one = shapes((-1, 3, 64, 64))
    assert one.largest.batch == 1
    eight = shapes((-1, 3, 64, 64), batch=8)
    assert [eight.shape_for([(1, 1)] * n).batch for n in (1, 5, 8)] == [1, 5, 8]


def test_a_profile_gives_batch_and_size():
    plan = shapes((-1, 3, -1, -1), bounds=BOUNDS)
    assert plan.largest == ModelShape(4, (640, 640))
    least_two = shapes((-1, 3, 64, 64), bounds=((2, 3, 64, 64),) * 2 + ((8, 3, 64, 64),), batch=8)
    assert [least_two.shape_for([(1, 1)] * n).batch for n in (1, 2, 3)] == [2, 2, 3]


def test_other_inputs_follow_the_batch():
    both = shapes((-1, 3, 64, 64), batch=3, others=(Tensor("sizes", "int64", (-1, 2)),))
    assert both.inputs_at(both.largest)["sizes"] == (3, 2)
    text = shapes((-1, 3, 64, 64), others=(Tensor("ids", "int64", (-1, -1)),))
    with pytest.raises(EngineError, match=r"ids \[-1, -1\] is open in more than the batch"):
        text.inputs_at(text.largest)


def test_an_engine_without_a_picture():
    rows = shapes((-1, 17), batch=2, rectangular=True)
    assert rows.largest == ModelShape(2, None)
    assert rows.notes
    with pytest.raises(EngineError, match="takes no picture"):
        rows.shape_for([(1, 1)], (64, 64))


side = st.integers(1, 10_000)


@given(pictures=st.lists(st.tuples(side, side), min_size=1, max_size=4))
def test_a_rectangle_scales_as_the_whole_does_and_is_the_smallest(pictures):
    grid = shapes((-1, 3, -1, -1), bounds=BOUNDS, batch=4, rectangular=True)
    height, width = grid.shape_for(pictures).size
    assert height % 32 == width % 32 == 0
    assert 320 <= height <= 640 >= width >= 320

    def gain(picture, h, w):
        return min(h / picture[0], w / picture[1])

    for picture in pictures:
        assert gain(picture, height, width) == gain(picture, 640, 640)
    for smaller in ((height - 32, width), (height, width - 32)):
        if min(smaller) >= 320:
            assert any(gain(p, *smaller) < gain(p, 640, 640) for p in pictures)


def test_the_stride_of_a_rectangle():
    fine = shapes((1, 3, -1, -1), bounds=BOUNDS, rectangular=True, stride=8)
    assert fine.shape_for([(720, 1280)]).size == (360, 640)


def test_an_engine_without_inputs():
    info = EngineInfo("ort", "m.onnx", "onnxruntime", "1", inputs=(), outputs=())
    with pytest.raises(EngineError, match="m.onnx: the engine takes no input"):
        ModelShapes(info, batch=None, rectangular=False)


@pytest.mark.parametrize("size", [[64, 96], np.array([64, 96]), (np.int64(64), 96)])
def test_a_size_may_be_any_pair(size):
    assert shapes((1, 3, -1, -1), bounds=BOUNDS).shape_for([(1, 1)], size).size == (64, 96)


@pytest.mark.parametrize("size", [64, (64,), (64, 64, 3), "ab", (64.0, 64), (0, 64), (64, -1), {}])
def test_what_is_no_size(size):
    with pytest.raises(
        EngineError, match="size: expected \\(height, width\\) in whole pixels, found"
    ):
        shapes((1, 3, -1, -1), bounds=BOUNDS).shape_for([(1, 1)], size)
