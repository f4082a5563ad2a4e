"""How arrays and files become frames, in every layout."""

import ctypes
import io
from dataclasses import replace
from types import SimpleNamespace

import cv2
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
LEVELS = np.arange(256, dtype=np.uint16).reshape(16, 16) * 257


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


@pytest.mark.parametrize("mode", ["L", "LA", "RGBA", "P", "CMYK", "1"])
def test_pixels_of_all_kinds_become_rgb_as_in_opencv(tmp_path, mode):
    path = tmp_path / f"picture.{'tif' if mode == 'CMYK' else 'png'}"
    pixels = np.random.default_rng(0).integers(0, 256, (30, 40, 3), dtype=np.uint8)
    Image.fromarray(pixels).convert(mode).save(path)
    expected = cv2.imread(str(path), cv2.IMREAD_COLOR)[..., ::-1]
    np.testing.assert_array_equal(read_image(path), expected)


@pytest.mark.parametrize("ending", ["png", "tif"])
def test_16_bits_of_gray_keep_their_upper_8(tmp_path, ending):
    path = tmp_path / f"gray.{ending}"
    Image.fromarray(LEVELS).save(path)
    expected = np.repeat((LEVELS >> 8).astype(np.uint8)[:, :, None], 3, axis=2)
    assert (read_image(path) == expected).all()


@pytest.mark.parametrize("dtype", [np.int32, np.float32])
def test_levels_of_no_known_range_are_refused(tmp_path, dtype):
    path = tmp_path / "levels.tif"
    Image.fromarray(LEVELS.astype(dtype)).save(path)
    with pytest.raises(InputError, match=r"levels.tif: .*its pixels are 32-bit numbers"):
        read_image(path)


def test_a_large_picture_is_read_and_a_larger_one_refused(tmp_path, monkeypatch):
    path = tmp_path / "large.png"
    Image.new("L", (50, 40)).save(path)
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 1500)  # above which Pillow warns
    assert read_image(path).shape == (40, 50, 3)
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 500)
    with pytest.raises(InputError, match=r"large\.png: the picture has more than 1,000 pixels"):
        read_image(path)


def test_a_file_on_which_a_decoder_gives_up_in_its_own_way(tmp_path):
    """Pillow's AVIF decoder raises RuntimeError, which its documentation does not have."""
    file = io.BytesIO()
    try:
        Image.new("RGB", (64, 64), (9, 80, 200)).save(file, "avif")
    except (KeyError, OSError):
        pytest.skip("this Pillow writes no AVIF")
    data = bytearray(file.getvalue())
    data[-len(data) // 8 :] = bytes(len(data) // 8 + 1)
    path = tmp_path / "damaged.avif"
    path.write_bytes(data.replace(b"av01", b"av02", 1))
    with pytest.raises(InputError, match=r"damaged\.avif: "):
        read_image(path)


def test_a_pillow_image_knows_its_channels(tmp_path):
    pixels = np.random.default_rng(0).integers(0, 256, (5, 7, 3), dtype=np.uint8)
    image = Image.fromarray(pixels)
    for layout in ("rgb", "bgr", "gray", "rgb-planar"):
        for same in (image, image.convert("RGBA")):
            (frame,) = as_frames(same, layout=layout)
            assert (frame.pixels == arrange(pixels, layout)).all()


def test_masked_pixels_are_not_taken_for_pixels():
    masked = np.ma.masked_greater(np.zeros((4, 6, 3), np.uint8), 1)
    with pytest.raises(InputError, match="image 2 of 2: a masked array"):
        as_frames([np.zeros((4, 6, 3), np.uint8), masked], layout="rgb")


@pytest.mark.parametrize(
    "attributes",
    [
        {"__array_interface__": 5},
        {"__array_interface__": {"shape": (4, 6, 3), "typestr": "zz", "version": 3}},
        {"__cuda_array_interface__": None},
        {"__cuda_array_interface__": {"typestr": "|u1"}},
        {"__cuda_array_interface__": {"shape": (4, 6, 3), "typestr": "|u1"}},
        {"__dlpack_device__": lambda: None},
        {"__dlpack_device__": lambda: (1, 0)},
    ],
)
def test_an_object_that_describes_its_memory_wrongly(attributes):
    with pytest.raises(InputError, match="image 1 of 1: SimpleNamespace cannot be taken as an arr"):
        as_frames(SimpleNamespace(**attributes), layout="rgb")


def test_lines_too_far_apart_for_a_kernel_are_copied():
    pixels = np.arange(4 * 6 * 3, dtype=np.uint8).reshape(4, 6, 3)
    far = np.lib.stride_tricks.as_strided(pixels, (1, 6, 3), (2**33, 3, 1))
    (frame,) = as_frames(far, layout="rgb")
    assert frame.pitch == 18
    assert (bytes_of(frame) == pixels[:1].reshape(1, -1)).all()
    wide = np.lib.stride_tricks.as_strided(pixels, (1, 2**30, 3), (0, 0, 0))
    with pytest.raises(InputError, match="more than 2147483647 bytes"):
        as_frames(wide, layout="rgb")
