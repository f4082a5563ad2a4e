"""Where `trtpatch run` writes: pictures, JSON and the terminal, and what it never overwrites."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.command import invoke
from tests.full_disk import full_disk
from tests.recorded import HEIGHT, WIDTH, deny, write_recording


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return write_recording(tmp_path)


def test_save_draws_the_box(folder: Path) -> None:
    text = invoke("run", "p.yaml", "a.png", "--save", "new/out.png").stdout
    assert "a.png  64 x 32 px, 1 found -> new/out.png\n" in text
    assert "\ndog    0.750 " in text
    assert "1 not a number" in text
    with Image.open(folder / "new/out.png") as drawn:
        assert drawn.size == (WIDTH, HEIGHT)
        assert drawn.getpixel((40, 18)) != (60, 90, 30)
        assert drawn.getpixel((60, 2)) == (60, 90, 30)


@pytest.mark.parametrize(
    ("target", "files"),
    [
        ("out/", {"out/a.png", "out/b.png"}),
        ("out", {"out/a.png", "out/b.png"}),
        ("found_{name}.jpg", {"found_a.jpg", "found_b.jpg"}),
    ],
)
def test_save_several(folder: Path, target: str, files: set[str]) -> None:
    before = set(folder.rglob("*.*"))
    said = invoke("run", "p.yaml", "a.png", "b.png", "--save", target).stdout
    assert [line.partition(" (")[0] for line in said.splitlines()[1:]] == [
        "a.png: 1 dog",
        "b.png: 1 dog",
    ]
    new = set(folder.rglob("*.*")) - before
    assert {str(path.relative_to(folder)) for path in new} == files


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["a.png", "b.png", "--save", "out.png"], "one file for 2 pictures"),
        (["a.png", "--save", "a.png"], "would overwrite a picture that is read"),
        (["a.png", "b.png", "--save", "./"], "would overwrite a picture that is read"),
        (["a.png", "other/a.png", "--save", "out/"], "would hold both a.png and"),
        (["a.png", "--save", "out.txt"], "cannot be written as a picture"),
        (["a.png", "--json", "none/out.json"], "there is no such folder"),
        (["a.png", "--json", "-", "--jsonl", "-"], "cannot both print"),
        (["a.png", "--json", "."], "Is a directory"),
        (["empty"], "no picture in this folder"),
    ],
)
def test_a_target_that_cannot_be_is_refused(folder: Path, arguments: list[str], said: str) -> None:
    (folder / "empty").mkdir()
    (folder / "other").mkdir()
    (folder / "other/a.png").write_bytes((folder / "a.png").read_bytes())
    assert said in invoke("run", "p.yaml", *arguments, code=2).stderr


@pytest.mark.parametrize("target", ["tiny.npz", "labels.txt", "p.yaml"])
def test_what_the_pipeline_reads_is_not_overwritten(folder: Path, target: str) -> None:
    (folder / "labels.txt").write_text("cat\ndog\n")
    with (folder / "p.yaml").open("a") as file:
        file.write("labels: labels.txt\n")
    before = (folder / target).read_bytes()
    commands = [["run", "p.yaml", "a.png", "--json"], ["run", "p.yaml", "a.png", "--jsonl"]]
    if target.endswith(".npz"):
        commands.append(["record", "p.yaml", "a.png", "-o"])
    for command in commands:
        said = invoke(*command, target, code=2).stderr
        assert f"{target}: would overwrite a file that this run reads or writes" in said
    assert (folder / target).read_bytes() == before


@pytest.mark.parametrize("option", ["--json", "--jsonl"])
@pytest.mark.parametrize("target", ["a.png", "./p.yaml", "copy.png"])
def test_results_never_overwrite_a_file_of_the_run(folder: Path, option: str, target: str) -> None:
    before = {path: path.read_bytes() for path in folder.iterdir()}
    said = invoke("run", "p.yaml", "a.png", "--save", "copy.png", option, target, code=2).output
    assert f"{target}: would overwrite a file that this run reads or writes" in said
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


def test_two_results_in_one_file(folder: Path) -> None:
    said = invoke("run", "p.yaml", "a.png", "--json", "o", "--jsonl", "./o", code=2).output
    assert "o: would overwrite" in said
    invoke("run", "p.yaml", "a.png", "--json", "/dev/null", "--jsonl", "/dev/null")


@pytest.mark.parametrize(
    ("target", "said"),
    [
        (".", "Is a directory"),
        ("", "Is a directory"),
        ("nowhere/out", "there is no such folder"),
        ("n" * 300, "File name too long"),
    ],
)
def test_a_target_is_looked_at_before_anything_runs(folder: Path, target: str, said: str) -> None:
    for option in ("--json", "--jsonl"):
        result = invoke("run", "missing.yaml", "a.png", option, target, code=2)
        assert f"{target}: cannot be written: {said}" in result.output


@pytest.mark.parametrize(
    "arguments", [["n" * 300], ["a.png", "--save", "n" * 300 + ".png"], ["a.png", "--save", ""]]
)
def test_names_that_are_no_names(folder: Path, arguments: list[str]) -> None:
    said = invoke("run", "p.yaml", *arguments, code=2).output.splitlines()[-1]
    assert said.startswith("error: ")
    assert "trtpatch" not in said


@pytest.mark.parametrize("option", ["--json", "--jsonl"])
def test_a_full_disk_is_named(folder: Path, option: str) -> None:
    with full_disk():
        said = invoke("run", "p.yaml", "a.png", option, "out", code=2).output
    assert "error: out: cannot be written: File too large" in said


def test_a_picture_that_no_encoder_takes(folder: Path) -> None:
    Image.new("RGB", (70000, 1)).save("wide.png")
    np.savez("tiny.npz", **{**np.load("tiny.npz"), "sizes_0": np.int32([[1, 70000]])})
    said = invoke("run", "p.yaml", "wide.png", "--save", "wide.gif", code=2).output
    assert "wide.gif: cannot be written: " in said


def test_names_that_are_not_utf_8(folder: Path) -> None:
    name = os.fsdecode(b"caf\xe9.png")
    (folder / "a.png").rename(folder / name)
    invoke("run", "p.yaml", name)
    printed = invoke("run", "p.yaml", name, "--json", "-").stdout
    assert json.loads(printed)[0]["image"] == name
    for option in ("--json", "--jsonl"):
        invoke("run", "p.yaml", name, option, "out")
        assert json.loads((folder / "out").read_text().strip("[]\n"))["image"] == name


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_json_is_json_in_any_encoding(folder: Path, encoding: str) -> None:
    (folder / "p.yaml").write_text(
        "engine: {path: tiny.npz}\nexecutor: cpu\nlabels: [\u732b, \U0001f415]\n", encoding="utf-8"
    )
    environment = {**os.environ, "PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"}
    for form in ([], ["--json", "-"]):
        command = [sys.executable, "-m", "trtpatch", "run", "p.yaml", "a.png", *form]
        done = subprocess.run(command, env=environment, capture_output=True, check=True)
    assert json.loads(done.stdout)[0]["detections"][0]["name"] == "\U0001f415"


def test_standard_output_that_is_closed_or_full(folder: Path) -> None:
    command = f"{sys.executable} -m trtpatch run p.yaml a.png --json -"
    for redirect, said in (
        (">&-", "error: standard output is closed"),
        (">out", "error: standard output: File too large"),
    ):
        shell = ["sh", "-c", f"ulimit -f 0; {command} {redirect}"]
        done = subprocess.run(shell, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr.splitlines()[-1][: len(said)]) == (2, said)


def test_a_link_to_itself(folder: Path) -> None:
    (folder / "loop").symlink_to("loop")
    loop = "Too many levels of symbolic links"
    for arguments in (("p.yaml", "loop"), ("loop", "a.png"), ("p.yaml", "a.png", "--json", "loop")):
        assert loop in invoke("run", *arguments, code=2).output
    assert loop in invoke("run", "p.yaml", "loop", "--save", "copy.png", code=2).output


def test_a_folder_without_permission_is_told_before_anything_runs(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deny(folder.name, monkeypatch)
    for option in ("--json", "--jsonl"):
        said = invoke("run", "missing.yaml", "a.png", option, "out", code=2).output
        assert "out: cannot be written: Permission denied" in said
