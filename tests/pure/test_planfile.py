"""A plan's file: its prefix, its header, and its damages."""

import json
import struct

import pytest

from trtpatch.engines import open_engine
from trtpatch.engines.planfile import Header, read_header, read_plan
from trtpatch.errors import EngineError


def plan(magic=b"vtrt", version=(1, 4, 0, 76), size=5000) -> bytes:
    """A plan as its header shows it; tests/rtx holds real ones against the same reader."""
    body = bytes(range(256)) * 40
    tag = magic if magic == b"vtrt" else b"rtrt"
    head = struct.pack("<4sIQQ4B4s", magic, 0, 2, size, *version, tag)
    return (head + body)[:size]


def prefixed(data: bytes, **entries) -> bytes:
    text = json.dumps(entries).encode()
    return struct.pack("<i", len(text)) + text + data


def write(tmp_path, data: bytes):
    path = tmp_path / "model.engine"
    path.write_bytes(data)
    return path


def test_the_header_tells_family_and_version():
    assert read_header(plan()) == Header("tensorrt_rtx", "1.4.0.76", 5000)
    assert read_header(plan(b"ftrt", (10, 16, 1, 11))) == Header("tensorrt", "10.16.1.11", 5000)
    assert str(read_header(plan())) == "TensorRT-RTX 1.4.0.76"


@pytest.mark.parametrize(
    ("data", "family"),
    [
        (b"ptrt" + bytes(100), "tensorrt"),  # before TensorRT 8.6; its header is another
        (b"ftrt" + bytes(100), "tensorrt"),
        (b"ftrt" + b"\xff" * 100, "tensorrt"),
        (b"ftrt", "tensorrt"),
        (b"abcd" + bytes(100), "unknown"),
        (b"", "unknown"),
    ],
)
def test_what_a_header_does_not_tell_is_unknown(data, family):
    header = read_header(data)
    assert (header.family, header.version, header.size) == (family, "unknown", 0)
    assert "unknown version" in str(header)


def test_the_exporters_prefix_is_skipped_and_read(tmp_path):
    names = {"0": "person", "1": "bicycle"}
    path = write(tmp_path, prefixed(plan(), names=names, stride=32, task="detect", batch=1))
    file = read_plan(path)
    assert file.plan == plan()
    assert file.metadata.names == ("person", "bicycle")
    assert file.metadata.stride == 32
    assert file.metadata.extra == {"task": "detect", "batch": "1"}


def test_a_plan_without_prefix_has_no_metadata(tmp_path):
    file = read_plan(write(tmp_path, plan()))
    assert (file.plan, bool(file.metadata)) == (plan(), False)


def test_a_prefix_before_something_else(tmp_path):
    with pytest.raises(EngineError, match="after the metadata is a JPEG picture"):
        read_plan(write(tmp_path, prefixed(b"\xff\xd8\xff\xe0" + bytes(90), names=["a"])))
    with pytest.raises(EngineError, match="after the metadata is nothing"):
        read_plan(write(tmp_path, prefixed(b"", names=["a"])))


def test_a_damaged_prefix(tmp_path):
    data = prefixed(plan(), names=["a"])
    with pytest.raises(EngineError, match=r"truncated: 20 bytes of length .* the file has 12"):
        read_plan(write(tmp_path, data[:12]))
    with pytest.raises(EngineError, match="JSON metadata in front of the plan is damaged"):
        read_plan(write(tmp_path, data.replace(b'"names":', b'"names"=')))


@pytest.mark.parametrize("lead", [b"", prefixed(b"", names=["a"])])
def test_a_truncated_plan(tmp_path, lead):
    with pytest.raises(EngineError, match="truncated: the plan has 4000 of 5000 bytes"):
        read_plan(write(tmp_path, lead + plan()[:4000]))


def test_a_plan_with_more_behind_it(tmp_path):
    with pytest.raises(EngineError, match="5000 bytes, but 5007 bytes are in the file"):
        read_plan(write(tmp_path, plan() + b"trailer"))


@pytest.mark.parametrize("lead", [b"", prefixed(b"", names=["a"])])
@pytest.mark.parametrize("size", [5000, 0x0A0A, 0x0D0A])
def test_a_plan_written_through_a_text_mode_file(tmp_path, lead, size):
    data = lead + plan(size=size)
    with pytest.raises(EngineError, match="text-mode write: each line feed has become CR LF"):
        read_plan(write(tmp_path, data.replace(b"\n", b"\r\n")))


def test_a_plan_read_through_a_text_mode_file(tmp_path):
    size = 1 << 20
    data = plan(size=size)[:32] + (bytes(65_533) + b"\n\r\n" + bytes(range(14, 200))) * 20
    data = data[:size]
    with pytest.raises(EngineError, match="no CR LF is left"):
        read_plan(write(tmp_path, data.replace(b"\r\n", b"\n")))


def test_a_plan_decoded_and_written_as_text(tmp_path):
    text = plan().decode("utf-8", errors="replace")
    with pytest.raises(EngineError, match="decoded and written as text"):
        read_plan(write(tmp_path, text.encode()))


@pytest.mark.parametrize("executor", [{"kind": "auto"}, {"kind": "trt"}])
def test_a_plan_without_a_gpu_executor(tmp_path, executor):
    with pytest.raises(
        EngineError, match=r"a plan built by TensorRT-RTX 1\.4\.0\.76 runs on a GPU"
    ):
        open_engine(write(tmp_path, plan()), gpu=False, **executor)


def test_a_plan_is_no_onnx_file(tmp_path):
    with pytest.raises(EngineError, match="not an ONNX file; it is a TensorRT plan"):
        open_engine(write(tmp_path, plan()), gpu=False, kind="ort")
