"""ONNX Runtime's engine against ONNX Runtime itself, and its refusals on real and planted files."""

import logging

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from trtpatch.engines import open_engine
from trtpatch.engines.inspection import inspect
from trtpatch.engines.options import BuildOptions
from trtpatch.errors import EngineError

FLOAT = TensorProto.FLOAT


def save(path, nodes, inputs, outputs, *, initializers=(), opset=17, domains=(), ir=8):
    graph = helper.make_graph(list(nodes), "g", list(inputs), list(outputs), list(initializers))
    opsets = [helper.make_opsetid("", opset), *(helper.make_opsetid(d, 1) for d in domains)]
    path.write_bytes(
        helper.make_model(graph, opset_imports=opsets, ir_version=ir).SerializeToString()
    )
    return path


def value(name, shape, dtype=FLOAT):
    return helper.make_tensor_value_info(name, dtype, shape)


def noise(shape, dtype=np.float32):
    return np.random.default_rng(3).random(shape, np.float64).astype(dtype) * 255


def session(path, **changes):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(
        str(path), sess_options=options, providers=["CPUExecutionProvider"], **changes
    )


@pytest.mark.parametrize(
    ("name", "shapes"),
    [
        ("yolox_nano_416", {"images": (1, 3, 416, 416)}),
        ("nanodet_m_416", {"input.1": (1, 3, 416, 416)}),
        ("yunet_n_dynamic", {"input": (2, 3, 320, 416)}),
        ("ppocrv6_det_tiny", {"x": (1, 3, 96, 160)}),
        (
            "deimv2_atto_320_dequant",
            {"images": (1, 3, 320, 320), "orig_target_sizes": (1, 2)},
        ),
    ],
)
def test_real_models_give_what_onnx_runtime_gives(assets, name, shapes):
    path = assets / "models" / f"{name}.onnx"
    engine = open_engine(path, gpu=False)
    ready = engine.at(shapes)
    assert (engine.info.kind, ready.on_device, ready.needs_inputs) == ("ort", False, True)
    prepared = {output.name: output for output in ready.info.outputs}
    inputs = {
        tensor.name: noise(shapes[tensor.name], np.dtype(tensor.dtype))
        for tensor in engine.info.inputs
    }
    reference = session(path)
    names = [output.name for output in reference.get_outputs()]
    expected = dict(zip(names, reference.run(names, inputs), strict=True))
    for _ in range(2):
        outputs = ready.run(inputs)
        assert list(outputs) == names
        for key, array in expected.items():
            np.testing.assert_array_equal(outputs[key], array)
            assert prepared[key].shape == array.shape
            assert prepared[key].dtype == array.dtype.name


def test_the_same_pictures_give_the_same_bits(assets):
    path = assets / "models" / "yolox_nano_416.onnx"
    pictures = noise((1, 3, 416, 416))
    results = []
    for _ in range(3):
        engine = open_engine(path, gpu=False).at({"images": pictures.shape})
        results.append(engine.run({"images": pictures})["output"].tobytes())
    assert len(set(results)) == 1


def test_strided_inputs_are_never_read_as_if_contiguous(assets):
    engine = open_engine(assets / "models" / "yunet_n_dynamic.onnx", gpu=False)
    engine = engine.at({"input": (1, 3, 64, 96)})
    pictures = noise((1, 64, 96, 3)).transpose(0, 3, 1, 2)
    assert not pictures.flags.c_contiguous
    expected = engine.run({"input": np.ascontiguousarray(pictures)})
    for name, array in engine.run({"input": pictures}).items():
        np.testing.assert_array_equal(array, expected[name])


