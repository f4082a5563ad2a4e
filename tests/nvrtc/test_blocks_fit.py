"""Launches whose blocks want more registers than a GPU has are refused before CUDA does."""

from pathlib import Path

import pytest

from tests.patch_runs import PATCHES, read
from trtpatch.catalog import Patch
from trtpatch.compiler.compile import compile_unit
from trtpatch.errors import CompileError
from trtpatch.executors.kernels import refuse_hungry_blocks
from trtpatch.plan import PatchStep
from trtpatch.unit import make_unit
from trtpatch.verify import Case, load_cases, plan_case

EVERY_ARCHITECTURE_HAS = 65536

CONTRACT = """\
summary: Sums
kind: decode
inputs: {values: {dtype: float32, shape: [N, 96]}}
outputs: {total: {dtype: float32, shape: [N]}}
launch: [{entry: decode_hungry, grid: [N], block: 1024}]
"""

KERNEL = """\
extern "C" __global__ void decode_hungry(const Args args)
{
    float held[96];
    for (int i = 0; i < 96; ++i) held[i] = args.values[i] + threadIdx.x;
    __syncthreads();
    float total = 0.0f;
    for (int i = 95; i >= 0; --i) total = held[i] / (total + 1.0f);
    if (total > 0.5f) args.total[blockIdx.x] = total;
}
"""


def step_of(patch: Patch, case: Case) -> PatchStep:
    return next(plan_case(patch, case).patch_steps)


def test_a_block_that_is_too_hungry_is_named(tmp_path: Path) -> None:
    import numpy as np

    folder = tmp_path / "decode_hungry"
    folder.mkdir()
    (folder / "patch.yaml").write_text(CONTRACT, encoding="utf-8")
    case = Case("any", {"values": np.zeros((1, 96), np.float32)})
    for bounds, refused in (("", True), ("__launch_bounds__(1024) ", False)):
        kernel = KERNEL.replace("decode_hungry(", f"{bounds}decode_hungry(")
        (folder / "kernel.cu").write_text(kernel, encoding="utf-8")
        step = step_of(Patch.read(folder), case)
        cubin = compile_unit(make_unit(step), arch="sm_90")
        if not refused:
            refuse_hungry_blocks(step, cubin, EVERY_ARCHITECTURE_HAS)
            continue
        with pytest.raises(CompileError, match=r"decode_hungry is launched in blocks of 1024"):
            refuse_hungry_blocks(step, cubin, EVERY_ARCHITECTURE_HAS)


@pytest.mark.parametrize("name", PATCHES)
def test_no_built_in_block_is_too_hungry(name: str) -> None:
    patch = read(name)
    seen = set()
    for case in load_cases(patch):
        step = step_of(patch, case)
        unit = make_unit(step)
        variant = tuple(sorted((k, str(v)) for k, v in step.params.items() if v != ()))
        if variant not in seen:  # one size of each variant of the kernel
            seen.add(variant)
            refuse_hungry_blocks(step, compile_unit(unit, arch="sm_90"), EVERY_ARCHITECTURE_HAS)
