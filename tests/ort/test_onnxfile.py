"""What is read from ONNX files, real and damaged, and what is changed in them."""

import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

import trtpatch
from trtpatch.engines.onnxfile import read_onnx, with_input_shapes
from trtpatch.errors import EngineError


def shape_of(value) -> tuple[int, ...]:
    dims = value.type.tensor_type.shape.dim
    return tuple(d.dim_value if d.HasField("dim_value") else -1 for d in dims)


def conv(*, weights_as_inputs=False, declared=(10, 3, 32, 32), **save) -> onnx.ModelProto:
    """A convolution of stride 2, declared for one size; old exporters list weights as inputs."""
    weights = np.random.default_rng(1).random((4, 3, 3, 3), np.float32)
    node = helper.make_node("Conv", ["x", "w"], ["mid"], pads=[1, 1, 1, 1], strides=[2, 2])
    out = helper.make_node("Relu", ["mid"], ["y"], name="relu")
    n, _, height, width = declared
    half = [n, 4, height // 2, width // 2]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, declared)]
    if weights_as_inputs:
        inputs.append(helper.make_tensor_value_info("w", TensorProto.FLOAT, weights.shape))
    graph = helper.make_graph(
        [node, out],
        "g",
        inputs,
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, half)],
        initializer=[numpy_helper.from_array(weights, "w")],
        value_info=[helper.make_tensor_value_info("mid", TensorProto.FLOAT, half)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=7)
    helper.set_model_props(model, {"names": "{0: 'cat', 1: 'dog'}", "stride": "2", "task": "d"})
    return model


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "conv.onnx"
    onnx.save(conv(weights_as_inputs=True), path)
    return path


def test_a_missing_onnx_package_is_named_with_the_command_that_installs_it(saved):
    root = Path(trtpatch.__file__).parents[1]
    code = "import sys; sys.path.insert(0, sys.argv[1])\n"
    code += "from pathlib import Path; from trtpatch.engines.onnxfile import read_onnx\n"
    code += "read_onnx(Path(sys.argv[2]))"
    bare = [sys.executable, "-S", "-c", code, root, saved]
    last = subprocess.run(bare, capture_output=True, text=True).stderr.splitlines()[-1]
    assert last.startswith(f"trtpatch.errors.EngineError: {saved}: ")
    assert last.endswith("pip install onnx onnxruntime")


def test_every_asset_is_read_as_onnx_reads_it(assets):
    paths = sorted([*assets.glob("models/*.onnx"), *assets.glob("graphs/*.onnx")])
    assert len(paths) > 30
    for path in paths:
        model, expected = read_onnx(path), onnx.load(path)
        weights = {tensor.name for tensor in expected.graph.initializer}
        for found, values in (
            (model.inputs, [v for v in expected.graph.input if v.name not in weights]),
            (model.outputs, expected.graph.output),
        ):
            assert [t.name for t in found] == [v.name for v in values], path
            assert [t.shape for t in found] == [shape_of(v) for v in values], path
            for tensor, value in zip(found, values, strict=True):
                dtype = helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
                assert tensor.dtype == dtype.name, path
        assert model.opset == next(o.version for o in expected.opset_import if not o.domain), path
        entries = {entry.key: entry.value for entry in expected.metadata_props}
        if "names" in entries:
            assert model.metadata.stride == int(entries["stride"])
            assert len(model.metadata.names) == entries["names"].count(": '")
        else:
            assert not model.metadata.names


def test_other_shapes_change_nothing_else(saved):
    model = read_onnx(saved)
    before = onnx.load(saved)
    after = onnx.load_from_string(with_input_shapes(model, {"x": (1, 3, 480, 640)}))
    assert shape_of(after.graph.input[0]) == (1, 3, 480, 640)
    assert shape_of(after.graph.output[0]) == (-1, -1, -1, -1)
    assert not after.graph.value_info
    for part in ("node", "initializer", "name"):
        assert getattr(after.graph, part) == getattr(before.graph, part)
    assert after.graph.input[1] == before.graph.input[1]
    assert (after.metadata_props, after.opset_import) == (
        before.metadata_props,
        before.opset_import,
    )
    onnx.checker.check_model(after)


@pytest.mark.parametrize("shape", [(1, 3, 2**31, 2**40), (-1, 3, -1, 128)])
def test_sizes_of_any_magnitude(saved, shape):
    data = with_input_shapes(read_onnx(saved), {"x": shape})
    assert shape_of(onnx.load_from_string(data).graph.input[0]) == shape


def test_weights_among_the_inputs_are_no_inputs(saved):
    assert [tensor.name for tensor in read_onnx(saved).inputs] == ["x"]


def test_weights_in_files_of_their_own_are_named(tmp_path):
    path = tmp_path / "conv.onnx"
    onnx.save(conv(), path, save_as_external_data=True, location="conv.weights", size_threshold=0)
    assert read_onnx(path).external == ("conv.weights",)
    (tmp_path / "conv.weights").unlink()
    with pytest.raises(EngineError, match=r"files of their own, and these are missing .*: conv\.w"):
        read_onnx(path)


def test_a_truncated_file_is_named(assets, tmp_path):
    data = (assets / "models" / "yolox_nano_416.onnx").read_bytes()
    path = tmp_path / "yolox.onnx"
    for size in (20, 1000, len(data) // 2, len(data) - 1):
        path.write_bytes(data[:size])
        with pytest.raises(EngineError, match=f"truncated or damaged after {size} bytes"):
            read_onnx(path)


def test_written_through_a_text_mode_file(assets, tmp_path):
    data = (assets / "models" / "yolox_nano_416.onnx").read_bytes()
    path = tmp_path / "yolox.onnx"
    path.write_bytes(data.replace(b"\n", b"\r\n"))
    with pytest.raises(EngineError, match="text-mode write"):
        read_onnx(path)


def test_a_model_without_a_graph(tmp_path):
    path = tmp_path / "empty.onnx"
    path.write_bytes(onnx.ModelProto(ir_version=8, producer_name="x").SerializeToString())
    with pytest.raises(EngineError, match="holds no graph"):
        read_onnx(path)


SMALL = conv().SerializeToString()


@settings(
    max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    changes=st.dictionaries(st.integers(0, len(SMALL) - 1), st.integers(0, 255), max_size=6),
    size=st.integers(3, len(SMALL)),
)
@example(changes={}, size=len(SMALL))
def test_damaged_bytes_end_in_a_message_and_nothing_else(tmp_path, changes, size):
    data = bytearray(SMALL)
    for at, byte in changes.items():
        data[at] = byte
    path = tmp_path / "damaged.onnx"
    path.write_bytes(data[:size])
    with suppress(EngineError):
        model = read_onnx(path)
        with_input_shapes(model, {tensor.name: (1, 3, 8, 8) for tensor in model.inputs})