class TestInputShape:
    """A file that declares 10x3x32x32, with its weights among its inputs, as CenterFace does."""

    @pytest.fixture
    def path(self, tmp_path):
        weights = np.random.default_rng(1).random((4, 3, 3, 3), np.float32)
        return save(
            tmp_path / "conv.onnx",
            [
                helper.make_node("Conv", ["x", "w"], ["mid"], pads=[1] * 4, strides=[2, 2]),
                helper.make_node("Sigmoid", ["mid"], ["y"]),
            ],
            [value("x", (10, 3, 32, 32)), value("w", weights.shape)],
            [value("y", (10, 4, 16, 16))],
            initializers=[numpy_helper.from_array(weights, "w")],
            opset=9,
            ir=4,
        )

    @pytest.mark.parametrize("given", [(1, 3, 480, 640), {"x": (1, 3, 480, 640)}])
    def test_it_overrides_what_the_file_declares(self, path, given):
        engine = open_engine(path, gpu=False, options=BuildOptions(input_shape=given))
        assert [t.shape for t in engine.info.inputs] == [(1, 3, 480, 640)]
        assert [t.shape for t in engine.info.outputs] == [(1, 4, 240, 320)]
        engine = engine.at({"x": (1, 3, 480, 640)})
        assert [t.shape for t in engine.info.outputs] == [(1, 4, 240, 320)]
        whole = noise((1, 3, 480, 640)) / 255
        found = engine.run({"x": whole})["y"]
        # The declared size is a lie, so the file itself runs on a tile of the picture too.
        tile = session(path).run(None, {"x": np.repeat(whole[..., :32, :32], 10, axis=0)})[0]
        np.testing.assert_allclose(found[0, :, :15, :15], tile[0, :, :15, :15], atol=1e-6)

    def test_a_shape_that_the_network_cannot_take(self, path):
        engine = open_engine(path, gpu=False, options=BuildOptions(input_shape=(1, 5, 32, 32)))
        with pytest.raises(
            EngineError, match=r"conv\.onnx: ONNX Runtime cannot run it on x \[1, 5"
        ):
            engine.at({"x": (1, 5, 32, 32)})

    def test_a_shape_of_other_axes(self, path):
        with pytest.raises(EngineError, match="has 3 axes, which none of its inputs has"):
            open_engine(path, gpu=False, options=BuildOptions(input_shape=(3, 32, 32)))

    def test_with_weights_in_a_file_of_their_own(self, path, tmp_path):
        away = tmp_path / "sub folder ü" / "conv.onnx"
        away.parent.mkdir()
        onnx.save(
            onnx.load(path), away, save_as_external_data=True, location="w.bin", size_threshold=0
        )
        engine = open_engine(away, gpu=False, options=BuildOptions(input_shape=(2, 3, 64, 64)))
        engine = engine.at({"x": (2, 3, 64, 64)})
        assert engine.run({"x": noise((2, 3, 64, 64))})["y"].shape == (2, 4, 32, 32)


def test_open_output_sizes_are_measured(assets):
    engine = open_engine(assets / "models" / "yunet_n_dynamic.onnx", gpu=False)
    assert engine.info.outputs[0].shape == (-1, -1, 1)
    assert engine.at({"input": (3, 3, 64, 128)}).info.outputs[0].shape == (3, 128, 1)
    assert engine.at({"input": (1, 3, 32, 32)}).info.outputs[0].shape == (1, 16, 1)


def test_a_shape_that_breaks_inside_the_network(tmp_path):
    path = save(
        tmp_path / "m.onnx",
        [helper.make_node("Reshape", ["x", "shape"], ["y"])],
        [value("x", ("n",))],
        [value("y", (2, 3))],
        initializers=[numpy_helper.from_array(np.array([2, 3]), "shape")],
    )
    engine = open_engine(path, gpu=False)
    assert engine.at({"x": (6,)}).info.outputs[0].shape == (2, 3)
    with pytest.raises(EngineError, match=r"ONNX Runtime cannot run it on x \[7\]: .*Reshape"):
        engine.at({"x": (7,)})


def test_an_output_whose_size_depends_on_the_data_is_refused(tmp_path):
    path = save(
        tmp_path / "nms.onnx",
        [helper.make_node("NonZero", ["x"], ["y"])],
        [value("x", (4, 8))],
        [value("y", (2, None), TensorProto.INT64)],
    )
    engine = open_engine(path, gpu=False)
    with pytest.raises(EngineError, match="output y int64 .* depends on what is in the picture"):
        engine.at({"x": (4, 8)})


def test_an_output_that_changes_its_size_later_is_refused(tmp_path):
    """Rows where x > 2: neither zeros nor noise in 0..1 find any difference to 1 row."""
    one = numpy_helper.from_array(np.array([3.0], np.float32), "one")
    two = numpy_helper.from_array(np.array(2.0, np.float32), "two")
    path = save(
        tmp_path / "late.onnx",
        [
            helper.make_node("Concat", ["x", "one"], ["all"], axis=0),
            helper.make_node("Greater", ["all", "two"], ["high"]),
            helper.make_node("NonZero", ["high"], ["y"]),
        ],
        [value("x", (8,))],
        [value("y", (1, None), TensorProto.INT64)],
        initializers=[one, two],
    )
    engine = open_engine(path, gpu=False).at({"x": (8,)})
    assert engine.info.outputs[0].shape == (1, 1)
    with pytest.raises(EngineError, match=r"came out as \[1, 9\], not \[1, 1\]"):
        engine.run({"x": np.full(8, 5, np.float32)})


