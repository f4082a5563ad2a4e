"""ONNX Runtime's NonMaxSuppression, as an oracle."""

from functools import cache

import numpy as np
import onnxruntime
from onnx import TensorProto, helper

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64


@cache
def session():
    inputs = {"boxes": FLOAT, "scores": FLOAT, "most": INT64, "iou": FLOAT, "score": FLOAT}
    graph = helper.make_graph(
        [helper.make_node("NonMaxSuppression", list(inputs), ["selected"])],
        "nms",
        [helper.make_tensor_value_info(name, kind, None) for name, kind in inputs.items()],
        [helper.make_tensor_value_info("selected", INT64, None)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)
    return onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )


def operator(boxes, scores, classes, threshold):
    """Anchors that the operator keeps, by score; an anchor takes part in its own class alone."""
    count = len(scores)
    table = np.full((1, max(classes) + 1, count), -1, np.float32)
    table[0, classes, np.arange(count)] = scores
    feeds = {
        "boxes": np.float32(boxes)[None],
        "scores": table,
        "most": np.int64([count]),
        "iou": np.float32([threshold]),
        "score": np.float32([-0.5]),
    }
    (selected,) = session().run(None, feeds)
    anchors = selected[:, 2]
    return sorted(anchors.tolist(), key=lambda anchor: (-scores[anchor], anchor))
