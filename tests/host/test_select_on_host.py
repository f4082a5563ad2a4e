"""Patches that select, on the CPU, when their limits change between frames."""

import numpy as np
import pytest

from tests.patch_runs import read
from trtpatch.executors import make_executor
from trtpatch.verify import compare, load_cases, plan_case

LIMITS = [
    {"max_detections": 7},
    {"max_detections": 300, "pre_nms_topk": 90},
    {"max_detections": 1, "pre_nms_topk": 300},
    {"pre_nms_topk": 0},
]


@pytest.mark.parametrize(
    ("name", "case"),
    [
        ("select_nms", "crowd, 7 images"),
        ("select_soft_nms", "crowds, gaussian, a class"),
        ("select_topk", "different counts"),
    ],
)
def test_limits_change_between_frames(name, case, cubins):
    patch = read(name)
    (chosen,) = (one for one in load_cases(patch) if one.name == case)
    plan = plan_case(patch, chosen)
    (step,) = plan.patch_steps
    buffers = {setting.name: setting.buffer for setting in step.settings}
    walkers = [make_executor(which, plan, None, cubins=cubins) for which in ("host", "cpu")]
    for limits in LIMITS:
        outputs = []
        for walker in walkers:
            for tensor in step.tensors:
                if tensor.name in chosen.inputs:
                    walker.write(tensor.buffers[0], np.asarray(chosen.inputs[tensor.name]))
            for setting in limits.keys() & buffers.keys():
                walker.set(buffers[setting], limits[setting])
            walker.walk()
            names = [t for t in step.tensors if t.name.startswith("detections_")]
            outputs.append({t.name: walker.read(t.buffers[0]) for t in names})
        assert not any(one.wrong for one in compare(patch, *outputs)), limits
        assert outputs[0]["detections_count"].max() <= limits.get("max_detections", 1)
