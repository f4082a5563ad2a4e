"""How far float32 and TF32 take a model's outputs from those of float64, on the CPU.

    python benchmarks/rounding.py model.onnx ... --photos folder [--size 320x416] [--out folder]

What an engine may differ by from ONNX Runtime: about the sum of two float32 rows where it computes
in float32, and as much as the TF32 row where it multiplies in TF32. The photos are given as BGR
from 0 to 255; `--size` is the height and width where a model leaves them open.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import measure
import numpy as np
import onnx
import onnxruntime
from onnx.reference import ReferenceEvaluator
from onnx.reference.ops.op_conv import Conv as FloatConv
from PIL import Image

Outputs = list[np.ndarray]


class Conv(FloatConv):  # an operator is replaced by its name
    """A convolution of operands that are rounded to TF32; sums stay float32."""

    op_domain = ""

    def _run(self, x: np.ndarray, w: np.ndarray, *more: Any, **attributes: Any) -> Any:
        return super()._run(tf32(x), tf32(w), *more, **attributes)


def tf32(array: np.ndarray) -> np.ndarray:
    """float32 rounded to the nearest that has 10 bits of mantissa, ties to even."""
    bits = array.view(np.uint32)
    rounded = bits + np.uint32(0x0FFF) + ((bits >> np.uint32(13)) & np.uint32(1))
    return (rounded & np.uint32(0xFFFFE000)).view(np.float32)


def pictures(photos: Path, height: int, width: int) -> np.ndarray:
    """All photos of a folder: float32 `[N, 3, height, width]`, BGR from 0 to 255."""
    resized = [
        np.asarray(Image.open(path).convert("RGB").resize((width, height)), np.float32)
        for path in sorted(photos.glob("*.jpg"))
    ]
    return np.ascontiguousarray(np.stack(resized).transpose(0, 3, 1, 2)[:, ::-1])


def by_onnx_runtime(model: onnx.ModelProto, image: np.ndarray, *, optimised: bool) -> Outputs:
    levels = onnxruntime.GraphOptimizationLevel
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.graph_optimization_level = (
        levels.ORT_ENABLE_ALL if optimised else levels.ORT_DISABLE_ALL
    )
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), sess_options=options, providers=["CPUExecutionProvider"]
    )
    return session.run(None, {session.get_inputs()[0].name: image})


def compare(model: onnx.ModelProto, images: np.ndarray) -> dict[str, float]:
    """The largest difference from float64 over all outputs and images, for each way."""
    name = model.graph.input[0].name
    plain, rounded = ReferenceEvaluator(model), ReferenceEvaluator(model, new_ops=[Conv])
    ways = {
        "float32, ONNX Runtime": lambda image: by_onnx_runtime(model, image, optimised=True),
        "float32, ONNX Runtime, layer by layer": lambda image: by_onnx_runtime(
            model, image, optimised=False
        ),
        "float32, onnx.reference": lambda image: plain.run(None, {name: image}),
        "TF32 in every convolution": lambda image: rounded.run(None, {name: image}),
    }
    rows = dict.fromkeys(ways, 0.0)
    for image in np.split(images, len(images)):
        exact = plain.run(None, {name: image.astype(np.float64)})
        assert all(output.dtype == np.float64 for output in exact)
        for way, run in ways.items():
            for found, expected in zip(run(image), exact, strict=True):
                rows[way] = max(rows[way], float(np.abs(found - expected).max()))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", type=Path, nargs="+")
    parser.add_argument("--photos", type=Path, required=True)
    parser.add_argument("--size", default="320x416")
    parser.add_argument("--out")
    arguments = parser.parse_args()
    open_size = tuple(map(int, arguments.size.split("x")))
    results = {}
    for path in arguments.models:
        model = onnx.load(path)
        declared = [d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim][2:]
        size = tuple(declared) if all(declared) else open_size
        images = pictures(arguments.photos, *size)
        name = f"{path.stem}, {size[0]}x{size[1]}, {len(images)} photos"
        results[name] = compare(model, images)
        print(name, results[name], flush=True)
    print(measure.save("rounding", results, arguments.out))


if __name__ == "__main__":
    main()
