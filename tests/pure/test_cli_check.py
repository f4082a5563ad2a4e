"""`check`, `inspect` and `record` of recorded outputs, and mistakes in the pipeline file."""

import json
import os
import re
from pathlib import Path

import pytest

from tests.command import invoke
from tests.recorded import write_recording


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return write_recording(tmp_path)


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


def test_a_pipe_is_no_engine(folder: Path) -> None:
    os.mkfifo("pipe")
    (folder / "p.yaml").write_text("engine: {path: pipe}\n")
    for arguments in (["inspect", "pipe"], ["run", "p.yaml", "a.png"]):
        assert "pipe: a device or a pipe, not an" in invoke(*arguments, code=2).stderr


def test_record_needs_its_ending(folder: Path) -> None:
    assert ".npz" in invoke("record", "p.yaml", "a.png", "-o", "again.onnx", code=2).stderr


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("engine: {pth: tiny.npz}", "p.yaml:1:10: unknown key 'pth'. Did you mean 'path'?"),
        ("engine: {path: tiny.npz}\nexceutor: cpu", "Did you mean 'executor'?"),
        ("engine: {path: tiny.npz}\nrule: yolov9", "p.yaml:2:7: no rule is called 'yolov9'"),
        ("engine: {path: tiny.npz}\nchain: [engine, decod]", "p.yaml:2:17: no patch is called"),
        ("engine: {path: tiny.npz}\nbatch: 8", "p.yaml:1:9: the pipeline asks for batch 8"),
        ("engine: [tiny.npz]", "p.yaml:1:9: expected a mapping with the keys path, kind"),
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


def test_names_for_more_or_fewer_classes(folder: Path) -> None:
    before = (folder / "p.yaml").read_text()
    (folder / "p.yaml").write_text(f"{before}labels: [cat]\n")
    said = "p.yaml:3:9: expected a name for each of the 2 classes that decode_yolov8 finds, found 1"
    assert said in invoke("run", "p.yaml", "a.png", code=2).stderr
    (folder / "p.yaml").write_text(f"{before}labels: [background, cat, dog]\n")
    said = "each of the 2 classes that decode_yolov8 finds, found 3; are they for another model?"
    assert said in invoke("run", "p.yaml", "a.png").stderr


def test_a_rule_whose_chain_has_no_such_patch(folder: Path) -> None:
    rule = "{name: mine, outputs: {head: [N, 4 + C, A]}, chain: [engine, decode_yolov88]}"
    (folder / "r.yaml").write_text(f"rules:\n  - {rule}\n")
    (folder / "p.yaml").write_text("engine: {path: tiny.npz}\nregistry: r.yaml\nrule: mine\n")
    said = invoke("check", "p.yaml", code=2).output
    column = 5 + rule.index("decode_yolov88")
    assert f"r.yaml:2:{column}: no patch is called 'decode_yolov88'. Did you mean" in said
