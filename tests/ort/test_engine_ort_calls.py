"""Calls of ONNX Runtime's engine that cannot be meant."""

import numpy as np
import pytest

from trtpatch.engines import open_engine
from trtpatch.errors import EngineError


@pytest.fixture
def engine(assets):
    engine = open_engine(assets / "models" / "yolox_nano_416.onnx", gpu=False)
    return engine.at({"images": (1, 3, 416, 416)})


def test_a_missing_input_is_named(engine):
    with pytest.raises(EngineError, match=r"'images' is missing, expected float32 \[1, 3, 416"):
        engine.run({})


def test_another_dtype_is_refused(engine):
    with pytest.raises(EngineError, match=r"expected float32 .*, found uint8 \[1, 3, 416"):
        engine.run({"images": np.zeros((1, 3, 416, 416), np.uint8)})


def test_another_shape_is_refused(engine):
    with pytest.raises(EngineError, match=r"found float32 \[1, 3, 416, 417\]"):
        engine.run({"images": np.zeros((1, 3, 416, 417), np.float32)})


def test_another_batch_is_refused(assets):
    engine = open_engine(assets / "models" / "yolox_nano_416.onnx", gpu=False)
    with pytest.raises(EngineError, match=r"takes \[1, 3, 416, 416\], found \[2, 3, 416, 416\]"):
        engine.at({"images": (2, 3, 416, 416)})


def test_a_run_after_close(engine):
    engine.close()
    with pytest.raises(EngineError, match="closed"):
        engine.run({"images": np.zeros((1, 3, 416, 416), np.float32)})


def test_what_is_ready_is_closed_with_the_open_engine(assets):
    engine = open_engine(assets / "models" / "yolox_nano_416.onnx", gpu=False)
    ready = engine.at({"images": (1, 3, 416, 416)})
    engine.close()
    with pytest.raises(EngineError, match="closed"):
        ready.run({"images": np.zeros((1, 3, 416, 416), np.float32)})


def test_a_gpu_is_asked_for(assets):
    with pytest.raises(EngineError, match="kind: trt runs on a GPU"):
        open_engine(assets / "models" / "yolox_nano_416.onnx", gpu=False, kind="trt")
