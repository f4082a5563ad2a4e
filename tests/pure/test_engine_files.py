"""What an engine file is, or is instead of one."""

import io
import os
import zipfile

import numpy as np
import pytest

from trtpatch.engines import open_engine
from trtpatch.engines.files import content_of, read_file, what_is
from trtpatch.errors import EngineError


def picture(kind: str) -> bytes:
    from PIL import Image

    buffer = io.BytesIO()
    Image.new("RGB", (40, 30), (200, 30, 90)).save(buffer, kind)
    return buffer.getvalue()


def archive(**members: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        for name, data in members.items():
            file.writestr(name.replace("__", "/"), data)
    return buffer.getvalue()


def one_array() -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, np.zeros(4, np.float32))
    return buffer.getvalue()


LFS_POINTER = (
    b"version https://git-lfs.github.com/spec/v1\n"
    b"oid sha256:8f2383e4dd3cfbb4553ea8718107fc0423210dc964f9f4280604804ed2552fa4\nsize 232589\n"
)

NOT_ENGINES = {
    "a JPEG picture": lambda: picture("JPEG"),
    "a PNG picture": lambda: picture("PNG"),
    "a GIF picture": lambda: picture("GIF"),
    "a BMP picture": lambda: picture("BMP"),
    "a WebP picture": lambda: picture("WEBP"),
    "git lfs pull": lambda: LFS_POINTER,
    "an HTML page": lambda: b"\n<!DOCTYPE html><html><body>404 Not Found</body></html>",
    "a zip archive": lambda: archive(model=b"x"),
    "a PyTorch checkpoint": lambda: archive(**{"best__data.pkl": b"x"}),
    "a gzip archive": lambda: b"\x1f\x8b\x08" + bytes(40),
    "an XML file": lambda: b"<?xml version='1.0'?><net name='model'/>",
    "a JSON file": lambda: b'{"model": 1}',
    "a text file": lambda: b"person\nbicycle\ncar\n",
    "a file of zeros": lambda: bytes(5000),
    "a single NumPy array": one_array,
    "something unknown that begins with fe": lambda: b"\xfe\xed\xfa\xce\x01\x02\x03\x04\x05",
}


@pytest.mark.parametrize("name", NOT_ENGINES)
@pytest.mark.parametrize("suffix", [".engine", ".onnx"])
@pytest.mark.parametrize("kind", ["auto", "ort", "recorded"])
def test_a_file_that_is_no_engine_is_named(tmp_path, name, suffix, kind):
    path = tmp_path / f"model{suffix}"
    path.write_bytes(NOT_ENGINES[name]())
    with pytest.raises(EngineError) as error:
        open_engine(path, gpu=False, kind=kind)
    assert str(error.value).startswith(str(path))
    assert name in str(error.value)


@pytest.mark.parametrize("size", range(1, 12))
def test_a_file_of_a_few_bytes_is_no_engine(tmp_path, size):
    for first in (b"\x08", b"f", b"P", b"\x00", b"{"):
        path = tmp_path / "short"
        path.write_bytes((first + b"trt\x00K\x03\x04\x12\x1a{")[:size])
        with pytest.raises(EngineError):
            open_engine(path, gpu=False)


def test_missing_empty_and_unreadable(tmp_path):
    with pytest.raises(EngineError, match="no such file"):
        read_file(tmp_path / "absent.onnx")
    (tmp_path / "link.onnx").symlink_to("nowhere.onnx")
    with pytest.raises(EngineError, match="link.onnx: a link to nowhere.onnx, where no file is$"):
        read_file(tmp_path / "link.onnx")
    with pytest.raises(EngineError, match="links.onnx: no such file$"):
        read_file(tmp_path / "links.onnx")
    with pytest.raises(EngineError, match="a folder"):
        read_file(tmp_path)
    (tmp_path / "empty.onnx").touch()
    with pytest.raises(EngineError, match="empty"):
        open_engine(tmp_path / "empty.onnx", gpu=False)
    if os.geteuid():
        (tmp_path / "locked").write_bytes(b"x")
        (tmp_path / "locked").chmod(0)
        with pytest.raises(EngineError, match="Permission denied"):
            read_file(tmp_path / "locked")


def test_kinds_that_can_run(assets):
    onnx = (assets / "models" / "yolox_nano_416.onnx").read_bytes()
    assert content_of(onnx) == "onnx"
    assert what_is(b"ftrt" + bytes(60)) == "a TensorRT plan"
    assert content_of(b"\x02\x00\x00\x00{}ftrt") == "plan"
    assert content_of(archive(**{"recording.npy": one_array()})) == "recorded"


def test_every_asset_is_told_apart(assets):
    for path in [*assets.glob("models/*.onnx"), *assets.glob("graphs/*.onnx")]:
        assert content_of(path.read_bytes()) == "onnx", path
    for path in assets.glob("images/*.jpg"):
        assert what_is(path.read_bytes()) == "a JPEG picture", path
