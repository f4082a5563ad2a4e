"""resize_feature against ONNX Runtime's Resize."""

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.patch_runs import run
from trtpatch.errors import MatchError

MODES = ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric")


def by_operator(features, size, coordinates):
    node = helper.make_node(
        "Resize",
        ["x", "", "", "sizes"],
        ["y"],
        mode="linear",
        coordinate_transformation_mode=coordinates,
    )
    sizes = [*features.shape[:2], *size]
    graph = helper.make_graph(
        [node],
        "resize",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, features.shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, sizes)],
        [numpy_helper.from_array(np.int64(sizes), "sizes")],
    )
    opset = helper.make_opsetid("", 17)
    model = helper.make_model(graph, opset_imports=[opset], ir_version=9)
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return session.run(None, {"x": features})[0]


@pytest.mark.parametrize("coordinates", MODES)
@pytest.mark.parametrize("given", [(1, 1), (1, 7), (5, 9), (40, 33)])
@pytest.mark.parametrize("wanted", [(1, 1), (2, 5), (5, 9), (64, 100)])
def test_features_are_resized_as_by_the_operator(given, wanted, coordinates):
    random = np.random.default_rng(sum(given))
    features = random.normal(0, 1, (2, 3, *given)).astype(np.float32)
    params = {"height": wanted[0], "width": wanted[1], "coordinates": coordinates}
    found = run("resize_feature", {"features": features}, params)["resized"]
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, by_operator(features, wanted, coordinates), atol=2e-5)


def test_a_size_that_the_engines_input_does_not_have():
    features = np.zeros((1, 3, 8, 8), np.float32)
    shapes = {"resized": (1, 3, 16, 16)}
    with pytest.raises(MatchError, match=r"H is 16 in a shape, but 'height \+ .*' 17"):
        run("resize_feature", {"features": features}, {"height": 17, "width": 16}, shapes)
