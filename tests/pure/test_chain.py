"""Chains of a user's own that do not fit, and what would."""

from pathlib import Path

import numpy as np
import pytest

from tests.recorded import write_recording
from trtpatch.engines import EngineInfo, Tensor
from trtpatch.engines.recorded import RecordedFrame, save_recording
from trtpatch.errors import MatchError
from trtpatch.loaded import Loaded


def refused(
    folder: Path,
    decode: str,
    *shape: int,
    size: int = 416,
    before: tuple[Tensor, ...] = (),
    more: int = 0,
) -> str:
    info = EngineInfo(
        kind="ort",
        path="model.onnx",
        flavour="onnxruntime",
        version="1.0",
        inputs=(*before, Tensor("images", "float32", (1, 3, size, size))),
        outputs=(Tensor("output", "float32", shape),),
    )
    frame = RecordedFrame({"output": np.zeros(shape, np.float32)}, np.array([[size, size]], "i4"))
    save_recording(folder / "model.npz", info=info, frames=[frame])
    path = folder / "p.yaml"
    chain = ", ".join(["resize_letterbox", "engine", decode, "select_nms", *["select_nms"] * more])
    path.write_text(f"engine: model.npz\nchain: [{chain}]\n")
    with pytest.raises(MatchError) as caught:
        Loaded(path, executor="cpu")
    return str(caught.value)


def test_a_decoder_of_another_layout_names_those_that_fit(tmp_path: Path) -> None:
    message = refused(tmp_path, "decode_yolov8", 1, 3549, 85)
    assert "decode_yolov8: 'A >= C' does not hold: A = 85, C = 3545\n" in message
    *_, rule, would = message.splitlines()
    assert rule.startswith("Rule yolox (built-in registry.yaml:")
    assert rule.endswith(
        ") fits, with the chain resize_letterbox, engine, decode_yolox, select_nms"
    )
    assert would.startswith("In the place of decode_yolov8 these would fit: ")
    assert "decode_yolov5, decode_yolox" in would
    assert "decode_yolov8_obb" not in would


def test_a_decoder_of_other_tensors_names_those_that_fit(tmp_path: Path) -> None:
    message = refused(tmp_path, "decode_nanodet", 1, 84, 3549)
    assert "wants image [N, 3, H, W]; classes [N, P, C]; boxes [N, P, 4 * R]" in message
    assert "In the place of decode_nanodet these would fit: " in message
    assert "decode_yolov8" in message.splitlines()[-1]


def test_where_none_would_none_is_named(tmp_path: Path) -> None:
    assert "In the place of" not in refused(tmp_path, "decode_yolov8", 1, 2, 3, 5, 7)


def test_a_rule_need_not_name_the_inputs(tmp_path: Path) -> None:
    write_recording(tmp_path)
    (tmp_path / "registry.yaml").write_text(
        "rules:\n  - name: mine\n    outputs: {head: [N, 4 + C, A]}\n"
        "    chain: [resize_letterbox, engine, decode_yolov8, select_nms]\n"
    )
    (tmp_path / "p.yaml").write_text("engine: tiny.npz\nregistry: registry.yaml\n")
    loaded = Loaded(tmp_path / "p.yaml", executor="cpu")
    assert loaded.match.inputs == {"image": ("images",)}


def test_an_input_without_axes_does_not_say_the_batch(tmp_path: Path) -> None:
    scalar = Tensor("scale", "float32", ())
    message = refused(tmp_path, "decode_yolov8", 1, 3549, 85, before=(scalar,))
    assert "input scale float32 [] is written by no patch before it" in message


def test_in_a_long_chain_none_is_tried(tmp_path: Path) -> None:
    message = refused(tmp_path, "decode_yolov8", 1, 3549, 85, more=3000)
    assert "In the place of" not in message
