"""ONNX models as oracles, run on the CPU: whole, or only what follows certain tensors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper
from onnx.utils import Extractor

Arrays = dict[str, np.ndarray]


def infer(model: onnx.ModelProto | Path, inputs: Arrays, *inner: str) -> Arrays:
    """Run a model; its outputs, and the inner tensors that are named, by name."""
    model = onnx.load(model) if isinstance(model, Path) else model
    for name in inner:
        model.graph.output.append(onnx.helper.make_empty_tensor_value_info(name))
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, inputs), strict=True))


def after(path: Path, inputs: Arrays) -> Arrays:
    """A graph's outputs from inner tensors of it, as the graph's own nodes compute them."""
    model = onnx.shape_inference.infer_shapes(onnx.load(path))
    outputs = [output.name for output in model.graph.output]
    return infer(Extractor(model).extract_model(list(inputs), outputs), inputs)


def with_random_weights(path: Path, seed: int = 0) -> onnx.ModelProto:
    """A graph whose large weights were taken out, filled with seeded values of order one."""
    model = onnx.load(path)
    random = np.random.default_rng(seed)
    for tensor in model.graph.initializer:
        if tensor.doc_string == "random":
            scale = np.sqrt(2 / max(1, np.prod(tensor.dims[1:])))
            values = random.standard_normal(tuple(tensor.dims)) * scale
            dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type)
            tensor.CopyFrom(numpy_helper.from_array(values.astype(dtype), tensor.name))
    return model


def noise(height: int, width: int) -> np.ndarray:
    """`[1, 3, height, width]` float32 in 0..1."""
    return np.random.default_rng(1).random((1, 3, height, width), dtype=np.float32)
