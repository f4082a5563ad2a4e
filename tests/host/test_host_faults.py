"""What would hang or kill a launch ends it with a place, and the process goes on."""

import numpy as np
import pytest

from tests.host_units import FILE
from trtpatch.errors import CompileError
from trtpatch.executors.host_unit import LaunchError

KERNEL = 'extern "C" __global__ void kernel(const Args args)\n{\n'


def fault(bench, body, *, at, kind, match, block=32, **fields):
    """Run a body, which begins on line 3, and expect a fault on the line that holds `at`."""
    fields = {"out": np.zeros(64, np.float32), **fields}
    text = KERNEL + body + "\n}"
    line = text[: text.index(at)].count("\n") + 1
    for seed in (0, 1, 2):
        with pytest.raises(LaunchError, match=match) as caught:
            bench.run(text, block=block, seed=seed, **fields)
        assert (caught.value.kind, caught.value.file) == (kind, FILE)
        assert caught.value.line == line
        assert str(caught.value).startswith(f"{FILE}:{line}: ")
    bench.run(KERNEL + "args.out[threadIdx.x] = 1; __syncthreads(); }", block=64, out=fields["out"])
    assert fields["out"].all()


def test_a_barrier_in_a_branch(bench):
    body = "if (threadIdx.x < 7)\n    __syncthreads();\nargs.out[threadIdx.x] = 1;"
    fault(bench, body, at="__sync", kind="divergence", match="7 of 32 threads wait .*; 25 returned")


def test_a_barrier_after_an_early_return(bench):
    body = "if (threadIdx.x >= 50) return;\n__syncthreads();"
    fault(bench, body, at="__sync", kind="divergence", match="50 of 64 .*14 returned", block=64)


def test_two_barriers_in_two_branches(bench):
    body = (
        "if (threadIdx.x % 2) {\n__syncthreads();\n} else {\nargs.out[0] = 1;\n"
        "__syncthreads_or(1);\n}"
    )
    match = "16 of 32 .*__syncthreads_or .*:7.*16 of 32 .*__syncthreads .*:4"
    fault(bench, body, at="__syncthreads_or", kind="divergence", match=match)


def test_a_barrier_against_a_warp_call(bench):
    body = "if (threadIdx.x < 16)\n__syncthreads();\nelse\n__syncwarp();"
    fault(
        bench, body, at="__syncthreads", kind="divergence", match="__syncthreads.*__syncwarp.*mask"
    )


def test_dynamic_shared_memory_past_what_the_launch_asks_for(bench):
    text = KERNEL + "extern __shared__ int all[];\nall[threadIdx.x] = 1;\n}"
    out = np.zeros(1, np.float32)
    bench.run(text, shared_bytes=128, out=out)
    for asked in (0, 32):
        message = f"writes byte {asked} of dynamic shared memory; .* asks for {asked} bytes"
        with pytest.raises(LaunchError, match=message) as caught:
            bench.run(text, shared_bytes=asked, out=out)
        assert caught.value.kind == "out-of-bounds"


def test_a_shuffle_of_some_lanes_with_a_mask_of_all(bench):
    body = "if (threadIdx.x < 16)\nargs.out[0] = __shfl_down_sync(0xffffffffu, 1.0f, 1);"
    fault(bench, body, at="__shfl", kind="mask", match="lanes 0xffff0000, which have returned")


def test_a_shuffle_that_reads_a_lane_that_is_not_there(bench):
    body = "float x = 1.0f;\nx += __shfl_down_sync(0xffffffffu, x, 16);\nargs.out[0] = x;"
    fault(bench, body, at="__shfl", kind="mask", match="lane 4 reads lane 20", block=20)


def test_a_mask_without_the_caller(bench):
    body = "args.out[0] = __ballot_sync(0xfffffff0u, 1);"
    fault(bench, body, at="__ballot", kind="mask", match="does not name the calling lane")


def test_a_strange_width(bench):
    body = "args.out[0] = __shfl_sync(0xffffffffu, 1.0f, 0, 12);"
    fault(bench, body, at="__shfl", kind="width", match="width 12 is not a power of two")


def test_an_unaligned_vector(bench):
    body = "args.out[0] = reinterpret_cast<const float4*>(args.out + 1)->x;"
    fault(bench, body, at="reinterpret", kind="alignment", match="float4.* 16 bytes and is 4 past")


def test_a_null_pointer(bench):
    body = "const float* p = threadIdx.x > 40 ? args.out : nullptr;\nargs.out[1] = *p;"
    fault(bench, body, at="*p;", kind="null", match="null pointer")


def test_an_integer_divided_by_zero(bench):
    body = "args.out[0] = 7 / (int)args.out[2];"
    out = np.ones(64, np.float32)
    out[2] = 0
    text = KERNEL + body + "\n}"
    with pytest.raises(LaunchError, match="divided by zero") as caught:
        bench.run(text, out=out)
    assert caught.value.kind == "division"


def test_assert_and_trap(bench):
    fault(bench, "assert(threadIdx.x < 5);", at="assert", kind="assert", match="threadIdx.x < 5")
    fault(bench, "if (threadIdx.x == 9)\n__trap();", at="__trap", kind="trap", match="stopped")


@pytest.mark.parametrize(
    ("sizes", "match"),
    [
        ({"block": 1025}, "1 to 1024 threads"),
        ({"block": (1, 1, 65)}, "z to 64"),
        ({"grid": (1, 65536)}, "not within"),
        ({"grid": 0}, "not within"),
        ({"shared_bytes": 240_000}, "more than 232448"),
        ({"entry": "missing"}, "no such kernel; there are kernel"),
    ],
)
def test_launches_that_no_gpu_can_do(bench, sizes, match):
    with pytest.raises(CompileError, match=match):
        bench.run(KERNEL + "args.out[0] = 1; }", out=np.zeros(64, np.float32), **sizes)


def test_a_record_of_the_wrong_size(bench):
    from tests.host_units import launch_of, unit_of
    from trtpatch.executors.host_unit import HostUnit

    unit = unit_of(KERNEL + "args.out[0] = 1; }", {"out": np.zeros(64, np.float32)})
    with pytest.raises(LaunchError, match="Args has 8 bytes, 16 were given"):
        HostUnit.build(unit, bench.cubins).launch(launch_of(unit), b"\0" * 16)
