"""Reading engine files: what a file is, and where it is no engine, what it is instead."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from trtpatch.errors import EngineError

Content = Literal["onnx", "plan", "recorded", "other"]

ENDINGS = (".onnx", ".engine", ".plan", ".trt")
"""What names of engine files end in, mostly."""
PLAN_MAGICS = (b"ftrt", b"vtrt", b"ptrt")

_SIGNATURES: tuple[tuple[int, bytes, str], ...] = (
    (0, b"\xff\xd8\xff", "a JPEG picture"),
    (0, b"\x89PNG\r\n\x1a\n", "a PNG picture"),
    (0, b"GIF8", "a GIF picture"),
    (0, b"BM", "a BMP picture"),
    (8, b"WEBP", "a WebP picture"),
    (0, b"version https://git-lfs", "a Git LFS pointer: fetch the file itself with 'git lfs pull'"),
    (0, b"%PDF", "a PDF document"),
    (0, b"\x7fELF", "a program or shared library"),
    (0, b"MZ", "a Windows program or library"),
    (0, b"\x1f\x8b", "a gzip archive: unpack it first"),
    (0, b"\xfd7zXZ\x00", "an xz archive: unpack it first"),
    (0, b"7z\xbc\xaf", "a 7z archive: unpack it first"),
    (257, b"ustar", "a tar archive: unpack it first"),
    (4, b"TFL3", "a TensorFlow Lite model: export it to ONNX"),
    (0, b"\x89HDF\r\n", "an HDF5 file, such as a Keras model: export it to ONNX"),
    (0, b"GGUF", "a GGUF model"),
    (0, b"\x93NUMPY", "a single NumPy array"),
)
_ONNX_SECOND_TAGS = tuple(bytes([tag]) for tag in b"\x12\x1a\x22\x28\x32\x3a\x42\x72\xa2")
"""Tags that follow `ir_version` in an ONNX file: producer, domain, version, graph, opset, ..."""


def read_file(path: Path, *, most_bytes: int = -1) -> bytes:
    """The bytes of an engine file, or as many as wanted.

    Raises:
        EngineError: there is no such file, it cannot be read, or it is empty.
    """
    try:
        if path.exists() and not (path.is_file() or path.is_dir()):
            raise EngineError(f"{path}: a device or a pipe, not an engine file")
        with path.open("rb") as file:
            data = file.read(most_bytes)
    except FileNotFoundError:
        from trtpatch.spec.validate import nearest

        if path.is_symlink():
            raise EngineError(f"{path}: a link to {path.readlink()}, where no file is") from None
        near = nearest(path.name, siblings(path))
        raise EngineError(f"{path}: no such file{near and '.'}{near}") from None
    except IsADirectoryError:
        raise EngineError(f"{path}: a folder, not an engine file") from None
    except OSError as error:
        raise EngineError(f"{path}: cannot be read: {error.strerror or error}") from None
    if not data:
        raise EngineError(f"{path}: the file is empty; export or copy the model again")
    return data


def siblings(path: Path) -> list[str]:
    """Names of files in a file's folder that end as it does."""
    try:
        near = [one for one in path.parent.iterdir() if one.suffix == path.suffix]
        return sorted(one.name for one in near if one.exists())
    except OSError:
        return []


def is_engine(path: Path) -> bool:
    """Whether a file is an engine, by its name or its beginning."""
    if path.suffix in ENDINGS:
        return True
    try:
        return content_of(read_file(path, most_bytes=4096)) != "other"
    except EngineError:
        return False


def content_of(data: bytes) -> Content:
    """Who could run these bytes, judged by their beginning alone."""
    if data[:4] in PLAN_MAGICS or has_json_prefix(data):
        return "plan"
    if data[:4] == b"PK\x03\x04" and b".npy" in data[26:64]:
        return "recorded"
    if data[:1] == b"\x08" and b"\0" < data[1:2] < b"\x80" and data[2:3] in _ONNX_SECOND_TAGS:
        return "onnx"
    return "other"


def has_json_prefix(data: bytes) -> bool:
    """Whether four bytes of length and JSON text seem to come first."""
    return data[4:5] == b"{" and 2 <= int.from_bytes(data[:4], "little") < 1 << 24


def what_is(data: bytes) -> str:
    """Name what a file is, for an error message."""
    if data[:4] in PLAN_MAGICS:
        return "a TensorRT plan"
    if content_of(data) == "onnx":
        return "an ONNX file, or the beginning of one"
    if data[:4] == b"PK\x03\x04":
        if b"data.pkl" in data[:512]:
            return "a PyTorch checkpoint: export it to ONNX"
        if b".npy" in data[26:64]:
            return "a NumPy archive"
        return "a zip archive: unpack it first"
    for offset, magic, name in _SIGNATURES:
        if data[offset : offset + len(magic)] == magic:
            return name
    head = data[:512].lstrip().lower()
    if head.startswith((b"<!doctype html", b"<html")):
        return "an HTML page: the download went wrong"
    if head.startswith(b"<?xml"):
        return "an XML file"
    if head.startswith((b"{", b"[")):
        return "a JSON file"
    if not data.strip(b"\0"):
        return "a file of zeros: the copy or download did not finish"
    if all(byte >= 0x20 or byte in b"\t\r\n\f" for byte in data[:512]):
        return "a text file"
    return f"something unknown that begins with {data[:8].hex(' ')}"


def text_mode_undone(data: bytes) -> bytes:
    """The bytes as they were before a text-mode write turned each line feed into CR LF."""
    return data.replace(b"\r\n", b"\n")
