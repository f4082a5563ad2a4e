"""What makes TensorRT-RTX's float32 differ from ONNX Runtime's, operator by operator.

    python benchmarks/tf32.py --model yolox_nano_416.onnx --photo photo.jpg [--out folder]

Every way of building runs in a process of its own, all at once: the environment variables are read
when the library loads. A convolution that is off by about 3e-4 of its largest value multiplies in
TF32, by about 1e-6 in float32; a sigmoid that is off by 1e-4 is an approximation. `rounding.py`
says what TF32 makes of a whole model.

A plan of TensorRT-RTX 1.4 records `tf32=0` in its header, and carries each convolution that is
followed by SiLU and by another convolution as a graph of its own, to be fused at load, whose header
records nothing of it: compare `2 conv 1x1 relu` with `2 conv 1x1 silu`.

Variables that begin with two underscores are not documented by NVIDIA; here they only tell causes
apart.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from trtpatch.errors import EngineError

MODEL, WRITTEN_OUT = "model", "model, sigmoids written out"


@dataclass(frozen=True)
class Way:
    """One way to build and run.

    Attributes:
        tf32: the builder's flag.
        flags: further flags of the builder.
        here: build for the GPU at hand alone.
        variables: environment of the process.
    """

    tf32: bool = False
    flags: tuple[str, ...] = ()
    here: bool = False
    variables: tuple[tuple[str, str], ...] = ()


WAYS = {
    "on": Way(tf32=True),
    "off": Way(),
    "override": Way(variables=(("NVIDIA_TF32_OVERRIDE", "0"),)),
    "this GPU": Way(here=True),
    "distributive": Way(flags=("DISTRIBUTIVE_INDEPENDENCE",)),
    "prefer f32": Way(variables=(("__LUNOWUD", "-autotune:tf32=prefer_f32"),)),
    "no approx": Way(variables=(("__LUNOWUD", "-kgen:sigmoid_approx=off"),)),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", type=Path)
    parser.add_argument("--photo", type=Path)
    parser.add_argument("--out")
    parser.add_argument("--way", choices=WAYS, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.way:
        run_way(arguments.folder, arguments.way)
        return
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        write_jobs(folder, arguments.model, arguments.photo)
        run_all(folder)
        rows = compare(folder)
    show(rows)
    import measure

    print(measure.save("tf32", rows, arguments.out))


def write_jobs(folder: Path, model: Path, photo: Path) -> None:
    """A folder a job, with `model.onnx` and `input.npy`."""
    import onnx

    picture = yolox_picture(photo)
    whole = onnx.load(model)
    jobs = operators()
    jobs |= {MODEL: (whole, picture), WRITTEN_OUT: (without_sigmoid(whole), picture)}
    for name, (one, array) in jobs.items():
        (folder / name).mkdir()
        onnx.save(one, folder / name / "model.onnx")
        np.save(folder / name / "input.npy", array)


def yolox_picture(photo: Path) -> np.ndarray:
    """The photo as YOLOX takes it: float32 `[1, 3, 416, 416]`, BGR from 0 to 255."""
    from PIL import Image

    pixels = np.asarray(Image.open(photo).convert("RGB").resize((416, 416)), np.float32)
    return np.ascontiguousarray(pixels.transpose(2, 0, 1)[None, ::-1])


def operators() -> dict[str, tuple[Any, np.ndarray]]:
    """Models of one operator or two, and noise for each."""
    from onnx import TensorProto, helper, numpy_helper

    random = np.random.default_rng(1)
    made = {}

    def add(name: str, nodes: list[Any], **weights: np.ndarray) -> None:
        shape = [1, 64, 52, 52]
        graph = helper.make_graph(
            nodes,
            "one",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, [None] * 4)],
            [numpy_helper.from_array(array, key) for key, array in weights.items()],
        )
        opset = [helper.make_opsetid("", 13)]
        model = helper.make_model(graph, opset_imports=opset, ir_version=8)
        made[name] = (model, random.standard_normal(shape, np.float32))

    def convs(count: int, activation: str = "", kernel: int = 1, group: int = 1) -> None:
        nodes, arrays, x = [], {}, "x"
        for i in range(count):
            arrays[f"w{i}"] = random.standard_normal((64, 64 // group, kernel, kernel), np.float32)
            arrays[f"b{i}"] = random.standard_normal(64, np.float32)
            made_of = [x, f"w{i}", f"b{i}"]
            x = "y" if i == count - 1 else f"x{i}"
            pads = [kernel // 2] * 4
            nodes.append(node("Conv", made_of, [f"c{i}"], pads=pads, group=group))
            if activation == "silu":
                nodes.append(node("Sigmoid", [f"c{i}"], [f"s{i}"]))
                nodes.append(node("Mul", [f"c{i}", f"s{i}"], [x]))
            else:
                nodes.append(node(activation or "Identity", [f"c{i}"], [x]))
        kind = "depthwise" if group > 1 else f"{kernel}x{kernel}"
        add(f"{count} conv {kind} {activation.lower()}".strip(), nodes, **arrays)

    node = helper.make_node
    convs(1)
    convs(1, kernel=3)
    convs(1, kernel=3, group=64)
    for activation in ("", "Relu", "silu"):
        convs(2, activation)
    convs(2, "silu", kernel=3)
    add(
        "matmul",
        [node("MatMul", ["x", "w"], ["y"])],
        w=random.standard_normal((52, 52), np.float32),
    )
    add("sigmoid", [node("Sigmoid", ["x"], ["y"])])
    add("silu", [node("Sigmoid", ["x"], ["s"]), node("Mul", ["x", "s"], ["y"])])
    add(
        "resize",
        [node("Resize", ["x", "", "f"], ["y"], mode="nearest")],
        f=np.float32([1, 1, 2, 2]),
    )
    return made


def without_sigmoid(model: Any) -> Any:
    """The model with every sigmoid as 1 / (1 + exp(-x))."""
    import onnx
    from onnx import helper, numpy_helper

    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    nodes = []
    for node in model.graph.node:
        if node.op_type != "Sigmoid":
            nodes.append(node)
            continue
        (x,), (y,) = node.input, node.output
        nodes += [
            helper.make_node("Neg", [x], [f"{y}.neg"]),
            helper.make_node("Exp", [f"{y}.neg"], [f"{y}.exp"]),
            helper.make_node("Add", [f"{y}.exp", "tf32.one"], [f"{y}.sum"]),
            helper.make_node("Div", ["tf32.one", f"{y}.sum"], [y]),
        ]
    del changed.graph.node[:]
    changed.graph.node.extend(nodes)
    changed.graph.initializer.append(numpy_helper.from_array(np.float32(1), "tf32.one"))
    return changed


def run_all(folder: Path) -> None:
    """Run every way in a process of its own."""
    running = []
    for name, way in WAYS.items():
        command = [sys.executable, __file__, "--way", name, "--folder", str(folder)]
        running.append(subprocess.Popen(command, env={**os.environ, **dict(way.variables)}))
    codes = [process.wait() for process in running]
    if any(codes):
        raise SystemExit("a way of building ended early; its errors stand above")


def run_way(folder: Path, name: str) -> None:
    """Build and run every job; the first output, or why there is none, goes to a file beside it."""
    for job in sorted(path.parent for path in folder.glob("*/input.npy")):
        plan = job / f"{name}.plan"
        try:
            plan.write_bytes(build(job / "model.onnx", WAYS[name]))
            np.save(job / f"{name}.npy", run(plan, np.load(job / "input.npy")))
        except (RuntimeError, EngineError) as error:
            why = " ".join(str(error).replace(f"{folder}/", "").split())
            (job / f"{name}.txt").write_text(why, encoding="utf-8")


def build(path: Path, way: Way) -> bytes:
    import tensorrt_rtx as trt

    from trtpatch.engines.trtlog import log_of

    log = log_of("tensorrt_rtx")
    builder = trt.Builder(log.logger)
    network = builder.create_network(1 << int(trt.NetworkDefinitionCreationFlag.STRONGLY_TYPED))
    parser = trt.OnnxParser(network, log.logger)
    if not parser.parse_from_file(str(path)):
        raise RuntimeError(f"{path}: {parser.get_error(0).desc()}")
    config = builder.create_builder_config()
    if not way.tf32:
        config.clear_flag(trt.BuilderFlag.TF32)
    for flag in way.flags:
        config.set_flag(getattr(trt.BuilderFlag, flag))
    if way.here:
        config.num_compute_capabilities = 1
        config.set_compute_capability(trt.ComputeCapability.CURRENT, 0)
    plan = builder.build_serialized_network(network, config)
    if plan is None:
        raise RuntimeError(f"{path}: no plan")
    return bytes(memoryview(plan))


def run(plan: Path, array: np.ndarray) -> np.ndarray:
    import cupy

    from trtpatch.engines import open_engine

    opened = open_engine(plan, gpu=True, cache_dir=plan.parent)
    engine = opened.at({tensor.name: array.shape for tensor in opened.info.inputs})
    stream = cupy.cuda.Stream(non_blocking=True)
    (source,), (target, *_) = engine.info.inputs, engine.info.outputs
    arrays = {t.name: cupy.zeros(t.shape, t.dtype) for t in engine.info.outputs}
    arrays[source.name] = cupy.asarray(array)
    cupy.cuda.Device().synchronize()
    engine.enqueue({name: one.data.ptr for name, one in arrays.items()}, stream.ptr)
    stream.synchronize()
    found = arrays[target.name].get()
    opened.close()
    return found


def reference(path: Path, array: np.ndarray) -> np.ndarray:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(
        str(path), sess_options=options, providers=["CPUExecutionProvider"]
    )
    return session.run(None, {session.get_inputs()[0].name: array})[0]


def compare(folder: Path) -> dict[str, dict[str, Any]]:
    """For each job and way the largest difference, as a part of the largest value, or an error."""
    rows: dict[str, dict[str, Any]] = {}
    for job in sorted(path.parent for path in folder.glob("*/input.npy")):
        expected = reference(job / "model.onnx", np.load(job / "input.npy"))
        row = rows.setdefault(job.name, {})
        scores = rows.setdefault(f"{job.name}: scores", {}) if job.name.startswith(MODEL) else {}
        for way in WAYS:
            failed = job / f"{way}.txt"
            if failed.is_file():
                row[way] = scores[way] = failed.read_text(encoding="utf-8")
                continue
            found = np.load(job / f"{way}.npy")
            row[way] = float(np.abs(found - expected).max() / np.abs(expected).max())
            if job.name.startswith(MODEL):
                pair = [one[..., 4:5] * one[..., 5:] for one in (found, expected)]
                scores[way] = float(np.abs(pair[0] - pair[1]).max())
    return rows


def show(rows: dict[str, dict[str, Any]]) -> None:
    print(f"{'':36}" + "".join(f"{way:>14}" for way in WAYS))
    for name, row in rows.items():
        cells = [f"{v:14.1e}" if isinstance(v, float) else f"{'failed':>14}" for v in row.values()]
        print(f"{name:36}" + "".join(cells))
    for name, row in rows.items():
        for way, why in row.items():
            if isinstance(why, str):
                print(f"\n{name}, {way}, failed:\n{why}")


if __name__ == "__main__":
    main()
