"""How arrays and files become frames, in every layout."""

import ctypes
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

from tests.patch_runs import read
from trtpatch.errors import InputError, MatchError
from trtpatch.frame import arrange, as_frames, read_image
from trtpatch.spec.ports import FRAME_LAYOUTS
from trtpatch.verify import Case, plan_case

SHAPES = {
    "rgb": (4, 6, 3),
    "bgr": (4, 6, 3),
    "gray": (4, 6),
    "nv12": (6, 6),
    "rgb-planar": (3, 4, 6),
    "bgr-planar": (3, 4, 6),
}


def bytes_of(frame):
    """What lies at the frame's address, line by line."""
    size = frame.pitch * (frame.lines - 1) + frame.line_bytes
    memory = np.frombuffer((ctypes.c_uint8 * size).from_address(frame.address), np.uint8)
    lines = range(0, frame.pitch * frame.lines, frame.pitch)
    return np.stack([memory[start : start + frame.line_bytes] for start in lines])


@pytest.mark.parametrize("layout", FRAME_LAYOUTS)
def test_arrays_dense_and_with_pitch(layout):
    shape = SHAPES[layout]
    pixels = np.arange(np.prod(shape), dtype=np.uint8).reshape(shape)
    (dense,) = as_frames(pixels, layout=layout)
    assert (dense.height, dense.width) == (4, 6)
    assert dense.address == pixels.ctypes.data
    assert dense.pitch == dense.line_bytes
    assert (bytes_of(dense) == pixels.reshape(dense.lines, -1)).all()

    axis = 1 if layout in ("rgb", "bgr") else -1
    wide = np.zeros([n + 5 if i == axis % len(shape) else n for i, n in enumerate(shape)], np.uint8)
    inner = wide[:, 2:-3] if axis == 1 else wide[..., 2:-3]
    inner[...] = pixels
    (pitched,) = as_frames(inner, layout=layout)
    assert pitched.address == inner.ctypes.data
    assert pitched.pitch > pitched.line_bytes
    assert (bytes_of(pitched) == bytes_of(dense)).all()

    for strided in (pixels[::-1], pixels.repeat(2, axis=1)[:, ::2]):
        (frame,) = as_frames(strided, layout=layout)
        assert (bytes_of(frame) == strided.reshape(frame.lines, -1)).all()


@pytest.mark.parametrize(
    ("layout", "shape", "expected"),
    [
        ("rgb", (4, 6), r"expected \[height, width, 3\] uint8, found uint8 \[4, 6\]"),
        ("gray", (4, 6, 3), r"expected \[height, width\] uint8"),
        ("nv12", (5, 6), r"expected \[height \* 3 / 2, width\]"),
        ("nv12", (6, 5), "height and width even"),
        ("rgb-planar", (4, 6, 3), r"expected \[3, height, width\]"),
        ("gray", (0, 6), "the picture is empty"),
        ("rgb", (1, 4, 6, 3), "Give a batch as a list"),
    ],
)
def test_an_array_of_another_shape(layout, shape, expected):
    with pytest.raises(InputError, match=expected):
        as_frames(np.zeros(shape, np.uint8), layout=layout)


def test_files_come_in_the_layout(tmp_path):
    pixels = np.random.default_rng(0).integers(0, 256, (5, 7, 3), dtype=np.uint8)
    path = tmp_path / "photo.png"
    Image.fromarray(pixels).save(path)
    assert (read_image(path) == pixels).all()
    for layout, expected in {
        "rgb": pixels,
        "bgr": pixels[:, :, ::-1],
        "gray": np.asarray(Image.fromarray(pixels).convert("L")),
        "rgb-planar": pixels.transpose(2, 0, 1),
        "bgr-planar": pixels[:, :, ::-1].transpose(2, 0, 1),
    }.items():
        (frame,) = as_frames(path, layout=layout)
        assert (frame.pixels == expected).all()
        assert (arrange(pixels, layout) == expected).all()
    with pytest.raises(InputError, match="takes NV12, in which image files are not"):
        as_frames(path, layout="nv12")


def test_a_patch_says_which_layouts_it_reads():
    patch = read("resize_letterbox")
    spec = patch.spec.model_copy(update={"frames": ("rgb", "gray")})
    images = {"frame_images": [np.zeros((4, 6, 3), np.uint8)]}
    case = Case("bgr", images, shapes={"image": (1, 3, 8, 8)}, frame="bgr")
    with pytest.raises(MatchError, match="takes frames that are rgb or gray; these are bgr"):
        plan_case(replace(patch, spec=spec), case)


def test_an_array_on_the_gpu_names_its_stream():
    interface = {"shape": (4, 6, 3), "typestr": "|u1", "data": (4096, False), "version": 3}
    for named in ({"stream": 1}, {"stream": None}, {}):
        image = SimpleNamespace(__cuda_array_interface__={**interface, **named})
        (frame,) = as_frames(image, layout="rgb")
        assert (frame.on_device, frame.address, frame.pitch) == (True, 4096, 18)
        assert frame.stream == named.get("stream")
