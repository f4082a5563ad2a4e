"""`trtpatch cache`: what is listed and cleared."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.command import invoke
from trtpatch.compiler.cubins import Cubins, key_of
from trtpatch.keep import keep

PLAN = "yolox-nano-tensorrt_rtx-1.4.0.76-any-0123456789abcdef.plan"
FILES = (
    PLAN,
    f"{PLAN[:-5]}-1.4.0.76-NVIDIA-GeForce-RTX-4090-Laptop-GPU-0123456789abcdef.kernels",
    "mine-1.4.0.76-NVIDIA-H200-0123456789abcdef.kernels",
)
RTX = "tensorrt_rtx 1.4.0.76"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "cache"
    monkeypatch.setenv("TRTPATCH_CACHE", str(root))
    return root


@pytest.fixture
def filled(root: Path) -> Path:
    """Two kernels and three files of engines, each used an hour before the next."""
    cubins = Cubins()
    notes = {"compiler": "NVRTC 13.5.37"}
    files = [cubins.put(key_of("select_nms", "sm_90", "text"), bytes(100), notes=notes)]
    files.append(cubins.put(key_of("decode-mine", "host", "text"), bytes(100), suffix=".so"))
    (root / "engines").mkdir()
    files += [keep(root / "engines" / name, bytes(4096)) for name in FILES]
    (root / "engines" / "notes.txt").write_text("mine")
    for age, file in enumerate(files):
        assert file is not None
        os.utime(file, (1e9 - 3600 * age, 1e9 - 3600 * age))
    return root


def cache(*arguments: str, code: int = 0) -> str:
    return invoke("cache", *arguments, code=code).output


def test_the_list_names_each_file_the_last_used_first(filled: Path) -> None:
    rows = json.loads(cache("list", "--json"))
    fields = ("cache", "name", "target", "made_by")
    assert [tuple(row[field] for field in fields) for row in rows] == [
        ("kernels", "select_nms", "sm_90", "NVRTC 13.5.37"),
        ("kernels", "decode_mine", "host", ""),
        ("engines", "yolox-nano", "any", RTX),
        ("engines", "yolox-nano, compiled", "NVIDIA-GeForce-RTX-4090-Laptop-GPU", RTX),
        ("engines", "mine, compiled", "NVIDIA-H200", RTX),
    ]
    for row in rows:
        path = Path(row["path"])
        assert (row["size_bytes"], row["used"]) == (path.stat().st_size, path.stat().st_mtime)


def test_the_table_has_the_same_and_the_sum(filled: Path) -> None:
    text = cache("list")
    (row,) = (line for line in text.splitlines() if line.startswith("select_nms"))
    for part in ("sm_90", "NVRTC 13.5.37", "2001-09-0", "kernels"):
        assert part in row
    assert f"{filled}: 5 files, 12." in text


@pytest.mark.parametrize("which", ["kernels", "engines"])
def test_clear_removes_one_and_nothing_else(filled: Path, which: str) -> None:
    before = json.loads(cache("list", "--json"))
    mine = [row for row in before if row["cache"] == which]
    assert f"removed {len(mine)} files" in cache("clear", which)
    assert json.loads(cache("list", "--json")) == [row for row in before if row not in mine]
    assert cache("list", which) == f"{filled}: 0 files, 0 B\n"


def test_clear_removes_all_but_what_is_not_ours(filled: Path) -> None:
    assert "removed 5 files" in cache("clear")
    assert [file.name for file in filled.rglob("*.*")] == ["notes.txt"]


def test_an_empty_cache(root: Path) -> None:
    assert cache("list") == f"{root}: 0 files, 0 B\n"
    assert cache("clear") == f"{root}: removed 0 files, 0 B\n"


def test_a_folder_of_kernels_that_others_may_write_is_told(root: Path) -> None:
    (root / "kernels").mkdir(parents=True)
    (root / "kernels").chmod(0o777)
    for command in ("list", "clear"):
        assert "can be written by others" in cache(command, code=2)
    assert cache("list", "engines") == f"{root}: 0 files, 0 B\n"


def test_a_cache_that_is_none_is_told(root: Path) -> None:
    assert "'kernels', 'engines'" in cache("list", "kernel", code=2)


def test_common_options_may_stand_at_the_end(root: Path) -> None:
    assert cache("list", "--debug", "-v") == f"{root}: 0 files, 0 B\n"
