"""A TensorRT-RTX engine on a GPU, by its addresses and stream alone, against ONNX Runtime."""

import ctypes
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from trtpatch.engines import open_engine
from trtpatch.engines.build import build
from trtpatch.engines.inspection import inspect
from trtpatch.engines.options import BuildOptions
from trtpatch.errors import EngineError

pytest.importorskip("tensorrt_rtx")
cupy = pytest.importorskip("cupy")

RTX = BuildOptions(flavour="tensorrt_rtx")
WITHOUT_TF32 = {"NVIDIA_TF32_OVERRIDE": "0"}
"""TensorRT-RTX multiplies in TF32 unless the environment of its process says so."""
EXACT = WITHOUT_TF32.items() <= os.environ.items()
SHAPE = {"images": (1, 3, 416, 416)}


@pytest.fixture
def open_yolox(assets, cache):
    engine = open_engine(
        assets / "models/yolox_nano_416.onnx", gpu=True, kind="trt", options=RTX, cache_dir=cache
    )
    yield engine
    engine.close()


@pytest.fixture
def yolox(open_yolox):
    return open_yolox.at(SHAPE)


@pytest.fixture(scope="module")
def pictures(assets) -> list[np.ndarray]:
    return [photos(assets, first, (1, 3, 416, 416)) for first in range(3)]


def photos(assets: Path, first: int, shape: tuple[int, int, int, int]) -> np.ndarray:
    """Some photos from the `first` on, as both models take them: BGR from 0 to 255."""
    count, _, height, width = shape
    paths = sorted((assets / "images").glob("*.jpg"))[first : first + count]
    resized = [Image.open(path).convert("RGB").resize((width, height)) for path in paths]
    pixels = np.stack([np.asarray(picture, np.float32) for picture in resized])
    return np.ascontiguousarray(pixels.transpose(0, 3, 1, 2)[:, ::-1])


class Buffers:
    """Device arrays for an engine that is ready, poisoned, and a stream of their own."""

    def __init__(self, engine) -> None:
        self.engine = engine
        self.stream = cupy.cuda.Stream(non_blocking=True)
        self.outputs = {t.name: cupy.full(t.shape, 777, t.dtype) for t in engine.info.outputs}
        self.inputs = {t.name: cupy.empty(t.shape, t.dtype) for t in engine.info.inputs}
        cupy.cuda.Device().synchronize()

    def enqueue(self) -> None:
        arrays = {**self.inputs, **self.outputs}
        self.engine.enqueue({name: a.data.ptr for name, a in arrays.items()}, self.stream.ptr)

    def run(self, **inputs: np.ndarray) -> dict[str, np.ndarray]:
        for name, array in inputs.items():
            self.inputs[name].set(array, stream=self.stream)
        self.enqueue()
        return self.read()

    def read(self) -> dict[str, np.ndarray]:
        found = {name: array.get(stream=self.stream) for name, array in self.outputs.items()}
        self.stream.synchronize()
        return found


