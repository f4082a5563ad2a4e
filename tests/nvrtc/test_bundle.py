"""A bundle gives the cubin of exactly what is loaded, or says what differs; it compiles nothing."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

import pytest

import trtpatch
from tests.nvrtc.units import ARGS, FILE, KERNEL, unit, unit_of
from trtpatch.compiler.bundle import MANIFEST, Bundle, write_bundle
from trtpatch.compiler.compile import compile_unit, cubin_for
from trtpatch.compiler.cubins import Cubins
from trtpatch.compiler.nvrtc import load
from trtpatch.errors import CompileError
from trtpatch.unit import Unit

ROOT = Path(trtpatch.__file__).parents[1]
ARCHS = ("sm_75", "sm_86")
OTHER = unit(KERNEL.replace("decode_mine", "select_mine"), name="select_mine")
OTHER = replace(OTHER, entries=("select_mine",))


@pytest.fixture(scope="session")
def cubins(tmp_path_factory: pytest.TempPathFactory) -> Cubins:
    return Cubins(tmp_path_factory.mktemp("home") / "kernels")


@pytest.fixture
def folder(tmp_path: Path, cubins: Cubins) -> Path:
    write(tmp_path / "bundle", [unit(), OTHER], cubins)
    return tmp_path / "bundle"


def write(folder: Path, units: list[Unit], cubins: Cubins, archs: tuple[str, ...] = ARCHS) -> None:
    write_bundle(
        folder,
        units,
        archs=archs,
        compile_unit=partial(cubin_for, cubins=cubins),
        pipeline="faces.yaml",
        plan={"batch": 1},
    )


def refused(folder: Path, wanted: Unit, arch: str = "sm_86") -> str:
    with pytest.raises(CompileError) as caught:
        Bundle.read(folder).cubin_for(wanted, arch=arch)
    return str(caught.value)


def edit(folder: Path, **changes: object) -> None:
    path = folder / MANIFEST
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


@pytest.mark.parametrize("arch", ARCHS)
def test_it_gives_what_was_compiled(folder: Path, arch: str) -> None:
    bundle = Bundle.read(folder)
    for one in (unit(), OTHER):
        assert bundle.cubin_for(one, arch=arch) == compile_unit(one, arch=arch)


def test_files_are_plain_cubins_and_as_readable_as_any_new_file(folder: Path) -> None:
    (folder / "plain").touch()
    expected = stat.S_IMODE((folder / "plain").stat().st_mode)
    files = list(folder.glob("*.cubin"))
    assert len(files) == 4
    for file in files:
        assert file.read_bytes().startswith(b"\x7fELF")
        assert stat.S_IMODE(file.stat().st_mode) == expected
    assert stat.S_IMODE((folder / MANIFEST).stat().st_mode) == expected


def test_the_manifest_says_what_the_cubins_are_of(folder: Path) -> None:
    manifest = json.loads((folder / MANIFEST).read_text())
    assert manifest["trtpatch"] == trtpatch.__version__
    assert manifest["compiler"] == f"NVRTC {load().release}"
    assert manifest["archs"] == list(ARCHS)
    assert manifest["plan"] == {"batch": 1}
    first, second = manifest["units"]
    assert (first["name"], second["name"]) == ("decode_mine", "select_mine")
    assert list(first["files"]) == ["Args of decode_mine", FILE]
    assert first["files"]["Args of decode_mine"] == second["files"]["Args of decode_mine"]
    assert first["files"][FILE] != second["files"][FILE]
    assert "--fmad=false" in first["options"]
    (use,) = first["cubins"]["sm_75"]["kernels"]
    assert use == asdict(compile_unit(unit(), arch="sm_75").kernels[0])


def test_the_same_unit_is_compiled_once(tmp_path: Path, cubins: Cubins) -> None:
    write(tmp_path, [unit(), OTHER, unit()], cubins)
    assert len(list(tmp_path.glob("*.cubin"))) == 4


def test_two_shapes_of_one_patch_are_both_there(tmp_path: Path, cubins: Cubins) -> None:
    narrow, wide = (
        unit_of(
            ARGS.replace("{", f"{{ static constexpr int N = {n};") + unit().text.removeprefix(ARGS)
        )
        for n in (1, 8)
    )
    write(tmp_path, [narrow, wide], cubins)
    for one in (narrow, wide):
        assert Bundle.read(tmp_path).cubin_for(one, arch="sm_75").arch == "sm_75"
    assert "Args of decode_mine (shapes and parameters)" in refused(tmp_path, unit())


def test_a_bundle_made_again_leaves_nothing_of_the_last_one(folder: Path, cubins: Cubins) -> None:
    for name in ("notes.txt", "own.cubin"):
        (folder / name).write_text("mine")
    write(folder, [unit(f"{KERNEL}// edited\n")], cubins, ("sm_75",))
    assert len(list(folder.glob("*-sm_*.cubin"))) == 1
    assert {path.name for path in folder.iterdir()} >= {"notes.txt", "own.cubin"}


# ---- What is refused.


def test_another_architecture_is_refused_with_those_that_are_there(folder: Path) -> None:
    said = refused(folder, unit(), "sm_90")
    assert said.startswith(f"{folder}: the bundle has kernels for sm_75, sm_86, and this GPU is")
    assert f"trtpatch compile faces.yaml --arch sm_75,sm_86,sm_90 -o {folder}" in said


@pytest.mark.parametrize(
    ("edited", "different"),
    [
        (unit(f"{KERNEL}// edited\n"), FILE),
        (unit_of(unit().text.replace("struct Args {", "struct Args { ")), "Args of decode_mine"),
        (unit(fast_math=True), "the compiler's options"),
        (unit(options=("--maxrregcount=32",)), "the compiler's options"),
        (replace(unit(), entries=("decode_mine", "two")), "which kernels are launched"),
        (unit_of(f'#line 1 "box.cuh"\n// new\n{unit().text}'), "box.cuh"),
    ],
)
def test_what_was_edited_since_is_named(folder: Path, edited: Unit, different: str) -> None:
    said = refused(folder, edited)
    assert said.startswith(f"{folder}: the bundle's decode_mine was made from something else")
    assert f"Different: {different}" in said
    assert "Make it again: trtpatch compile faces.yaml --arch sm_75,sm_86 -o" in said


def test_a_patch_that_is_not_there_is_named(folder: Path) -> None:
    said = refused(folder, unit(name="decode_nine"))
    assert "has no patch 'decode_nine', only decode_mine, select_mine" in said
    assert "Did you mean 'decode_mine'?" in said


def test_another_version_of_trtpatch_is_told(folder: Path) -> None:
    edit(folder, trtpatch="0.0.1")
    assert Bundle.read(folder).cubin_for(unit(), arch="sm_75").code
    said = refused(folder, unit(f"{KERNEL}// edited\n"))
    assert "decode_mine was made by trtpatch 0.0.1 from something else" in said
    assert f"is loaded here by trtpatch {trtpatch.__version__}. Different: {FILE}." in said


@pytest.mark.parametrize("break_it", [lambda d: d[:-1], lambda d: d + b"\0", lambda d: b""])
def test_a_damaged_file_is_refused(folder: Path, break_it: object) -> None:
    for file in folder.glob("decode_mine-sm_86-*"):
        file.write_bytes(break_it(file.read_bytes()))  # type: ignore[operator]
    assert "is damaged: its checksum is wrong. Make it again" in refused(folder, unit())
    assert Bundle.read(folder).cubin_for(unit(), arch="sm_75")


def test_a_missing_file_is_refused(folder: Path) -> None:
    for file in folder.glob("decode_mine-sm_86-*"):
        file.unlink()
    assert "cannot be read: No such file or directory. Make it again" in refused(folder, unit())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "cannot be read: No such file or directory. A bundle is made by 'trtpatch compile"),
        ("{", "is damaged"),
        ("[]", "a bundle of format None"),
        ('{"format": 99}', "a bundle of format 99"),
        ('{"format": 1}', "is damaged: KeyError"),
        ('{"format": 1, "trtpatch": "", "compiler": "", "pipeline": "", "archs": 3}', "is damaged"),
    ],
)
def test_a_manifest_that_is_none_is_told(folder: Path, text: str | None, said: str) -> None:
    path = folder / MANIFEST
    path.unlink() if text is None else path.write_text(text)
    with pytest.raises(CompileError, match="bundle") as caught:
        Bundle.read(folder)
    assert said in str(caught.value)


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path, cubins: Cubins) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(CompileError, match="cannot be written"):
        write(tmp_path / "file" / "bundle", [unit()], cubins)


def test_what_does_not_compile_leaves_the_old_bundle(folder: Path, cubins: Cubins) -> None:
    before = (folder / MANIFEST).read_bytes()
    with pytest.raises(CompileError, match="does not compile"):
        write(folder, [unit(KERNEL.replace("args.x", "args.z"))], cubins)
    assert (folder / MANIFEST).read_bytes() == before
    assert Bundle.read(folder).cubin_for(OTHER, arch="sm_86")


LOAD = f"""
import sys
from pathlib import Path
from types import SimpleNamespace
sys.path.insert(0, {str(ROOT)!r})
from trtpatch.compiler.bundle import Bundle
unit = SimpleNamespace(
    name="decode_mine", text={unit().text!r}, options=(), entries=("decode_mine",),
    fast_math=False, args_dtype=SimpleNamespace(itemsize=16),
)
print(len(Bundle.read(Path(sys.argv[1])).cubin_for(unit, arch=sys.argv[2]).code))
"""


def test_a_python_without_any_package_loads_it_and_another_ones_home_does_not_matter(
    folder: Path,
) -> None:
    command = [sys.executable, "-S", "-c", LOAD, str(folder)]
    cold = {"PATH": os.environ["PATH"], "HOME": "/dev/null/nobody"}
    done = subprocess.run([*command, "sm_86"], capture_output=True, text=True, env=cold)
    assert (done.stderr, int(done.stdout)) == ("", len(compile_unit(unit(), arch="sm_86").code))
    done = subprocess.run([*command, "sm_90"], capture_output=True, text=True, env=cold)
    assert done.stderr.splitlines()[-1].startswith("trtpatch.errors.CompileError: ")
