"""`run`, `check`, `inspect` and `record` on recorded outputs whose boxes are known by hand."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import trtpatch
from tests.command import invoke
from tests.full_disk import full_disk
from trtpatch.cli.tables import as_json
from trtpatch.engines import EngineInfo, Tensor
from trtpatch.engines.metadata import Metadata
from trtpatch.engines.recorded import RecordedFrame, save_recording
from trtpatch.errors import EngineError
from trtpatch.executors import gpu_found

ANCHORS, CLASSES = 21, 2
WIDTH, HEIGHT = 64, 32
"""Into 32 x 32 model pixels: half the size, 8 rows of padding at the top."""
FOUND = {
    "width": WIDTH,
    "height": HEIGHT,
    "detections": [{"box": [24.0, 12.0, 40.0, 20.0], "score": 0.75, "label": 1, "name": "dog"}],
    "counters": {
        "candidates": 2,
        "kept": 1,
        "dropped_topk": 0,
        "dropped_max": 0,
        "dropped_nan": 1,
    },
}


def head() -> np.ndarray:
    """A YOLOv8 head: a box, a worse one upon it, and one whose score is not a number."""
    out = np.zeros((1, 4 + CLASSES, ANCHORS), np.float32)
    out[0, :4, 3] = 16, 16, 8, 4
    out[0, 5, 3] = 0.75
    out[0, :4, 4] = 16, 16, 8, 4.5
    out[0, 5, 4] = 0.5
    out[0, 4, 9] = np.nan
    return out


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    info = EngineInfo(
        kind="ort",
        path="tiny.onnx",
        flavour="onnxruntime",
        version="1.0",
        inputs=(Tensor("images", "float32", (1, 3, 32, 32)),),
        outputs=(Tensor("output0", "float32", (1, 4 + CLASSES, ANCHORS)),),
        metadata=Metadata(names=("cat", "dog"), stride=32),
    )
    frame = RecordedFrame({"output0": head()}, np.array([[HEIGHT, WIDTH]], np.int32))
    save_recording(tmp_path / "tiny.npz", info=info, frames=[frame] * 3)
    (tmp_path / "p.yaml").write_text("engine: {path: tiny.npz}\nexecutor: cpu\n")
    for name in ("a.png", "b.png"):
        Image.new("RGB", (WIDTH, HEIGHT), (60, 90, 30)).save(tmp_path / name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_json_is_exactly_what_is_promised(folder: Path) -> None:
    text = invoke("run", "p.yaml", "a.png", "b.png", "--json", "-").stdout
    assert json.loads(text) == [{"image": "a.png", **FOUND}, {"image": "b.png", **FOUND}]
    first = json.loads(text)[0]
    assert list(first) == ["image", "width", "height", "detections", "counters"]
    assert list(first["detections"][0]) == ["box", "score", "label", "name"]


def test_json_lines_are_the_same_objects(folder: Path) -> None:
    invoke("run", "p.yaml", "a.png", "b.png", "--jsonl", "out.jsonl", "--json", "out.json")
    lines = (folder / "out.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line) for line in lines] == json.loads((folder / "out.json").read_text())
    assert len(lines) == 2


def test_table_shows_boxes_and_what_was_dropped(folder: Path) -> None:
    text = invoke("run", "p.yaml", "a.png").stdout
    assert re.search(r"dog +0\.750 +24\.0 +12\.0 +40\.0 +20\.0", text)
    assert "2 candidates, 1 kept; dropped: 1 not a number\n" in text
    assert "executor cpu" in text


def test_runtime_parameter(folder: Path) -> None:
    text = invoke("run", "p.yaml", "a.png", "--set", "score_threshold=0.8", "--json", "-").stdout
    assert json.loads(text)[0]["counters"]["candidates"] == 0
    text = invoke("run", "p.yaml", "a.png", "--set", "iou_threshold=1", "--json", "-").stdout
    assert json.loads(text)[0]["counters"]["kept"] == 2
    both = ["--set", "iou_threshold=1", "--set", "max_detections=1"]
    counters = json.loads(invoke("run", "p.yaml", "a.png", *both, "--json", "-").stdout)[0][
        "counters"
    ]
    assert (counters["kept"], counters["dropped_max"]) == (1, 1)


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("scor_threshold=0.4", "Did you mean 'score_threshold'?"),
        ("iou_threshold=4", "expected 0.0 to 1.0, found 4"),
        ("score_threshold=25", "expected 0.0 to 1.0, found 25"),
        ("iou_threshold=nan", "expected a finite number"),
        (f"iou_threshold={'9' * 400}", "expected a finite number"),
        ("max_detections=0", "expected 1 or more, found 0"),
        ("score_threshold=high", "expected a name and a number"),
        ("score_threshold", "expected a name and a number"),
        ("pre_nms_topk=1.5", "expected a whole number"),
        ("max_detections=301", "room for 300, found 301. Give 'max_detections: 301' in the pipel"),
        ("class_aware=1", "no runtime parameter"),
        ("self=1", "no runtime parameter 'self'"),
    ],
)
def test_wrong_setting(folder: Path, setting: str, said: str) -> None:
    assert said in invoke("run", "p.yaml", "a.png", "--set", setting, code=2).stderr


def test_a_threshold_in_percent(folder: Path) -> None:
    with (folder / "p.yaml").open("a") as file:
        file.write("params:\n  decode_yolov8: {score_threshold: 25}\n")
    said = "p.yaml:4:36: decode_yolov8: score_threshold: expected 0.0 to 1.0, found 25"
    assert said in invoke("run", "p.yaml", "a.png", code=2).stderr


def test_times_of_each_stage(folder: Path) -> None:
    text = invoke("run", "p.yaml", "a.png", "b.png", "--time").stdout
    table = text.partition("stage")[2]
    assert "mean of 1 more" in table
    for stage in ("read files", "resize_letterbox", "engine", "decode_yolov8", "select_nms", "all"):
        assert re.search(rf"^{stage} +\d+\.\d\d +\d+\.\d\d$", table, re.MULTILINE), stage


def test_time_keeps_json_clean(folder: Path) -> None:
    result = invoke("run", "p.yaml", "a.png", "--time", "--json", "-")
    json.loads(result.stdout)
    assert "select_nms" in result.stderr


def test_save_draws_the_box(folder: Path) -> None:
    text = invoke("run", "p.yaml", "a.png", "--save", "new/out.png").stdout
    assert "1 dog" in text
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
    invoke("run", "p.yaml", "a.png", "b.png", "--save", target)
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
def test_wrong_target(folder: Path, arguments: list[str], said: str) -> None:
    (folder / "empty").mkdir()
    (folder / "other").mkdir()
    (folder / "other/a.png").write_bytes((folder / "a.png").read_bytes())
    assert said in invoke("run", "p.yaml", *arguments, code=2).stderr


def test_a_folder_stands_for_its_pictures(folder: Path) -> None:
    text = invoke("run", "p.yaml", str(folder), "--jsonl", "-").stdout
    names = [Path(json.loads(line)["image"]).name for line in text.splitlines()]
    assert names == ["a.png", "b.png"]


def test_a_recording_is_never_played_to_the_wrong_picture(folder: Path) -> None:
    result = invoke("run", "p.yaml", "missing.png", "a.png", "--json", "out.json", code=2)
    assert "missing.png: no such file" in result.stderr
    assert not (folder / "out.json").exists()


def test_more_pictures_than_were_recorded(folder: Path) -> None:
    result = invoke("run", "p.yaml", "a.png", "b.png", "a.png", "b.png", code=2)
    assert "3 frames were recorded and all have been played" in result.stderr


def test_check_counts_the_memory_of_batches_under_way(folder: Path) -> None:
    assert "under way" not in invoke("check", "p.yaml").stdout
    report = json.loads(invoke("check", "p.yaml", "--json").stdout)
    own = sum(report["region_bytes"][name] for name in ("frame", "result", "lazy"))
    said = invoke("check", "p.yaml", "--executor", "gpu").stdout
    found = re.search(r"([\d.]+) KiB more for 3 batches under way", said)
    assert found
    assert float(found[1]) == pytest.approx(2 * own / 1024, abs=0.06)


def test_check_shows_what_maps_to_what(folder: Path) -> None:
    (folder / "p.yaml").write_text(
        "engine: {path: tiny.npz}\nparams:\n  select_nms: {iou_threshold: 0.6}\nexecutor: cpu\n"
    )
    text = invoke("check", "p.yaml", "--memory").stdout
    for pattern in (
        r"out +output0 float32 \[1, 6, 21\]",
        r"rule +yolov8 \(.*registry\.yaml:\d+\)",
        r"head +<- +engine\.output0 +float32 +\[1, 6, 21\]",
        r"iou_threshold = 0\.6 +\(p\.yaml:3, may change while running\)",
        r"color = rgb +\(.*registry\.yaml:\d+\)",
        r"fit = letterbox +\(default\)",
        r"A = 21, C = 2",
        r"launch +decode_yolov8 grid \(1, 1, 1\) block \(128, 1, 1\)",
        r"engine\.images +work +float32 +\[1, 3, 32, 32\] +12,288",
        r"classes +2 with names",
        r"nothing was compiled or run",
    ):
        assert re.search(pattern, text), pattern


def test_check_json_is_the_same_report(folder: Path) -> None:
    report = json.loads(invoke("check", "p.yaml", "--json").stdout)
    assert report["rule"] == "yolov8"
    assert [step["name"] for step in report["steps"]][1] == "engine"
    assert sum(report["region_bytes"].values()) > 12288
    assert {b["name"] for b in report["buffers"]} >= {"engine.images", "engine.output0"}


def test_inspect_a_recording(folder: Path) -> None:
    text = invoke("inspect", "tiny.npz").stdout
    for pattern in (
        r"kind +recording, onnxruntime 1\.0",
        r"in +images float32 \[1, 3, 32, 32\]",
        r"rule +yolov8",
        r"classes +2: cat, dog",
        r"stride +32 px",
    ):
        assert re.search(pattern, text), pattern
    assert json.loads(invoke("inspect", "tiny.npz", "--json").stdout)["rule"]["name"] == "yolov8"


def test_record_again_gives_the_same_frames(folder: Path) -> None:
    text = invoke("record", "p.yaml", "a.png", "b.png", "-o", "again.npz").stdout
    assert "pictures: 2, outputs: " in text
    modes = {(folder / name).stat().st_mode for name in ("again.npz", "p.yaml")}
    assert len(modes) == 1, "a recording is as readable as any other new file"
    (folder / "q.yaml").write_text("engine: {path: again.npz}\nexecutor: cpu\n")
    replayed = invoke("run", "q.yaml", "a.png", "b.png", "--json", "-").stdout
    assert replayed == invoke("run", "p.yaml", "a.png", "b.png", "--json", "-").stdout


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


def test_a_pipe_is_no_engine(folder: Path) -> None:
    os.mkfifo("pipe")
    (folder / "p.yaml").write_text("engine: {path: pipe}\n")
    for arguments in (["inspect", "pipe"], ["run", "p.yaml", "a.png"]):
        assert "pipe: a device or a pipe, not an" in invoke(*arguments, code=2).stderr


def test_other_pictures_than_those_recorded(folder: Path) -> None:
    Image.new("RGB", (1920, 1080)).save("large.png")
    said = "tiny.npz: picture 1 of recorded frame 2 was 64 x 32 px, and this one is 1920 x 1080 px"
    assert said in invoke("run", "p.yaml", "a.png", "large.png", code=2).stderr
    with trtpatch.load("p.yaml") as pipeline:
        with pytest.raises(EngineError, match="recorded frame 1 was 64 x 32 px"):
            pipeline("large.png")
        assert len(pipeline("a.png")[0]) == 1  # nothing was played meanwhile


def test_record_needs_its_ending(folder: Path) -> None:
    assert ".npz" in invoke("record", "p.yaml", "a.png", "-o", "again.onnx", code=2).stderr


@pytest.mark.skipif(gpu_found(), reason="a GPU is here")
def test_executor_gpu_without_a_gpu(folder: Path) -> None:
    said = invoke("run", "p.yaml", "a.png", "--executor", "gpu", code=2).stderr
    assert "error: there is no" in said or "error: executor 'gpu' needs CuPy" in said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("engine: {pth: tiny.npz}", "p.yaml:1:10: unknown key 'pth'. Did you mean 'path'?"),
        ("engine: {path: tiny.npz}\nexceutor: cpu", "Did you mean 'executor'?"),
        ("engine: {path: tiny.npz}\nrule: yolov9", "p.yaml:2:7: no rule is called 'yolov9'"),
        ("engine: {path: tiny.npz}\nchain: [engine, decod]", "p.yaml:2:17: no patch is called"),
        ("engine: {path: tiny.npz}\nbatch: 8", "p.yaml:1:9: the pipeline asks for batch 8"),
        ("engine: tiny.npz", "p.yaml:1:9: expected a mapping with the keys path, kind"),
        ("engine: {path: none.onnx}", "none.onnx: no such file"),
        ("engine: {path: a.png}", "it is a PNG picture"),
        ("engine: {path: p.yaml}", "it is a text file"),
        ("engine: [", "p.yaml:"),
        ("", "p.yaml"),
    ],
)
def test_mistakes_in_the_pipeline_file(folder: Path, text: str, said: str) -> None:
    (folder / "p.yaml").write_text(text + "\n")
    for arguments in (["check", "p.yaml"], ["run", "p.yaml", "a.png"]):
        result = invoke(*arguments, code=2)
        assert result.stderr.startswith("error: ")
        assert said in result.stderr


def test_no_pipeline_file(folder: Path) -> None:
    assert "none.yaml: cannot be read" in invoke("run", "none.yaml", "a.png", code=2).stderr


def test_the_wrong_rule_names_both_shapes(folder: Path) -> None:
    (folder / "p.yaml").write_text("engine: {path: tiny.npz}\nrule: yolox\nexecutor: cpu\n")
    said = invoke("check", "p.yaml", code=2).stderr
    assert "output0 float32 [1, 6, 21]" in said
    assert "[N, A, 5 + C]" in said


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


def test_names_for_more_or_fewer_classes(folder: Path) -> None:
    before = (folder / "p.yaml").read_text()
    (folder / "p.yaml").write_text(f"{before}labels: [cat]\n")
    said = "p.yaml:3:9: expected a name for each of the 2 classes that decode_yolov8 finds, found 1"
    assert said in invoke("run", "p.yaml", "a.png", code=2).stderr
    (folder / "p.yaml").write_text(f"{before}labels: [background, cat, dog]\n")
    said = "each of the 2 classes that decode_yolov8 finds, found 3; are they for another model?"
    assert said in invoke("run", "p.yaml", "a.png").stderr


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


def test_numbers_that_json_does_not_have() -> None:
    assert as_json({"a": [float("nan"), -float("inf"), 1.5]}) == '{"a": [null, null, 1.5]}'


def test_a_link_to_itself(folder: Path) -> None:
    (folder / "loop").symlink_to("loop")
    loop = "Too many levels of symbolic links"
    for arguments in (("p.yaml", "loop"), ("loop", "a.png"), ("p.yaml", "a.png", "--json", "loop")):
        assert loop in invoke("run", *arguments, code=2).output
    assert loop in invoke("run", "p.yaml", "loop", "--save", "copy.png", code=2).output


def test_a_rule_whose_chain_has_no_such_patch(folder: Path) -> None:
    rule = "{name: mine, outputs: {head: [N, 4 + C, A]}, chain: [engine, decode_yolov88]}"
    (folder / "r.yaml").write_text(f"rules:\n  - {rule}\n")
    (folder / "p.yaml").write_text("engine: {path: tiny.npz}\nregistry: r.yaml\nrule: mine\n")
    said = invoke("check", "p.yaml", code=2).output
    column = 5 + rule.index("decode_yolov88")
    assert f"r.yaml:2:{column}: no patch is called 'decode_yolov88'. Did you mean" in said


def deny(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `os.access` say no for one name; a superuser's says yes to anything."""
    monkeypatch.setattr(os, "access", lambda path, *_, **__: Path(path).name != name)


