"""What a pipeline is called with: arrays in host or device memory, and image files."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from trtpatch.errors import InputError
from trtpatch.spec.ports import FrameLayout

if TYPE_CHECKING:
    from PIL.Image import Image

_SHAPES: dict[FrameLayout, str] = {
    "rgb": "[height, width, 3]",
    "bgr": "[height, width, 3]",
    "gray": "[height, width]",
    "nv12": "[height * 3 / 2, width], height and width even,",
    "rgb-planar": "[3, height, width]",
    "bgr-planar": "[3, height, width]",
}
_ABSENT: Any = object()
_LUMA = np.array([19595, 38470, 7471], np.int32)
"""Parts of red, green and blue in 65536 of gray, as Pillow has them."""
_MOST = 2**31 - 1
"""Pixels, lines and bytes of a line that a frame's sizes can tell."""


class Frame(NamedTuple):
    """One picture whose bytes lie line by line.

    Attributes:
        pixels: uint8 NumPy array of the layout's shape, or whatever owns the device memory.
        address: of the first byte.
        height, width: in pixels.
        pitch: bytes from one line to the next.
        lines: how many there are: the height, or more where channels lie one after the other.
        line_bytes: those of a line that mean something.
        on_device: whether `address` is in GPU memory.
        stream: CUDA stream on which that memory is being written, as far as its owner tells.
    """

    pixels: Any
    address: int
    height: int
    width: int
    pitch: int
    lines: int
    line_bytes: int
    on_device: bool = False
    stream: int | None = None


def as_frames(images: Any, *, layout: FrameLayout) -> list[Frame]:
    """Take one picture, or a list of them.

    Args:
        images: a path, a Pillow image, a uint8 array with `__array_interface__`,
            `__cuda_array_interface__` or `__dlpack__`, or a list or tuple of these.
        layout: how the bytes of arrays lie; files and Pillow images are brought to it.

    Raises:
        InputError: a picture is missing, broken or of another shape or type.
    """
    many = images if isinstance(images, (list, tuple)) else [images]
    return [_as_frame(image, layout, index, len(many)) for index, image in enumerate(many)]


def arrange(pixels: np.ndarray[Any, Any], layout: FrameLayout) -> np.ndarray[Any, Any]:
    """Bring a picture to a layout.

    Args:
        pixels: `[H, W, 3]` uint8 RGB.
        layout: wanted.

    Raises:
        InputError: it is NV12, which takes more to know than the pixels.
    """
    if layout == "rgb":
        return pixels
    if layout == "bgr":
        return np.ascontiguousarray(pixels[:, :, ::-1])
    if layout == "gray":
        gray: np.ndarray[Any, Any] = ((pixels @ _LUMA + 0x8000) >> 16).astype(np.uint8)
        return gray
    if layout == "nv12":
        raise InputError("the pipeline takes NV12, in which image files are not; give it arrays")
    return np.ascontiguousarray(pixels.transpose(2, 0, 1)[:: 1 if layout == "rgb-planar" else -1])


def read_image(path: Path) -> np.ndarray[Any, Any]:
    """Read an image file as `[H, W, 3]` uint8 RGB, turned upright as its EXIF data says.

    Raises:
        InputError: the file is missing, empty, truncated, no image, or so large that Pillow takes
            it for an attack.
    """
    from PIL import Image, ImageOps, UnidentifiedImageError

    try:
        if path.stat().st_size == 0:
            raise InputError(f"{path}: the file is empty; expected an image")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of large pictures, which are read, and of odd tags
            with Image.open(path) as image:
                return _rgb(ImageOps.exif_transpose(image), image.format)
    except InputError:
        raise
    except Image.DecompressionBombError:
        most = 2 * (Image.MAX_IMAGE_PIXELS or 0)
        raise InputError(
            f"{path}: the picture has more than {most:,} pixels, which files are read up to. Scale"
            " it down, or give it as an array"
        ) from None
    except UnidentifiedImageError:
        raise InputError(f"{path}: not an image that Pillow can read") from None
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except Exception as error:  # what decoders raise on a damaged file is not documented
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise InputError(f"{path}: the image cannot be read: {reason}") from None


def _rgb(image: Image, file_format: str | None) -> np.ndarray[Any, Any]:
    """`[H, W, 3]` uint8; of 16-bit gray levels, the upper 8 bits.

    Raises:
        ValueError: its levels have no range that is known.
    """
    if image.mode.startswith("I;16") or (image.mode, file_format) == ("I", "PNG"):
        gray = (np.asarray(image) >> 8).astype(np.uint8)
        return np.repeat(gray[:, :, None], 3, axis=2)
    if image.mode in ("I", "F"):  # Pillow would cut them off at 255
        raise ValueError("its pixels are 32-bit numbers; bring them to 8 bits first")
    return np.asarray(image.convert("RGB"))


