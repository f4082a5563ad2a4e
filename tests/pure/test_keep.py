"""How files are written: whole, through links, and never in the place of a device or a pipe."""

import os
import stat
import threading
from pathlib import Path

import pytest

from tests.full_disk import full_disk
from trtpatch.keep import keep


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path) -> None:
    file = keep(tmp_path / "a", b"old")
    with full_disk(), pytest.raises(OSError, match="File too large"):
        keep(file, b"new")
    assert file.read_bytes() == b"old"
    assert keep(file, b"new").read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [file]


def test_a_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("target")
    keep(tmp_path / "link", b"data")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_bytes() == b"data"


def test_a_pipe_is_written_to_and_stays(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()), daemon=True)
    reader.start()
    keep(pipe, b"data")
    reader.join(10)
    assert got == [b"data"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_the_umask_and_the_caller_say_who_may_read(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        open_to_group, private = keep(tmp_path / "a", b""), keep(tmp_path / "b", b"", mode=0o600)
    finally:
        os.umask(before)
    assert stat.S_IMODE(open_to_group.stat().st_mode) == 0o640
    assert stat.S_IMODE(private.stat().st_mode) == 0o600
