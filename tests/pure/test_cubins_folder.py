"""The folder of the disk cache: whose it is, and what is done where there is none to write to."""

from __future__ import annotations

import logging
import os
import pwd
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from trtpatch.compiler.cubins import Cubins, cache_root, key_of
from trtpatch.errors import CompileError

NOBODY = 65534
KEY = key_of("decode_mine", "sm_90", "text", "options", "13.5")
DATA = bytes(range(256)) * 64


@pytest.fixture
def folder() -> Iterator[Path]:
    """A new folder under one that every user may pass."""
    with tempfile.TemporaryDirectory() as parent:
        Path(parent).chmod(0o755)
        yield Path(parent) / "kernels"


@pytest.fixture
def ordinary_user() -> Iterator[int]:
    """A user whom file permissions bind; root drops to one for the test."""
    mine = os.geteuid()
    if mine == 0:
        os.seteuid(NOBODY)
    try:
        yield os.geteuid()
    finally:
        os.seteuid(mine)


def as_root(action: object) -> None:
    user = os.geteuid()
    if os.getuid() == 0:
        os.seteuid(0)
    try:
        action()  # type: ignore[operator]
    finally:
        os.seteuid(user)


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING]


def test_the_folder_and_its_files_are_private(folder: Path) -> None:
    path = Cubins(folder).put(KEY, DATA)
    assert path is not None
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777, 0o1777])
def test_a_folder_that_others_may_write_is_refused(mode: int, folder: Path) -> None:
    folder.mkdir()
    folder.chmod(mode)
    with pytest.raises(CompileError, match=r"can be written by others .* chmod 700"):
        Cubins(folder).get(KEY)
    folder.chmod(0o755)
    assert Cubins(folder).get(KEY) is None


@pytest.mark.parametrize("use", [lambda c: c.get(KEY), lambda c: c.put(KEY, b""), Cubins.list])
def test_a_folder_of_someone_else_is_refused(use: object, folder: Path, ordinary_user: int) -> None:
    foreign = Path("/usr")
    if os.getuid() == 0:
        as_root(folder.mkdir)
        foreign = folder
    with pytest.raises(CompileError, match=f"belongs to user 0, not to user {ordinary_user}"):
        use(Cubins(foreign))  # type: ignore[operator]


def assert_falls_back(cubins: Cubins, caplog: pytest.LogCaptureFixture) -> None:
    """It works all the same, for as long as it lives, and warned once."""
    other = key_of("select", "sm_90", "text")
    assert cubins.get(other) is None
    for key in (KEY, other):
        path = cubins.put(key, DATA)
        assert path is not None
        assert cubins.get(key).data == DATA  # type: ignore[union-attr]
    (warning,) = warnings(caplog)
    assert "TRTPATCH_CACHE" in warning
    spare = cubins.folder
    assert spare is not None
    assert stat.S_IMODE(spare.stat().st_mode) == 0o700
    assert spare in path.parents


def unknown_user(_: int) -> object:
    raise KeyError


@pytest.mark.parametrize("home", ["/dev/null/nobody", None])
def test_an_absent_home_falls_back(
    home: str | None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("TRTPATCH_CACHE", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    if home:
        monkeypatch.setenv("HOME", home)
    monkeypatch.setattr(pwd, "getpwuid", unknown_user)
    cubins = Cubins()
    assert_falls_back(cubins, caplog)
    spare = cubins.folder
    assert spare is not None
    del cubins
    assert not spare.exists()


def test_a_read_only_home_falls_back(
    folder: Path, ordinary_user: int, caplog: pytest.LogCaptureFixture
) -> None:
    as_root(lambda: folder.mkdir(mode=0o555))
    assert_falls_back(Cubins(folder / "trtpatch" / "kernels"), caplog)


def test_a_cache_that_became_read_only_is_still_read(
    folder: Path, ordinary_user: int, caplog: pytest.LogCaptureFixture
) -> None:
    as_root(lambda: folder.parent.chmod(0o777))
    kept = key_of("resize", "sm_90", "text")
    Cubins(folder).put(kept, DATA)
    folder.chmod(0o500)
    cubins = Cubins(folder)
    assert_falls_back(cubins, caplog)
    assert cubins.get(kept).data == DATA  # type: ignore[union-attr]
    folder.chmod(0o700)
    as_root(lambda: folder.parent.chmod(0o755))


def test_where_nothing_can_be_written_nothing_is_kept_and_nothing_fails(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/dev/null/tmp")
    cubins = Cubins(Path("/dev/null/kernels"))
    assert cubins.put(KEY, DATA) is None
    assert cubins.put(KEY, DATA) is None
    assert cubins.get(KEY) is None
    (warning,) = warnings(caplog)
    assert "not kept" in warning


def test_the_root_is_named_by_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    monkeypatch.delenv("TRTPATCH_CACHE", raising=False)
    for xdg in ("", "relative/cache"):
        monkeypatch.setenv("XDG_CACHE_HOME", xdg)
        assert cache_root() == Path("/home/ada/.cache/trtpatch")
    monkeypatch.setenv("XDG_CACHE_HOME", "/var/cache")
    assert cache_root() == Path("/var/cache/trtpatch")
    monkeypatch.setenv("TRTPATCH_CACHE", "/data/kernels")
    assert cache_root() == Path("/data/kernels")
