"""Patches whose kernels count upwards from `clear: true`, walked twice."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from trtpatch.catalog import Patch
from trtpatch.engines import EngineInfo, Tensor
from trtpatch.executors import make_executor
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


class Echo:
    """An engine that gives what it takes."""

    info = EngineInfo("recorded", "echo", "echo", "1", (), ())
    on_device = False
    needs_inputs = True

    def run(self, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        return {"y": inputs["x"].copy()}


def walked_twice(executor: str, plan: Plan, buffer: str) -> list[list[float]]:
    """What is in a buffer of a plan then."""
    walker = make_executor(executor, plan, Echo())  # type: ignore[arg-type]
    try:
        walker.walk()
        walker.walk()
        return walker.read(buffer).tolist()
    finally:
        walker.close()


def counted_result(folder: Path, executor: str) -> list[list[float]]:
    """A result, counted up by a patch behind the one that gives the port: [[1], [1]]."""
    count = patch(folder, "count", COUNT, "classification_scores")
    plan = make_plan(
        [patch(folder, "give", GIVE), count], inputs={}, outputs={}, params={}, batch=2
    )
    buffer = plan.result_buffers["classification_scores"]
    assert plan.buffers[buffer].region == "result"
    return walked_twice(executor, plan, buffer)


def counted_input(folder: Path, executor: str) -> list[list[float]]:
    """An input of the engine, counted up by the patch before it: [[1], [1]]."""
    plan = make_plan(
        [patch(folder, "count", COUNT, "image"), None, patch(folder, "give", GIVE)],
        inputs={"image": (Tensor("x", "float32", (2, 1)),)},
        outputs={"head": (Tensor("y", "float32", (2, 1)),)},
        params={},
        batch=2,
    )
    return walked_twice(executor, plan, "engine.y")