def _as_frame(image: Any, layout: FrameLayout, index: int, count: int) -> Frame:
    place = f"image {index + 1} of {count}"
    if isinstance(image, np.ndarray):
        if isinstance(image, np.ma.MaskedArray):
            raise InputError(f"{place}: a masked array; give one without, such as image.filled(0)")
        return _host_frame(np.asarray(image), layout, place)
    try:
        return _other_frame(image, layout, place)
    except InputError:
        raise
    except Exception as error:  # its own code, or its description of its memory, fails
        what = f"{type(image).__name__} cannot be taken as an array"
        raise InputError(f"{place}: {what}: {type(error).__name__}: {error}") from error


def _other_frame(image: Any, layout: FrameLayout, place: str) -> Frame:
    """Take a path or an object of another library; those on the GPU first, who are in haste."""
    interface = getattr(image, "__cuda_array_interface__", _ABSENT)
    if interface is not _ABSENT:
        return _device_frame(image, interface, layout, place)
    if isinstance(image, (str, os.PathLike)):
        return _host_frame(arrange(read_image(Path(image)), layout), layout, place)
    if type(image).__module__.startswith("PIL."):  # it knows its own channels
        return _host_frame(arrange(_rgb(image, None), layout), layout, place)
    if hasattr(image, "__array_interface__"):
        return _host_frame(np.asarray(image), layout, place)
    if hasattr(image, "__dlpack_device__"):
        return _from_dlpack(image, layout, place)
    raise InputError(
        f"{place}: expected a path or an array {_SHAPES[layout]} of uint8,"
        f" found {type(image).__name__}"
    )


def _host_frame(pixels: np.ndarray[Any, Any], layout: FrameLayout, place: str) -> Frame:
    sizes = _measure(pixels.shape, pixels.dtype.str, layout, place)
    pitch = _pitch(pixels.shape, pixels.strides, layout)
    if max(sizes) > _MOST:
        raise InputError(f"{place}: a side of the picture has more than {_MOST} bytes or lines")
    if not sizes[3] <= pitch <= _MOST:
        pixels = np.ascontiguousarray(pixels)
        pitch = sizes[3]
    height, width, lines, line_bytes = sizes
    address = pixels.__array_interface__["data"][0]
    return Frame(pixels, address, height, width, pitch, lines, line_bytes)


def _device_frame(owner: Any, interface: dict[str, Any], layout: FrameLayout, place: str) -> Frame:
    shape, strides = tuple(interface["shape"]), interface.get("strides")
    height, width, lines, line_bytes = _measure(shape, interface["typestr"], layout, place)
    pitch = _pitch(shape, tuple(strides), layout) if strides else line_bytes
    if not line_bytes <= pitch <= _MOST:
        raise InputError(
            f"{place}: an array in GPU memory needs dense rows; found strides {strides}."
            " Make it contiguous first"
        )
    address = interface["data"][0]
    stream = interface.get("stream")
    return Frame(owner, address, height, width, pitch, lines, line_bytes, True, stream)


def _from_dlpack(image: Any, layout: FrameLayout, place: str) -> Frame:
    device_type = int(image.__dlpack_device__()[0])
    if device_type == 1:
        return _host_frame(np.from_dlpack(image), layout, place)
    if device_type != 2:
        raise InputError(f"{place}: expected CPU or CUDA memory, found DLPack device {device_type}")
    import cupy

    array = cupy.from_dlpack(image)
    return _device_frame(array, array.__cuda_array_interface__, layout, place)


def _pitch(shape: Sequence[int], strides: Sequence[int], layout: FrameLayout) -> int:
    """Bytes from one line to the next; 0 where lines are not dense or not evenly spaced."""
    if layout in ("rgb", "bgr"):
        return strides[0] if strides[1:] == (3, 1) else 0
    if len(shape) == 2:
        return strides[0] if strides[1] == 1 else 0
    return strides[1] if strides[2] == 1 and strides[0] == shape[1] * strides[1] else 0


def _measure(
    shape: Sequence[int], typestr: str, layout: FrameLayout, place: str
) -> tuple[int, int, int, int]:
    """Height and width in pixels, lines, and bytes of a line."""
    if typestr == "|u1" and 0 not in shape:
        if len(shape) == 3:
            if shape[2] == 3 and layout in ("rgb", "bgr"):
                return shape[0], shape[1], shape[0], 3 * shape[1]
            if shape[0] == 3 and layout in ("rgb-planar", "bgr-planar"):
                return shape[1], shape[2], 3 * shape[1], shape[2]
        elif len(shape) == 2:
            lines, width = shape
            if layout == "gray":
                return lines, width, lines, width
            if layout == "nv12" and lines % 3 == 0 and width % 2 == 0:
                return lines // 3 * 2, width, lines, width
    found = f"{np.dtype(typestr).name} {list(shape)}"
    expected = f"{place}: expected {_SHAPES[layout]} uint8, found {found}"
    if len(shape) == 4:
        raise InputError(f"{expected}. Give a batch as a list of pictures")
    if 0 in shape:
        raise InputError(f"{place}: the picture is empty: {found}")
    raise InputError(expected)
