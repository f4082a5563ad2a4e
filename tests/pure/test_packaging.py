"""A wheel, made from the sdist and installed into an empty environment, finds what is built in."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path
from shutil import copytree, ignore_patterns

import pytest

ROOT = Path(__file__).parents[2]
LITTER = ignore_patterns(".*", "__pycache__", "build", "dist", "*.egg-info")


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist, and the wheel that was built from it."""
    folder = tmp_path_factory.mktemp("dist")
    source = copytree(ROOT, tmp_path_factory.mktemp("source") / "trtpatch", ignore=LITTER)
    run(sys.executable, "-m", "build", "--outdir", folder, source, cwd=folder)
    return folder


@pytest.fixture(scope="module")
def wheel(dist: Path) -> Path:
    return next(dist.glob("*.whl"))


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment that holds the wheel and its requirements alone."""
    folder = tmp_path_factory.mktemp("installed")
    venv.create(folder)
    python = folder / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    pip = (sys.executable, "-m", "pip", "--python", python)
    run(*pip, "install", "-q", "--no-compile", wheel, cwd=folder)
    return python


def run(*command: object, cwd: Path) -> str:
    # A PYTHONPATH that leads here would hide what is installed.
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    words = [str(word) for word in command]
    done = subprocess.run(words, cwd=cwd, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def files(folder: Path) -> set[str]:
    """Every file under `folder`, as the wheel should name it."""
    return {
        path.relative_to(ROOT).as_posix()
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_wheel_holds_the_package_the_patches_and_the_registry(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        held = {name for name in archive.namelist() if ".dist-info/" not in name}
    builtin = {f"trtpatch/_builtin/{name}" for name in files(ROOT / "patches") | {"registry.yaml"}}
    assert held == files(ROOT / "trtpatch") | builtin


def test_sdist_is_licensed(dist: Path) -> None:
    with tarfile.open(next(dist.glob("*.tar.gz"))) as archive:
        assert any(name.endswith("/LICENSE") for name in archive.getnames())


def test_installed_elsewhere_it_finds_the_registry(python: Path, tmp_path: Path) -> None:
    script = "from trtpatch import builtin; print(builtin.registry_file())"
    registry = Path(run(python, "-c", script, cwd=tmp_path).strip())
    assert registry.read_text("utf-8") == (ROOT / "registry.yaml").read_text("utf-8")
    assert python.parents[1] in registry.parents


def test_installed_elsewhere_it_lists_the_patches(python: Path, tmp_path: Path) -> None:
    listed = json.loads(run(python.with_name("trtpatch"), "patches", "--json", cwd=tmp_path))
    patches = sorted(path.parent.name for path in (ROOT / "patches").glob("[!_]*/patch.yaml"))
    assert [patch["name"] for patch in listed] == patches


def test_version_is_that_of_the_wheel(python: Path, wheel: Path, tmp_path: Path) -> None:
    version = run(python, "-m", "trtpatch", "--version", cwd=tmp_path).split()[-1]
    assert wheel.name == f"trtpatch-{version}-py3-none-any.whl"
