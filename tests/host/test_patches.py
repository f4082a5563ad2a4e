"""Every built-in patch's own kernels against its reference, on the CPU."""

import numpy as np
import pytest

from tests.patch_runs import PATCHES, read
from trtpatch import executors
from trtpatch.executors.host import HostExecutor
from trtpatch.spec.ports import PORTS
from trtpatch.verify import compare, load_cases, plan_case, run_case


class Replayed(HostExecutor):
    """Walks twice, as a graph that is replayed: nothing of the first walk may be left."""

    def walk(self, timings=None):
        super().walk(timings)
        super().walk(timings)


class Shifted(HostExecutor):
    """Puts the engine's tensors one element past a 16-byte boundary."""

    def bind_patch(self, step):
        fields = {name for port in PORTS.values() for name, _ in port.fields()}
        for tensor in step.tensors:
            if tensor.name not in fields and tensor.name not in step.patch.spec.scratch:
                for buffer in tensor.buffers:
                    self.arrays[buffer] = shifted(self.arrays[buffer])
        return super().bind_patch(step)


def shifted(array):
    room = np.zeros(array.nbytes + 32, np.uint8)
    start = -room.ctypes.data % 16 + array.itemsize
    return room[start : start + array.nbytes].view(array.dtype).reshape(array.shape)


@pytest.mark.parametrize(
    ("make", "seed"), [(HostExecutor, 0), (Shifted, 0), (Replayed, 1), (HostExecutor, 2)]
)
@pytest.mark.parametrize("name", PATCHES)
def test_kernels_agree_with_the_reference(name, make, seed, cubins, monkeypatch):
    patch = read(name)
    cases = [(case, plan_case(patch, case)) for case in load_cases(patch)]
    expected = [run_case(plan, case, "cpu") for case, plan in cases]
    monkeypatch.setattr(
        executors,
        "make_executor",
        lambda _, plan, engine, **__: make(plan, engine, cubins=cubins, seed=seed),
    )
    for (case, plan), wanted in zip(cases, expected, strict=True):
        differences = compare(patch, run_case(plan, case, "host"), wanted)
        assert not [one for one in differences if one.wrong], case.name
