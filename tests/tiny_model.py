"""A detector small enough to be made where it is needed: it finds red, green and blue."""

from __future__ import annotations

from pathlib import Path

import numpy as np

STRIDE = 8
NAMES = ("red", "green", "blue")


def save_tiny(
    path: Path,
    *,
    batch: int | str = "N",
    size: tuple[int | str, int | str] = ("H", "W"),
    stride: int = STRIDE,
) -> Path:
    """Write an ONNX file with a head as YOLOv8 has it.

    Input `images` float32 `[N, 3, H, W]`, RGB from 0 to 1; output `head` float32 `[N, 7, A]`, a row
    of centre x, centre y, width, height in model pixels and one score a colour, for each cell of
    8 by 8 pixels. Its metadata has the colours' names and the stride.

    Args:
        path: the file.
        batch, size: as declared; a text leaves a size open.
        stride: as declared.
    """
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    random = np.random.default_rng(7)
    kernel = random.normal(0, 0.02, (7, 3, STRIDE, STRIDE))
    kernel[4:] += (np.eye(3) * 18 - 6)[:, :, None, None] / STRIDE**2
    bias = np.array([0, 0, 0, 0, -3, -3, -3])
    half = STRIDE / 2
    constants = {
        "kernel": kernel.astype(np.float32),
        "bias": bias.astype(np.float32),
        "split": np.int64([2, 2, 3]),
        "flat": np.int64([0, 0, -1]),
        "grid_shape": np.int64([1, 2, -1]),
        "zero": np.int64(0),
        "one": np.int64(1),
        "two": np.int64(2),
        "three": np.int64(3),
        "column": np.int64([-1, 1]),
        "row": np.int64([1, -1]),
        "stride": np.float32(STRIDE),
        "half": np.float32(half),
        "side": np.float32(3 * STRIDE),
        "grow": np.float32(0.3),
    }
    node = helper.make_node
    nodes = [
        node("Conv", ["images", "kernel", "bias"], ["map"], strides=[STRIDE, STRIDE]),
        node("Shape", ["map"], ["map_shape"]),
        node("Gather", ["map_shape", "two"], ["rows"]),
        node("Gather", ["map_shape", "three"], ["columns"]),
        node("Range", ["zero", "columns", "one"], ["xs"]),
        node("Range", ["zero", "rows", "one"], ["ys"]),
        node("Reshape", ["xs", "row"], ["x_row"]),
        node("Reshape", ["ys", "column"], ["y_column"]),
        node("Mul", ["x_row", "zero"], ["x_none"]),
        node("Mul", ["y_column", "zero"], ["y_none"]),
        node("Add", ["x_row", "y_none"], ["x_cells"]),
        node("Add", ["y_column", "x_none"], ["y_cells"]),
        node("Cast", ["x_cells"], ["x_float"], to=TensorProto.FLOAT),
        node("Cast", ["y_cells"], ["y_float"], to=TensorProto.FLOAT),
        node("Concat", ["x_float", "y_float"], ["both"], axis=0),
        node("Reshape", ["both", "grid_shape"], ["cells"]),
        node("Mul", ["cells", "stride"], ["corners"]),
        node("Add", ["corners", "half"], ["centres"]),
        node("Reshape", ["map", "flat"], ["rows_flat"]),
        node("Split", ["rows_flat", "split"], ["offsets", "sizes", "logits"], axis=1),
        node("Tanh", ["offsets"], ["moved"]),
        node("Mul", ["moved", "half"], ["moves"]),
        node("Add", ["moves", "centres"], ["centre"]),
        node("Tanh", ["sizes"], ["grown"]),
        node("Mul", ["grown", "grow"], ["exponent"]),
        node("Exp", ["exponent"], ["factor"]),
        node("Mul", ["factor", "side"], ["extent"]),
        node("Sigmoid", ["logits"], ["scores"]),
        node("Concat", ["centre", "extent", "scores"], ["head"], axis=1),
    ]
    whole = all(isinstance(n, int) for n in size)
    anchors = int(size[0]) // STRIDE * (int(size[1]) // STRIDE) if whole else "A"
    graph = helper.make_graph(
        nodes,
        "tiny",
        [helper.make_tensor_value_info("images", TensorProto.FLOAT, [batch, 3, *size])],
        [helper.make_tensor_value_info("head", TensorProto.FLOAT, [batch, 7, anchors])],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    helper.set_model_props(model, {"names": str(dict(enumerate(NAMES))), "stride": str(stride)})
    onnx.checker.check_model(model)
    onnx.save(model, path)
    return path


def picture(height: int, width: int, *, seed: int = 0) -> np.ndarray:
    """`[H, W, 3]` uint8 RGB: red, green and blue rectangles on grey noise."""
    random = np.random.default_rng(seed)
    pixels = random.integers(90, 140, (height, width, 3), np.uint8)
    for color in range(3):
        top, left = (random.uniform(0, 0.7, 2) * (height, width)).astype(int)
        box = pixels[top : top + max(2, height // 4), left : left + max(2, width // 4)]
        box[...] = 0
        box[..., color] = 255
    return pixels
