"""The cache in front of NVRTC: what is compiled again, and what is not."""

from __future__ import annotations

import logging
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import trtpatch
from tests.nvrtc.units import ARGS, FILE, KERNEL, body, sections, unit, unit_of
from trtpatch.compiler.compile import Cubin, compile_unit, cubin_for
from trtpatch.compiler.cubins import Cubins
from trtpatch.compiler.includes import inline_includes
from trtpatch.errors import CompileError
from trtpatch.unit import Unit

ROOT = Path(trtpatch.__file__).parents[1]


@pytest.fixture
def cubins(tmp_path: Path) -> Cubins:
    return Cubins(tmp_path / "kernels")


def made(of: Unit, cubins: Cubins, *, arch: str = "sm_90") -> Cubin:
    return cubin_for(of, arch=arch, cubins=cubins)


def test_a_hit_is_what_was_compiled(cubins: Cubins) -> None:
    warned = body("int unused; args.y[0] = args.x[0];")
    first = made(warned, cubins)
    assert made(warned, cubins) == first
    assert (cubins.hits, cubins.misses) == (1, 1)


def test_everything_that_decides_the_kernel_decides_the_key(cubins: Cubins) -> None:
    units = [
        unit(),
        unit(f"{KERNEL}\n"),
        unit(fast_math=True),
        unit(options=("--maxrregcount=32",)),
        unit(options=("--fmad=true",)),
        unit(name="decode_other"),
        unit(KERNEL + KERNEL.replace("decode_mine", "b"), entries=("decode_mine", "b")),
    ]
    for one in units:
        made(one, cubins)
    made(unit(), cubins, arch="sm_80")
    assert (cubins.hits, cubins.misses) == (0, 8)


def test_an_edited_header_is_compiled_again_and_an_old_one_is_found_again(
    tmp_path: Path, cubins: Cubins
) -> None:
    def of(factor: int) -> Cubin:
        (tmp_path / "box.cuh").write_text(f"constexpr int FACTOR = {factor};\n")
        kernel = f'#include "box.cuh"\n{KERNEL.replace("= args", "= FACTOR * args")}'
        text = inline_includes(kernel, folder=tmp_path, file_label=FILE)
        return made(unit_of(ARGS + text), cubins)

    two, three = of(2), of(3)
    assert sections(two.code)[".text.decode_mine"] != sections(three.code)[".text.decode_mine"]
    assert of(2) == two
    assert (cubins.hits, cubins.misses) == (1, 2)


def test_a_broken_entry_is_compiled_again_and_reported(
    cubins: Cubins, caplog: pytest.LogCaptureFixture
) -> None:
    first = made(unit(), cubins)
    (stored,) = cubins.list()
    stored.path.write_bytes(stored.path.read_bytes()[:-100])
    assert made(unit(), cubins) == first
    assert made(unit(), cubins) == first
    (record,) = [r for r in caplog.records if r.levelno == logging.WARNING]
    assert str(stored.path) in record.getMessage()
    assert (cubins.hits, cubins.misses) == (1, 2)


def test_what_does_not_compile_is_not_kept(cubins: Cubins) -> None:
    for _ in range(2):
        with pytest.raises(CompileError):
            made(body("args.z = 1;"), cubins)
    assert not cubins.list()


START = f"""
import logging, sys
from pathlib import Path
from types import SimpleNamespace
sys.path.insert(0, {str(ROOT)!r})
from trtpatch.compiler.compile import cubin_for
from trtpatch.compiler.cubins import Cubins
unit = SimpleNamespace(
    name="decode_mine", text={unit().text!r}, options=(), entries=("decode_mine",),
    fast_math=False, args_dtype=SimpleNamespace(itemsize=16),
)
cubins = Cubins(Path(sys.argv[1]))
cubin_for(unit, arch="sm_90", cubins=cubins)
print(cubins.hits, cubins.misses, "libnvrtc" in Path("/proc/self/maps").read_text())
"""


def start(folder: str) -> str:
    command = [sys.executable, "-c", START, folder]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.stdout.strip() or done.stderr.splitlines()[-1]


def test_the_second_start_does_not_even_load_nvrtc(tmp_path: Path) -> None:
    folder = str(tmp_path / "kernels")
    assert start(folder) == "0 1 True"
    assert start(folder) == "1 0 False"


def test_eight_processes_at_once_leave_one_good_entry(tmp_path: Path) -> None:
    folder = tmp_path / "kernels"
    command = [sys.executable, "-c", START, str(folder)]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    processes = [subprocess.Popen(command, **pipes) for _ in range(8)]
    for process in processes:
        said, errors = process.communicate()
        assert (process.returncode, errors) == (0, "")
        assert said.startswith(("0 1", "1 0"))
    assert len(list(folder.iterdir())) == 1
    cubins = Cubins(folder)
    assert made(unit(), cubins).code == compile_unit(unit(), arch="sm_90").code
    assert cubins.hits == 1


def test_two_cuda_majors_in_one_process_are_named(tmp_path: Path) -> None:
    library = tmp_path / "libcudart.so.7.5"
    library.write_bytes(bytes(4096))
    code = f"""
import mmap, sys
sys.path.insert(0, {str(ROOT)!r})
file = open({str(library)!r}, "rb")
held = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
from trtpatch.compiler import nvrtc
nvrtc.load()
nvrtc.load()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    (warning,) = done.stderr.splitlines()
    assert f"two CUDA majors are in one process: 7 ({library}) and" in warning
