"""A text file of class names: each line is a class, whatever wrote it."""

from pathlib import Path

import pytest

from trtpatch.classnames import read_labels
from trtpatch.errors import SpecError
from trtpatch.spec import yamlfile


def read(folder: Path, content: bytes, name: str = "labels.txt") -> tuple[str, ...]:
    (folder / "labels.txt").write_bytes(content)
    document = yamlfile.parse(f"labels: {name}", file="p.yaml")
    return read_labels(document, name, folder)


@pytest.mark.parametrize(
    ("content", "names"),
    [
        (b"cat\ndog\n", ("cat", "dog")),
        (b"cat\r\ndog", ("cat", "dog")),
        (b"\xef\xbb\xbfcat\ndog\n\n \n", ("cat", "dog")),  # as some editors write UTF-8
        ("r\u00f8d hund\n".encode(), ("r\u00f8d hund",)),
        (b"cat\rdog\r", ("cat", "dog")),
        ("a\u2028b\x0cc\nd\x85e\n".encode(), ("a\u2028b\x0cc", "d\x85e")),
    ],
)
def test_one_name_a_line(tmp_path: Path, content: bytes, names: tuple[str, ...]) -> None:
    assert read(tmp_path, content) == names


@pytest.mark.parametrize(
    ("content", "name", "said"),
    [
        (b"cat\n\ndog\n", "labels.txt", "line 2 is empty, and each class has a line"),
        (b"\ncat\n", "labels.txt", "line 1 is empty"),
        (b"\n \n", "labels.txt", "there is no name in it"),
        (b"", "labels.txt", "there is no name in it"),
        (b"\xff\xfec\0a\0t\0", "labels.txt", "not text in UTF-8"),
        (b"x" * (yamlfile.MAX_BYTES + 1), "labels.txt", "no list of class names"),
        (b"", "/dev/zero", "larger than 1048576 bytes"),
        (b"", "n" * 300, "File name too long"),
        (b"", ".", "Is a directory"),
    ],
)
def test_what_is_no_list_of_names(tmp_path: Path, content: bytes, name: str, said: str) -> None:
    with pytest.raises(SpecError, match=f"^p.yaml:1:9: labels file .* cannot be read: .*{said}"):
        read(tmp_path, content, name)
