"""A rule and a chain in one pipeline file, and what is said of rules that play no part."""

from pathlib import Path

import pytest

from tests.command import invoke
from tests.recorded import write_recording
from trtpatch.errors import MatchError, SpecError
from trtpatch.loaded import Loaded
from trtpatch.plan import PatchStep

CHAIN = "chain: [resize_letterbox, engine, decode_yolov8, select_nms]\n"


def load(folder: Path, more: str) -> Loaded:
    write_recording(folder)
    path = folder / "p.yaml"
    path.write_text(f"engine: {{path: tiny.npz}}\nexecutor: cpu\n{more}")
    return Loaded(path)


def steps(loaded: Loaded) -> dict[str, PatchStep]:
    return {step.name: step for step in loaded.plan.patch_steps}


def notes(loaded: Loaded) -> tuple[str, ...]:
    return loaded.notes[1:]  # the first says that it is a recording


def test_a_chain_beside_a_rule_keeps_the_rules_parameters(tmp_path: Path) -> None:
    chain = CHAIN.replace("select_nms", "select_topk")
    loaded = load(tmp_path, f"rule: yolov8\n{chain}params: {{resize_letterbox: {{color: bgr}}}}\n")
    assert not notes(loaded)
    assert [*steps(loaded)] == ["resize_letterbox", "decode_yolov8", "select_topk"]
    letterbox = steps(loaded)["resize_letterbox"].params
    assert letterbox["scale"] == pytest.approx(1 / 255)
    assert letterbox["color"] == "bgr"
    rule = invoke("check", str(tmp_path / "p.yaml")).stdout.split("\nrule")[1].splitlines()[0]
    assert rule.strip().startswith("yolov8 (built-in registry.yaml:")
    assert rule.endswith(f"); the chain of {tmp_path}/p.yaml")


REGISTRY = f"""\
rules:
  - name: mine
    inputs: {{image: [N, 3, H, W]}}
    outputs: {{head: [N, 4 + C, A]}}
    {CHAIN}    params: {{resize_letterbox: {{color: bgr}}, select_nms: {{iou_threshold: 0.3}}}}
"""


def with_registry(folder: Path, more: str) -> tuple[str, ...]:
    (folder / "registry.yaml").write_text(REGISTRY)
    return notes(load(folder, f"registry: registry.yaml\n{more}"))


def test_a_chain_alone_tells_which_parameters_it_goes_without(tmp_path: Path) -> None:
    (note,) = with_registry(tmp_path, CHAIN)
    assert note.startswith(f"rule mine ({tmp_path}/registry.yaml:2) fits this engine")
    assert ": resize_letterbox: {color: bgr}, select_nms: {iou_threshold: 0.3}. Write" in note
    assert "Write 'rule: mine' beside 'chain' to apply them" in note
    (note,) = with_registry(tmp_path, f"{CHAIN}params: {{resize_letterbox: {{color: rgb}}}}\n")
    assert ": select_nms: {iou_threshold: 0.3}. Write" in note
    assert not notes(load(tmp_path, CHAIN))


def test_parameters_of_a_patch_that_the_chain_has_not(tmp_path: Path) -> None:
    more = f"rule: mine\n{CHAIN.replace('select_nms', 'select_topk')}"
    (note,) = with_registry(tmp_path, more)
    assert note.endswith("has parameters of select_nms, which the chain has not; they play no part")


def test_the_users_own_rule_goes_before_a_built_in_one_and_says_so(tmp_path: Path) -> None:
    (note,) = with_registry(tmp_path, "")
    assert "registry.yaml:2) goes before yolov8 (built-in registry.yaml:" in note


def test_mistakes_in_the_chain_beside_a_rule_are_the_files(tmp_path: Path) -> None:
    with pytest.raises(MatchError, match=r"p\.yaml:4:\d+: no patch is called 'decode_yolov'"):
        load(tmp_path, f"rule: yolov8\n{CHAIN.replace('yolov8', 'yolov')}")
    with pytest.raises(SpecError, match=r"p\.yaml:5:\d+: no patch 'select_topk' in the chain"):
        load(tmp_path, f"rule: yolov8\n{CHAIN}params: {{select_topk: {{max_detections: 3}}}}\n")
