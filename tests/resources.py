"""What the kernels of every built-in patch use: the table docs/resources.md.

`python -m tests.resources` writes it anew. It is that of one release of NVRTC; a test holds it to
that release, and under another one to its list of kernels alone.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from pathlib import Path

from tests.patch_runs import PATCHES, read
from trtpatch import builtin
from trtpatch.compiler.compile import Cubin, compile_unit
from trtpatch.unit import make_unit
from trtpatch.verify import Case, load_cases, plan_case

ARCHS = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120")
TABLE = Path(__file__).parents[1] / "docs" / "resources.md"
_HEAD = """\
# What kernels use

Every built-in patch, compiled for the first of its cases, without a GPU, by {compiler}. Registers
are those of a thread, shared memory is what a block declares, and spills are bytes of registers
that went to memory; a spill fails the tests. Where architectures differ, all are listed.

| patch, case | kernel | {archs} | shared bytes | spilled bytes |
| --- | --- | {rules} | ---: | ---: |
"""


@functools.cache
def first_case(name: str) -> Case:
    """The case that stands for a patch: its first."""
    return load_cases(read(name))[0]


@functools.cache
def compiled(name: str, arch: str) -> Cubin:
    """A patch as its first case wants it."""
    plan = plan_case(read(name), first_case(name))
    return compile_unit(make_unit(next(plan.patch_steps)), arch=arch)


def table() -> str:
    """The text of the table."""
    own = {folder.name for folder in builtin.patches_folder().iterdir()}
    names = [name for name in PATCHES if name in own]
    rows = [row for name in names for row in _rows(name)]
    archs = " | ".join(f"{arch} registers" if arch == ARCHS[0] else arch for arch in ARCHS)
    rules = " | ".join("---:" for _ in ARCHS)
    compiler = compiled(names[0], ARCHS[0]).compiler
    return _HEAD.format(compiler=compiler, archs=archs, rules=rules) + "\n".join([*rows, ""])


def _rows(name: str) -> Iterable[str]:
    cubins = [compiled(name, arch) for arch in ARCHS]
    for kernel in sorted(kernel.name for kernel in cubins[0].kernels):
        uses = [next(one for one in cubin.kernels if one.name == kernel) for cubin in cubins]
        registers = " | ".join(str(use.registers) for use in uses)
        shared = _listed([use.shared_bytes for use in uses])
        spilled = _listed([use.spill_bytes for use in uses])
        case = first_case(name).name
        yield f"| {name}, {case} | {kernel} | {registers} | {shared} | {spilled} |"


def _listed(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers if len(set(numbers)) > 1 else numbers[:1]))


if __name__ == "__main__":
    TABLE.write_text(table(), encoding="utf-8")