class TestFilesThatDoNotRun:
    def refusal(self, path) -> str:
        with pytest.raises(EngineError) as error:
            open_engine(path, gpu=False)
        assert str(error.value).startswith(f"{path}: ")
        assert "/onnxruntime_src/" not in str(error.value)
        return str(error.value)

    def test_a_plugin_is_named(self, tmp_path):
        node = helper.make_node("EfficientNMS_TRT", ["x"], ["y"], domain="nvinfer")
        path = save(
            tmp_path / "m.onnx",
            [node],
            [value("x", (1, 4))],
            [value("y", (1, 4))],
            domains=["nvinfer"],
        )
        assert "has no operator 'nvinfer:EfficientNMS_TRT'" in self.refusal(path)

    def test_an_unknown_operator_is_named(self, tmp_path):
        node = helper.make_node("Gelato", ["x"], ["y"])
        path = save(tmp_path / "m.onnx", [node], [value("x", (1, 4))], [value("y", (1, 4))])
        assert "has no operator 'Gelato'" in self.refusal(path)

    def test_an_operator_without_an_implementation_is_named(self, tmp_path):
        kind = TensorProto.BFLOAT16
        node = helper.make_node("Relu", ["x"], ["y"])
        path = save(
            tmp_path / "m.onnx", [node], [value("x", (1, 4), kind)], [value("y", (1, 4), kind)]
        )
        assert "has no operator 'Relu'" in self.refusal(path)

    @pytest.mark.parametrize(("versions", "message"), [({"opset": 99}, "99"), ({"ir": 99}, "99")])
    def test_a_file_from_the_future(self, tmp_path, versions, message):
        node = helper.make_node("Relu", ["x"], ["y"])
        path = save(
            tmp_path / "m.onnx", [node], [value("x", (1, 4))], [value("y", (1, 4))], **versions
        )
        assert message in self.refusal(path)

    def test_missing_weights_are_named(self, tmp_path):
        path = tmp_path / "m.onnx"
        weights = numpy_helper.from_array(np.ones((4, 4), np.float32), "w")
        save(
            path,
            [helper.make_node("MatMul", ["x", "w"], ["y"])],
            [value("x", (1, 4))],
            [value("y", (1, 4))],
            initializers=[weights],
        )
        onnx.save(
            onnx.load(path), path, save_as_external_data=True, location="w.bin", size_threshold=0
        )
        (tmp_path / "w.bin").unlink()
        assert "missing beside it: w.bin" in self.refusal(path)


def test_class_names_come_from_the_file(assets):
    info = inspect(assets / "graphs" / "yolov8n.onnx")
    assert (len(info.metadata.names), info.metadata.stride) == (80, 32)
    assert info.metadata.extra["task"] == "detect"
    assert [str(t) for t in info.outputs] == ["output0 float32 [1, 84, 8400]"]
    assert (info.flavour, info.version) == ("onnx", "opset 17")


def test_opening_says_nothing_on_the_terminal(assets, capfd, caplog):
    with caplog.at_level(logging.WARNING):
        open_engine(assets / "models" / "yunet_n_dynamic.onnx", gpu=False)
    assert capfd.readouterr() == ("", "")
    assert not caplog.records


def test_an_input_of_a_type_that_numpy_lacks(tmp_path):
    constant = numpy_helper.from_array(np.zeros((1, 7, 64), np.float32), "c")
    path = save(
        tmp_path / "text.onnx",
        [helper.make_node("Identity", ["c"], ["head"])],
        [value("images", ["N", 3, 64, 64]), value("words", ["N"], TensorProto.STRING)],
        [value("head", ["N", 7, 64])],
        initializers=[constant],
    )
    engine = open_engine(path, gpu=False)
    with pytest.raises(EngineError, match=r"input words .* cannot be made for a trial run"):
        engine.at({"images": (1, 3, 64, 64), "words": (1,)})