def onnx_runtime(path: Path, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    engine = open_engine(path, gpu=False, kind="ort")
    return dict(engine.at({name: array.shape for name, array in inputs.items()}).run(inputs))


def test_it_gives_what_onnx_runtime_gives(assets, yolox, pictures):
    assert (yolox.on_device, yolox.info.kind, yolox.info.flavour) == (True, "trt", "tensorrt_rtx")
    assert [str(t) for t in yolox.info.outputs] == ["output float32 [1, 3549, 85]"]
    buffers = Buffers(yolox)
    # A raw box value is off by 1e-4 in float32, by 0.35 in TF32 (benchmarks/results/rounding.json).
    score, box = (1e-4, 1e-3) if EXACT else (0.2, 1.0)
    for picture in pictures:
        found = buffers.run(images=picture)["output"]
        path = assets / "models/yolox_nano_416.onnx"
        expected = onnx_runtime(path, {"images": picture})["output"]
        np.testing.assert_allclose(found[..., 4:], expected[..., 4:], atol=score, rtol=0)
        np.testing.assert_allclose(found[..., :4], expected[..., :4], atol=box, rtol=1e-3)


def test_a_captured_run_is_replayed_on_new_pictures(yolox, pictures):
    buffers = Buffers(yolox)
    plain = [buffers.run(images=picture)["output"] for picture in pictures]
    assert not yolox.obstacle
    with buffers.stream:
        buffers.stream.begin_capture()
        buffers.enqueue()
        graph = buffers.stream.end_capture()
    for picture, expected in zip(pictures, plain, strict=True):
        buffers.inputs["images"].set(picture, stream=buffers.stream)
        buffers.outputs["output"].data.memset_async(0xFF, expected.nbytes, buffers.stream)
        graph.launch(stream=buffers.stream)
        np.testing.assert_array_equal(buffers.read()["output"], expected)


def run_once(engine) -> None:
    Buffers(engine.at(SHAPE)).run(images=np.zeros(SHAPE["images"], np.float32))
    engine.close()


def test_what_was_compiled_is_kept(assets, tmp_path, caplog):
    path = assets / "models/yolox_nano_416.onnx"
    for _ in range(2):
        run_once(open_engine(path, gpu=True, kind="trt", options=RTX, cache_dir=tmp_path))
        kept = {file: file.read_bytes() for file in tmp_path.glob("*.kernels")}
        assert len(kept) == 1
    assert "damaged or out of date" not in caplog.text
    next(iter(kept)).write_bytes(b"no kernels")
    run_once(open_engine(path, gpu=True, kind="trt", options=RTX, cache_dir=tmp_path))


def test_open_sizes(assets, cache):
    path = assets / "models/yunet_n_dynamic.onnx"
    bounds = {"input": ((1, 3, 32, 32), (1, 3, 320, 320), (2, 3, 320, 416))}
    options = BuildOptions(flavour="tensorrt_rtx", profile=bounds)
    engine = open_engine(path, gpu=True, kind="trt", options=options, cache_dir=cache)
    assert str(engine.info.inputs[0]) == "input float32 [-1, 3, -1, -1]"
    with pytest.raises(EngineError, match=r"min \[1, 3, 32, 32\].*max \[2, 3, 320, 416\]"):
        engine.at({"input": (1, 3, 640, 640)})
    shapes = ((1, 3, 320, 320), (2, 3, 320, 416), (1, 3, 64, 96))
    ready = [Buffers(engine.at({"input": shape})) for shape in shapes]
    for buffers, shape in [*zip(ready, shapes, strict=True)] * 2:
        picture = photos(assets, 0, shape)
        found = buffers.run(input=picture)
        for name, expected in onnx_runtime(path, {"input": picture}).items():
            # In TF32 an output is off by 0.01 (benchmarks/results/rounding.json).
            np.testing.assert_allclose(found[name], expected, atol=0.03, rtol=0)
    ready[1].engine.close()
    ready[0].run(input=np.zeros(shapes[0], np.float32))
    engine.close()
    with pytest.raises(EngineError, match="closed"):
        ready[0].enqueue()


def test_without_tf32():
    """In a process of its own, since the library reads the variable.

    YuNet with open sizes does not run then: TensorRT-RTX 1.4 has no kernel for its convolutions.
    """
    command = [sys.executable, "-m", "pytest", __file__, "-k", "onnx_runtime_gives"]
    outside = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    subprocess.run(command, env={**outside, **WITHOUT_TF32}, check=True)


def test_calls_that_cannot_be_meant(open_yolox, yolox):
    buffers = Buffers(yolox)
    with pytest.raises(EngineError, match="legacy default stream"):
        yolox.enqueue({name: a.data.ptr for name, a in buffers.inputs.items()}, 0)
    with pytest.raises(EngineError, match="no address is given for images, output"):
        open_yolox.at(SHAPE).enqueue({}, buffers.stream.ptr)
    with pytest.raises(EngineError, match=r"takes \[1, 3, 416, 416\], found \[2, 3, 416, 416\]"):
        open_yolox.at({"images": (2, 3, 416, 416)})
    yolox.close()
    with pytest.raises(EngineError, match="closed"):
        yolox.enqueue({}, buffers.stream.ptr)


def test_inspect_tells_inputs_and_outputs(assets, tmp_path):
    path = tmp_path / "yolox.plan"
    path.write_bytes(build(assets / "models/yolox_nano_416.onnx", RTX))
    info = inspect(path)
    assert [str(t) for t in info.inputs] == ["images float32 [1, 3, 416, 416]"]
    assert info.notes[0].startswith("built with TensorRT-RTX 1.")


def test_a_context_of_another_library_is_named(assets, cache):
    """As PyCUDA's autoinit leaves it: not the GPU's primary context, and current."""
    driver, context = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p()
    assert driver.cuInit(0) == 0
    assert driver.cuCtxCreate_v2(ctypes.byref(context), 0, 0) == 0
    try:
        with pytest.raises(EngineError, match=r"pycuda\.autoprimaryctx"):
            open_engine(
                assets / "models/yolox_nano_416.onnx",
                gpu=True,
                kind="trt",
                options=RTX,
                cache_dir=cache,
            )
    finally:
        driver.cuCtxDestroy_v2(context)


def test_a_gpu_that_is_not_there(assets):
    with pytest.raises(EngineError, match="there is no GPU 99"):
        open_engine(assets / "models/yolox_nano_416.onnx", gpu=True, kind="trt", device=99)