def test_a_picture_without_permission_keeps_no_other_from_being_looked_at(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deny("b.png", monkeypatch)
    assert "a.png" in invoke("run", "p.yaml", "a.png", "b.png").stdout  # reading it is what tells


def test_a_folder_without_permission_is_told_before_anything_runs(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deny(folder.name, monkeypatch)
    for option in ("--json", "--jsonl"):
        said = invoke("run", "missing.yaml", "a.png", option, "out", code=2).output
        assert "out: cannot be written: Permission denied" in said


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("number", [2e38, 3e38, np.inf, -np.inf, np.nan])
def test_numbers_without_measure_make_no_noise(folder: Path, number: float) -> None:
    outputs = head()
    outputs[0, :4, 10:] = number
    outputs[0, 4:, 10:] = 0.6
    info = EngineInfo(
        "ort", "tiny.onnx", "onnxruntime", "1.0",
        inputs=(Tensor("images", "float32", (1, 3, 32, 32)),),
        outputs=(Tensor("output0", "float32", outputs.shape),),
    )  # fmt: skip
    frame = RecordedFrame({"output0": outputs}, np.array([[HEIGHT, WIDTH]], np.int32))
    save_recording(folder / "tiny.npz", info=info, frames=[frame])
    (found,) = json.loads(invoke("run", "p.yaml", "a.png", "--json", "-").stdout)
    corners = np.array([one["box"] for one in found["detections"]])
    assert (corners >= 0).all()
    assert (corners <= [WIDTH, HEIGHT] * 2).all()
