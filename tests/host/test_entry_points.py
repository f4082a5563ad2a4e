"""Patches of an installed package: a wheel that offers them by an entry point."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from trtpatch import builtin

ROOT = Path(__file__).parents[2]
METADATA = "Metadata-Version: 2.1\nName: more-patches\nVersion: 1.0\n"
WHEEL = "Wheel-Version: 1.0\nGenerator: by hand\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
RULE = """\
rules:
  - name: more
    outputs: {head: [N, A, 4 + C]}
    chain: [resize_letterbox, engine, decode_more, select_nms]
"""


def install(folder: Path, entry_point: str) -> Path:
    """A folder with the package `more_patches` installed in it, from a wheel."""
    wheel = folder / "more_patches-1.0-py3-none-any.whl"
    template = builtin.patches_folder() / "_template/decode_example"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("more_patches/__init__.py", 'raise SystemExit("it is not to be imported")')
        archive.writestr("more_patches/registry.yaml", RULE)
        for path in template.iterdir():
            if path.is_file():
                text = path.read_text().replace("decode_example", "decode_more")
                archive.writestr(f"more_patches/decode_more/{path.name}", text)
        info = "more_patches-1.0.dist-info"
        archive.writestr(f"{info}/METADATA", METADATA)
        archive.writestr(f"{info}/WHEEL", WHEEL)
        archive.writestr(f"{info}/entry_points.txt", f"[trtpatch.patches]\nmore = {entry_point}\n")
        names = [*archive.namelist(), f"{info}/RECORD"]
        archive.writestr(f"{info}/RECORD", "".join(f"{name},,\n" for name in names))
    target = folder / "installed"
    command = [sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-deps"]
    subprocess.run([*command, "--target", target, wheel], check=True, capture_output=True)
    return target


def trtpatch(target: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "trtpatch", *arguments],
        cwd=target,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(target), str(ROOT)]),
            "TRTPATCH_CACHE": str(target / ".kernels"),
        },
        capture_output=True,
        text=True,
    )


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install(tmp_path_factory.mktemp("package"), "more_patches")


def test_its_patches_and_rules_are_found(installed: Path) -> None:
    done = trtpatch(installed, "patches", "--json")
    assert done.returncode == 0, done.stderr
    (mine,) = [one for one in json.loads(done.stdout) if one["name"] == "decode_more"]
    assert Path(mine["contract"]).parent == installed / "more_patches/decode_more"
    done = trtpatch(installed, "patches", "--rules", "more")
    assert "decode_more" in done.stdout


def test_its_patches_are_checked_and_verified_by_name(installed: Path) -> None:
    done = trtpatch(installed, "check", "decode_more")
    assert done.returncode == 0, done.stdout
    assert "errors 0, warnings 0" in done.stdout
    done = trtpatch(installed, "verify", "decode_more", "--executor", "host", "--generate", "0")
    assert done.returncode == 0, done.stdout
    assert "7 passed, 0 failed, 0 skipped" in done.stdout


def test_an_entry_point_that_leads_nowhere_is_told_and_stops_nothing(tmp_path: Path) -> None:
    target = install(tmp_path, "no_such_package")
    done = trtpatch(target, "patches")
    assert done.returncode == 0
    assert "warning: entry point more of trtpatch.patches names 'no_such_package'" in done.stderr
    assert "decode_more" not in done.stdout
    shutil.rmtree(target)
