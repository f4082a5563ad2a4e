"""The disk cache: one good entry whatever else writes, breaks or removes its files."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

from trtpatch.compiler.cubins import Cubins, key_of
from trtpatch.compiler.trailer import notes_of

KEY = key_of("decode_mine", "sm_90", "text", "options", "13.5")
DATA = bytes(range(256)) * 64


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "kernels"


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING]


def test_what_was_put_comes_back(folder: Path) -> None:
    cubins = Cubins(folder)
    assert not folder.exists()
    assert cubins.get(KEY) is None

    path = cubins.put(KEY, DATA, notes={"registers": 32})

    entry = Cubins(folder).get(KEY)
    assert entry is not None
    assert (entry.path, entry.data, entry.notes) == (path, DATA, {"registers": 32})
    assert (cubins.hits, cubins.misses) == (0, 1)


def test_files_are_named_for_people_and_start_with_the_compilers_bytes(folder: Path) -> None:
    Cubins(folder).put(KEY, DATA, suffix=".so")
    (file,) = folder.iterdir()
    assert file.name == f"decode_mine-sm_90-{KEY[-64:][:16]}.so"
    assert file.read_bytes().startswith(DATA)


def test_notes_are_read_off_the_end_of_a_file(folder: Path) -> None:
    path = Cubins(folder).put(KEY, DATA, notes={"compiler": "NVRTC 13.5"})
    assert path is not None
    assert notes_of(path) == {"compiler": "NVRTC 13.5"}
    for broken in (b"", DATA, path.read_bytes()[:-1], b"\xff" * 200):
        path.write_bytes(broken)
        assert notes_of(path) == {}
    assert notes_of(folder / "none") == {}


def test_suffixes_are_apart(folder: Path) -> None:
    cubins = Cubins(folder)
    cubins.put(KEY, b"cubin")
    cubins.put(KEY, b"shared object", suffix=".so")
    assert cubins.get(KEY).data == b"cubin"  # type: ignore[union-attr]
    assert cubins.get(KEY, suffix=".so").data == b"shared object"  # type: ignore[union-attr]


def test_every_part_decides_the_key_and_so_do_their_borders() -> None:
    keys = {
        key_of("decode", "sm_90", "text", "-O3"),
        key_of("decode", "sm_90", "text ", "-O3"),
        key_of("decode", "sm_90", "text", "-O2"),
        key_of("decode", "sm_80", "text", "-O3"),
        key_of("select", "sm_90", "text", "-O3"),
        key_of("decode", "sm_90", "text-O3"),
        key_of("decode", "sm_90", "text-", "O3"),
    }
    assert len(keys) == 7


def test_a_label_cannot_leave_the_folder(folder: Path) -> None:
    path = Cubins(folder).put(key_of("../../mine", "sm_90", "text"), DATA)
    assert path is not None
    assert path.parent == folder


def test_non_ascii_paths_and_labels(folder: Path) -> None:
    cubins = Cubins(folder / "größe 検出")
    key = key_of("détection", "sm_90", "文\udcff")
    cubins.put(key, DATA, notes={"log": "文"})
    entry = cubins.get(key)
    assert entry is not None
    assert entry.notes == {"log": "文"}
    assert len(cubins.list()) == 1


BREAKS = {
    "empty": lambda packed: b"",
    "first byte gone": lambda packed: packed[1:],
    "last byte gone": lambda packed: packed[:-1],
    "half": lambda packed: packed[: len(packed) // 2],
    "no trailer": lambda packed: DATA,
    "longer": lambda packed: packed + b"\0",
    "bit in the data": lambda packed: bytes([packed[0] ^ 1]) + packed[1:],
    "bit in the notes": lambda packed: packed[:-60] + bytes([packed[-60] ^ 1]) + packed[-59:],
    "zeros": lambda packed: bytes(len(packed)),
}


@pytest.mark.parametrize("name", BREAKS)
def test_a_broken_entry_is_reported_once_dropped_and_replaced(
    name: str, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cubins = Cubins(folder)
    path = cubins.put(KEY, DATA)
    assert path is not None
    path.write_bytes(BREAKS[name](path.read_bytes()))

    assert cubins.get(KEY) is None
    assert cubins.get(KEY) is None
    (warning,) = warnings(caplog)
    assert str(path) in warning
    assert not path.exists()

    cubins.put(KEY, DATA)
    assert cubins.get(KEY).data == DATA  # type: ignore[union-attr]


def test_an_entry_under_anothers_name_is_not_served(folder: Path) -> None:
    cubins = Cubins(folder)
    other = cubins.put(key_of("decode_mine", "sm_90", "another text"), b"another kernel")
    path = cubins.put(KEY, DATA)
    assert path is not None
    assert other is not None
    other.replace(path)
    assert cubins.get(KEY) is None


START = """
import sys
from pathlib import Path
from trtpatch.compiler.cubins import Cubins
folder, key, rounds = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
sys.stdin.readline()
for _ in range(rounds):
    cubins = Cubins(folder)
    if (entry := cubins.get(key)) is None:
        cubins.put(key, bytes(100_000))
    else:
        assert entry.data == bytes(100_000)
    if rounds > 1:
        for stored in cubins.list():
            stored.path.unlink(missing_ok=True)
