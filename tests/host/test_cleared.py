"""`clear: true`: kernels that count upwards find zeros in every frame, wherever the tensor lies."""

from pathlib import Path

import numpy as np
import pytest

from trtpatch.catalog import Patch
from trtpatch.engines import Tensor
from trtpatch.executors import Executor, make_executor
from trtpatch.plan import Plan
from trtpatch.planner import make_plan

GIVE = """\
summary: A class for each picture
kind: example
inputs: {frame: port}
outputs: {classification: port}
sizes: {K: 1}
launch:
  - {entry: give, over: [N], block: 32}
"""
COUNT = """\
summary: Count upwards
kind: example
inputs: {frame: port}
outputs:
  OUT: {dtype: float32, shape: [N, 1], clear: true}
scratch:
  tally: {dtype: int32, shape: [N], clear: true}
launch:
  - {entry: count, over: [N], block: 32}
"""
KERNELS = {
    "give": """
extern "C" __global__ void give(const Args args)
{
    if (threadIdx.x < args.N) args.classification_scores[threadIdx.x] = 0.5f;
}
""",
    "count": """
extern "C" __global__ void count(const Args args)
{
    if (threadIdx.x < args.N) args.OUT[threadIdx.x] += 1 + atomicAdd(&args.tally[threadIdx.x], 1);
}
""",
}
REFERENCES = {
    "give": "def give(args):\n    args.classification_scores[...] = 0.5\n",
    "count": "def count(args):\n    args.OUT += 1 + args.tally[:, None]\n    args.tally += 1\n",
}


def patch(folder: Path, name: str, contract: str, output: str = "") -> Patch:
    texts = {"patch.yaml": contract, "kernel.cu": KERNELS[name], "reference.py": REFERENCES[name]}
    (folder / name).mkdir()
    for file, text in texts.items():
        (folder / name / file).write_text(text.replace("OUT", output), encoding="utf-8")
    return Patch.read(folder / name)


def walked_twice(executor: str, plan: Plan, engine: object = None) -> Executor:
    walker = make_executor(executor, plan, engine)  # type: ignore[arg-type]
    walker.walk()
    walker.walk()
    return walker


@pytest.mark.parametrize("executor", ["cpu", "host"])
def test_a_result_is_cleared_before_each_frame(tmp_path: Path, executor: str) -> None:
    count = patch(tmp_path, "count", COUNT, "classification_scores")
    chain = [patch(tmp_path, "give", GIVE), count]
    plan = make_plan(chain, inputs={}, outputs={}, params={}, batch=2)
    buffer = plan.result_buffers["classification_scores"]
    assert plan.buffers[buffer].region == "result"
    assert walked_twice(executor, plan).read(buffer).tolist() == [[1], [1]]


@pytest.mark.parametrize("executor", ["cpu", "host"])
def test_an_input_of_the_engine_is_cleared_before_each_frame(tmp_path: Path, executor: str) -> None:
    class Engine:
        on_device = False

        def run(self, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
            return {"y": inputs["x"].copy()}

    chain = [patch(tmp_path, "count", COUNT, "image"), None, patch(tmp_path, "give", GIVE)]
    plan = make_plan(
        chain,
        inputs={"image": (Tensor("x", "float32", (2, 1)),)},
        outputs={"head": (Tensor("y", "float32", (2, 1)),)},
        params={},
        batch=2,
    )
    assert walked_twice(executor, plan, Engine()).read("engine.y").tolist() == [[1], [1]]
