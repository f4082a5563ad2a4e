"""What exporters write along with a model: class names and strides."""

import json
import logging

import pytest

from trtpatch.engines.metadata import Metadata, json_prefix, read_metadata


@pytest.mark.parametrize(
    "names",
    [
        "{0: 'person', 1: 'bicycle', 2: 'car'}",  # as Ultralytics writes it into ONNX
        '{"0": "person", "1": "bicycle", "2": "car"}',
        "['person', 'bicycle', 'car']",
        {"0": "person", "1": "bicycle", "2": "car"},  # as JSON reads it in front of a plan
        {"2": "car", "0": "person", "1": "bicycle"},
        ["person", "bicycle", "car"],
    ],
)
def test_class_names_are_read_however_they_are_written(names):
    assert read_metadata({"names": names}).names == ("person", "bicycle", "car")


def test_a_missing_class_number_keeps_its_place():
    assert read_metadata({"names": "{0: 'a', 2: 'c'}"}).names == ("a", "1", "c")


@pytest.mark.parametrize("name", ["it's", 'a "quoted" one', "naïve 猫", "back\\slash", ""])
def test_names_of_any_letters_survive_the_prefix(name):
    prefix = json_prefix(Metadata(names=(name, "b")))
    assert read_metadata(json.loads(prefix[4:])).names == (name, "b")


@pytest.mark.parametrize(
    "names",
    [
        "__import__('os').system('false')",
        "{0: open('/etc/passwd')}",
        "{0: 'a'",
        "(" * 100_000,
        "x" * (2 << 20),
        "{999999999999: 'a'}",
        "{-1: 'a'}",
        "{'a': 'b'}",
        "12",
        "{}",
    ],
)
def test_text_that_is_no_list_of_names_is_kept_as_text_and_never_run(names, caplog):
    with caplog.at_level(logging.WARNING, "trtpatch"):
        metadata = read_metadata({"names": names})
    assert metadata.names == ()
    assert metadata.extra == {"names": names}
    assert "not understood" in caplog.text


@pytest.mark.parametrize(("stride", "expected"), [("32", 32), (32, 32), (32.0, 32), ("64.0", 64)])
def test_a_stride_is_read_however_it_is_written(stride, expected):
    assert read_metadata({"stride": stride}).stride == expected


@pytest.mark.parametrize("stride", ["[8, 16, 32]", "big", "nan", "inf", [8, 16], True, None])
def test_a_stride_that_is_no_whole_number_is_kept_as_text(stride):
    metadata = read_metadata({"stride": stride})
    assert metadata.stride is None
    assert "stride" in metadata.extra


def test_the_prefix_is_what_the_popular_exporter_writes():
    metadata = Metadata(names=("person", "car"), stride=32, extra={"task": "detect"})
    prefix = json_prefix(metadata)
    length = int.from_bytes(prefix[:4], byteorder="little", signed=True)
    assert length == len(prefix) - 4
    entries = json.loads(prefix[4 : 4 + length].decode("utf-8"))
    assert entries == {"task": "detect", "names": {"0": "person", "1": "car"}, "stride": 32}
    assert read_metadata(entries) == metadata


def test_without_metadata_there_is_no_prefix():
    assert json_prefix(Metadata()) == b""


@pytest.mark.parametrize("stride", ["0", "-32", "32.5", "inf", "nan", "1e400", "[8, 16]", True])
def test_what_is_no_stride_is_kept_as_it_is(stride):
    found = read_metadata({"stride": stride})
    assert found.stride is None
    assert "stride" in found.extra
