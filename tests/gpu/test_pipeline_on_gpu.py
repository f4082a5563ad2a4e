"""Whole pipelines on the GPU: played-back outputs against `cpu`, and a real engine."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import trtpatch
from trtpatch.errors import InputError


@pytest.fixture(scope="module")
def photos(assets: Path) -> list[np.ndarray]:
    paths = sorted((assets / "images").glob("*.jpg"))
    assert paths
    return [np.asarray(Image.open(path).convert("RGB")) for path in paths]


@pytest.fixture
def folder(tmp_path: Path, assets: Path) -> Path:
    (tmp_path / "model.onnx").write_bytes((assets / "models/yolox_nano_416.onnx").read_bytes())
    return tmp_path


def write(folder: Path, text: str) -> Path:
    path = folder / "pipeline.yaml"
    path.write_text(text, encoding="utf-8")
    return path


ORT = "engine: {path: model.onnx, kind: ort}\n"


def same(a: trtpatch.Detections, b: trtpatch.Detections, *, pixels: float, score: float) -> None:
    np.testing.assert_array_equal(a.labels, b.labels)
    np.testing.assert_allclose(a.scores, b.scores, atol=score, rtol=0)
    np.testing.assert_allclose(a.boxes, b.boxes, atol=pixels, rtol=0)


def test_the_same_engine_outputs_give_the_same_detections(
    folder: Path, photos: list[np.ndarray]
) -> None:
    path = write(folder, ORT)
    with trtpatch.load(path, executor="cpu") as cpu, trtpatch.load(path, executor="gpu") as gpu:
        for photo in photos:
            expected, found = cpu(photo)[0], gpu(photo)[0]
            # The resize differs by less than a grey level, so the network's outputs do a little.
            same(found, expected, pixels=0.5, score=1e-3)


def test_a_recording_gives_what_cpu_gives(folder: Path, photos: list[np.ndarray]) -> None:
    from trtpatch.engines.recorded import RecordedFrame, save_recording
    from trtpatch.loaded import Loaded

    path = write(folder, ORT)
    loaded = Loaded(path, executor="cpu")
    pipeline = trtpatch.Pipeline(loaded)
    step = next(step for step in pipeline.plan.steps if step.name == "engine")
    frames = []
    for photo in photos:
        pipeline(photo)
        outputs = {n: pipeline._ready.last.read(b) for n, b in step.outputs.items()}
        frames.append(RecordedFrame(outputs, np.int32([photo.shape[:2]])))
    save_recording(folder / "frames.npz", info=loaded.engine.info, frames=frames)
    path = write(folder, "engine: {path: frames.npz}\n")
    with trtpatch.load(path, executor="cpu") as cpu, trtpatch.load(path, executor="gpu") as gpu:
        found_any = False
        for photo in photos:
            expected, found = cpu(photo)[0], gpu(photo)[0]
            found_any |= len(expected) > 0
            np.testing.assert_array_equal(found.anchors, expected.anchors)
            same(found, expected, pixels=1e-2, score=1e-5)
            assert found.counters == expected.counters
        assert found_any


def test_a_real_engine_against_onnx_runtime(assets: Path) -> None:
    """In a process of its own, in which TF32 is off."""
    pytest.importorskip("tensorrt_rtx")
    script = Path(__file__).parents[2] / "benchmarks/accuracy.py"
    model, photos = assets / "models/yolox_nano_416.onnx", assets / "images"
    run = subprocess.run(
        [sys.executable, script, "--model", model, "--photos", photos, "--here"],
        env={**os.environ, "NVIDIA_TF32_OVERRIDE": "0"},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    found = json.loads(run.stdout.splitlines()[-1])
    assert found["objects"] > 0
    assert found["other anchors"] == 0
    assert found["largest box difference, px"] <= 0.5
    assert found["largest score difference"] <= 1e-3


def test_frames_on_the_gpu_and_the_callers_stream(folder: Path, photos: list[np.ndarray]) -> None:
    import cupy

    with trtpatch.load(write(folder, ORT), executor="gpu") as gpu:
        expected = gpu(photos[0])[0]
        stream = cupy.cuda.Stream(non_blocking=True)
        with stream:
            frame = cupy.asarray(photos[0])
            wide = cupy.zeros((frame.shape[0], frame.shape[1] + 5, 3), cupy.uint8)
            wide[:, : frame.shape[1]] = frame
        for one in (frame, wide[:, : frame.shape[1]]):
            same(gpu(one, stream=stream.ptr)[0], expected, pixels=0, score=0)
        with pytest.raises(InputError, match="dense rows"):
            gpu(frame[:, ::-1])


def test_results_outlive_the_next_frames_and_the_pipeline(
    folder: Path, photos: list[np.ndarray]
) -> None:
    with trtpatch.load(write(folder, ORT), executor="gpu") as gpu:
        late = [gpu(photo) for photo in photos]
        on_device = late[0].device()[0]["detections_boxes"]
        at_once = [gpu(photo)[0] for photo in photos]
    for results, expected in zip(late, at_once, strict=True):
        same(results[0], expected, pixels=0, score=0)
    np.testing.assert_array_equal(on_device.get()[0, : len(at_once[0])], at_once[0].boxes)


def test_a_runtime_parameter_changes_from_frame_to_frame(
    folder: Path, photos: list[np.ndarray]
) -> None:
    with trtpatch.load(write(folder, ORT), executor="gpu") as gpu:
        many = gpu(photos[0])[0]
        gpu.set(score_threshold=0.99)
        assert len(many)
        assert len(gpu(photos[0])[0]) == 0
        gpu.set(score_threshold=0.25)
        same(gpu(photos[0])[0], many, pixels=0, score=0)
