"""Which edits wake a watcher, in real files."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from trtpatch.watch import edits

pytest.importorskip("watchfiles")

_LONG_S = 20


class Watcher:
    """Collects edits in a thread of its own."""

    def __init__(self, *sources: Path, since: float) -> None:
        self.sources = list(sources)
        self._found: list[tuple[Path, ...]] = []
        self._some = threading.Condition()
        waiting = edits(lambda: self.sources, since=since)
        threading.Thread(target=self._collect, args=(waiting,), daemon=True).start()

    def _collect(self, waiting: Iterator[tuple[Path, ...]]) -> None:
        for found in waiting:
            with self._some:
                self._found.append(found)
                self._some.notify()

    def next(self) -> set[Path]:
        """The edits that were found since the last call; waits for some."""
        with self._some:
            assert self._some.wait_for(lambda: self._found, _LONG_S), "nothing was found"
            found = {path for group in self._found for path in group}
            self._found.clear()
        return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("pipeline.yaml", "patches/mine/patch.yaml", "patches/mine/kernel.cu", "photo.jpg"):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("old")
        os.utime(file, (1, 1))
    return tmp_path.resolve()


@pytest.fixture
def watcher(folder: Path) -> Watcher:
    """A watcher that is awake: it has found a first edit."""
    watcher = Watcher(folder / "pipeline.yaml", folder / "patches", since=time.time())
    (folder / "pipeline.yaml").write_text("first")
    assert watcher.next() == {folder / "pipeline.yaml"}
    return watcher


def assert_found(watcher: Watcher, path: Path) -> None:
    found: set[Path] = set()
    while path not in found:
        found |= watcher.next()


def rewrite(path: Path) -> None:
    path.write_text("new")


def replace(path: Path) -> None:
    """As editors save: a new file is put in the place of the old one."""
    new = path.with_name(f".{path.name}.part")
    new.write_text("new")
    new.replace(path)


@pytest.mark.parametrize("change", [rewrite, replace, Path.unlink])
@pytest.mark.parametrize("name", ["pipeline.yaml", "patches/mine/kernel.cu"])
def test_an_edit_is_found_however_it_is_made(
    folder: Path, watcher: Watcher, name: str, change: Callable[[Path], None]
) -> None:
    change(folder / name)
    assert folder / name in watcher.next()


def test_a_file_is_found_again_after_it_was_replaced(folder: Path, watcher: Watcher) -> None:
    for _ in range(3):
        replace(folder / "pipeline.yaml")
        assert watcher.next() == {folder / "pipeline.yaml"}


def test_what_does_not_matter_is_not_found(folder: Path, watcher: Watcher) -> None:
    for name in (
        "photo.jpg",
        "found.png",
        "patches/mine/.kernel.cu.swp",
        "patches/mine/kernel.cu~",
        "patches/mine/4913",
        "patches/mine/reference.pyc",
    ):
        (folder / name).write_text("new")
    (folder / "patches/mine/__pycache__").mkdir()
    (folder / "patches/mine/__pycache__/reference.cpython-310.pyc").write_text("new")
    time.sleep(0.5)
    (folder / "patches/mine/kernel.cu").write_text("new")
    assert watcher.next() == {folder / "patches/mine/kernel.cu"}


def test_a_new_patch_is_watched(folder: Path, watcher: Watcher) -> None:
    new = folder / "patches/other"
    new.mkdir()
    (new / "patch.yaml").write_text("new")
    assert watcher.next() & {new, new / "patch.yaml"}
    (new / "kernel.cu").write_text("new")
    assert_found(watcher, new / "kernel.cu")


def test_files_that_are_named_later_are_watched(folder: Path, watcher: Watcher) -> None:
    registry = folder / "deep" / "registry.yaml"
    registry.parent.mkdir()
    watcher.sources.append(registry)
    registry.write_text("rules")
    (folder / "pipeline.yaml").write_text("registry: deep/registry.yaml")
    assert folder / "pipeline.yaml" in watcher.next()
    registry.write_text("more rules")
    assert_found(watcher, registry)


def test_what_was_edited_before_the_first_look_is_found(folder: Path) -> None:
    since = time.time()
    (folder / "patches/mine/kernel.cu").write_text("new")
    watcher = Watcher(folder / "pipeline.yaml", folder / "patches", since=since)
    assert watcher.next() == {folder / "patches/mine/kernel.cu"}


def test_a_relative_path_and_a_link_are_followed(
    folder: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path_factory.mktemp("links")
    (elsewhere / "patches").symlink_to(folder / "patches")
    monkeypatch.chdir(folder)
    watcher = Watcher(Path("pipeline.yaml"), elsewhere / "patches", since=time.time())
    (folder / "pipeline.yaml").write_text("first")
    assert watcher.next() == {folder / "pipeline.yaml"}
    (folder / "patches/mine/kernel.cu").write_text("new")
    assert watcher.next() == {folder / "patches/mine/kernel.cu"}
