"""What a pipeline is called with: arrays in host or device memory, and image files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from trtpatch.errors import InputError

Color = Literal["rgb", "bgr"]


class Frame(NamedTuple):
    """One picture whose pixels lie row by row.

    Attributes:
        pixels: `[H, W, 3]` uint8 NumPy array, or whatever owns the device memory.
        address: of the first byte.
        height, width: in pixels.
        pitch: bytes from one row to the next.
        on_device: whether `address` is in GPU memory.
    """

    pixels: Any
    address: int
    height: int
    width: int
    pitch: int
    on_device: bool = False


def as_frames(images: Any, *, color: Color) -> list[Frame]:
    """Take one picture, or a list of them.

    Args:
        images: a path, an array `[H, W, 3]` uint8 with `__array_interface__`,
            `__cuda_array_interface__` or `__dlpack__`, or a list or tuple of these.
        color: channel order of arrays; files are brought to the same order.

    Raises:
        InputError: a picture is missing, broken or of another shape or type.
    """
    many = images if isinstance(images, (list, tuple)) else [images]
    return [_as_frame(image, color, index, len(many)) for index, image in enumerate(many)]


def read_image(path: Path, *, color: Color) -> np.ndarray[Any, Any]:
    """Read an image file as `[H, W, 3]` uint8, turned upright as its EXIF data says.

    Raises:
        InputError: the file is missing, empty, truncated or no image.
    """
    from PIL import Image, ImageOps, UnidentifiedImageError

    try:
        if path.stat().st_size == 0:
            raise InputError(f"{path}: the file is empty; expected an image")
        with Image.open(path) as image:
            upright = ImageOps.exif_transpose(image)
            pixels = np.asarray(upright.convert("RGB"))
    except UnidentifiedImageError:
        raise InputError(f"{path}: not an image that Pillow can read") from None
    except Image.DecompressionBombError as error:
        raise InputError(f"{path}: {error}") from None
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except (OSError, SyntaxError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{path}: the image cannot be read: {reason}") from None
    return pixels if color == "rgb" else np.ascontiguousarray(pixels[:, :, ::-1])


def _as_frame(image: Any, color: Color, index: int, count: int) -> Frame:
    place = f"image {index + 1} of {count}"
    if isinstance(image, (str, os.PathLike)):
        return _host_frame(read_image(Path(image), color=color), place)
    if isinstance(image, np.ndarray):
        return _host_frame(image, place)
    if hasattr(image, "__cuda_array_interface__"):
        return _device_frame(image, image.__cuda_array_interface__, place)
    if hasattr(image, "__array_interface__"):
        return _host_frame(np.asarray(image), place)
    if hasattr(image, "__dlpack_device__"):
        return _from_dlpack(image, place)
    raise InputError(
        f"{place}: expected a path or an array [height, width, 3] of uint8,"
        f" found {type(image).__name__}"
    )


def _host_frame(pixels: np.ndarray[Any, Any], place: str) -> Frame:
    _check(pixels.shape, pixels.dtype.str, place)
    pitch, rows_are_dense = pixels.strides[0], pixels.strides[1:] == (3, 1)
    if not rows_are_dense or pitch < pixels.shape[1] * 3:
        pixels = np.ascontiguousarray(pixels)
        pitch = pixels.shape[1] * 3
    address = pixels.__array_interface__["data"][0]
    return Frame(pixels, address, pixels.shape[0], pixels.shape[1], pitch)


def _device_frame(owner: Any, interface: dict[str, Any], place: str) -> Frame:
    shape, strides = tuple(interface["shape"]), interface.get("strides")
    _check(shape, interface["typestr"], place)
    strides = tuple(strides) if strides else (shape[1] * 3, 3, 1)
    if strides[1:] != (3, 1) or strides[0] < shape[1] * 3:
        raise InputError(
            f"{place}: an array in GPU memory needs dense rows; found strides {strides}."
            " Make it contiguous first"
        )
    return Frame(owner, interface["data"][0], shape[0], shape[1], strides[0], on_device=True)


def _from_dlpack(image: Any, place: str) -> Frame:
    device_type = int(image.__dlpack_device__()[0])
    if device_type == 1:
        return _host_frame(np.from_dlpack(image), place)
    if device_type != 2:
        raise InputError(f"{place}: expected CPU or CUDA memory, found DLPack device {device_type}")
    import cupy

    array = cupy.from_dlpack(image)
    return _device_frame(array, array.__cuda_array_interface__, place)


def _check(shape: Sequence[int], typestr: str, place: str) -> None:
    if typestr == "|u1" and len(shape) == 3 and shape[2] == 3 and 0 not in shape:
        return
    found = f"{np.dtype(typestr).name} {list(shape)}"
    expected = f"{place}: expected [height, width, 3] uint8, found {found}"
    if len(shape) == 4:
        raise InputError(f"{expected}. Give a batch as a list of pictures")
    if 0 in shape:
        raise InputError(f"{place}: the picture is empty: {found}")
    raise InputError(expected)