"""


def start_eight(folder: Path, *, rounds: int) -> list[str]:
    """Eight processes that start together; what they wrote to stderr."""
    command = [sys.executable, "-c", START, str(folder), KEY, str(rounds)]
    pipes = {"stdin": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    processes = [subprocess.Popen(command, **pipes) for _ in range(8)]  # type: ignore[call-overload]
    for process in processes:
        process.stdin.write("\n")
        process.stdin.flush()
    return [process.communicate()[1] for process in processes]


def test_eight_processes_on_an_empty_cache_leave_one_good_entry(folder: Path) -> None:
    assert start_eight(folder, rounds=1) == [""] * 8
    (file,) = folder.iterdir()
    entry = Cubins(folder).get(KEY)
    assert entry is not None
    assert (entry.path, entry.data) == (file, bytes(100_000))


def test_entries_that_vanish_under_eight_processes_are_misses(folder: Path) -> None:
    assert start_eight(folder, rounds=40) == [""] * 8
    assert not [file for file in folder.iterdir() if file.suffix == ".part"]


def test_the_least_recently_used_goes_first(folder: Path) -> None:
    cubins = Cubins(folder, max_bytes=3 * 1200)
    keys = [key_of("decode", "sm_90", str(number)) for number in range(4)]
    for age, key in zip((300, 200, 100), keys[:3], strict=True):
        path = cubins.put(key, bytes(1000))
        assert path is not None
        os.utime(path, (path.stat().st_atime - age, path.stat().st_mtime - age))
    assert cubins.get(keys[0])

    cubins.put(keys[3], bytes(1000))

    assert [bool(cubins.get(key)) for key in keys] == [True, False, True, True]
    assert sum(stored.size_bytes for stored in cubins.list()) <= 3 * 1200


def test_an_entry_larger_than_the_bound_is_served_all_the_same(folder: Path) -> None:
    cubins = Cubins(folder, max_bytes=10)
    cubins.put(KEY, DATA)
    assert cubins.get(KEY)


def test_what_is_no_entry_is_left_alone(folder: Path) -> None:
    cubins = Cubins(folder, max_bytes=1)
    folder.mkdir(mode=0o700)
    (folder / "notes.txt").write_text("mine")
    for key in (KEY, key_of("select_mine", "sm_90")):
        cubins.put(key, DATA)
    assert [stored.label for stored in cubins.list()] == ["select_mine-sm_90"]
    assert (folder / "notes.txt").read_text() == "mine"


def test_what_a_killed_process_left_half_written_goes_in_time(folder: Path) -> None:
    cubins = Cubins(folder)
    cubins.put(KEY, DATA)
    old, new = folder / ".a.part", folder / ".b.part"
    for part in (old, new):
        part.write_bytes(b"half")
    os.utime(old, (0, 0))
    cubins.list()
    assert (old.exists(), new.exists()) == (False, True)
