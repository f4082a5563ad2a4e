"""What does not compile on the host, in the author's terms; and the cache."""

import shutil
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from tests.host_units import FILE, launch_of, unit_of
from trtpatch.compiler.cubins import Cubins
from trtpatch.errors import CompileError
from trtpatch.executors.host_unit import HostUnit

OUT = {"out": np.zeros(4, np.float32)}
KERNEL = 'extern "C" __global__ void kernel(const Args args)\n{\n    '


def refused(cubins, text):
    with pytest.raises(CompileError) as caught:
        HostUnit.build(unit_of(text, OUT), cubins)
    return caught.value


@pytest.mark.parametrize(
    ("code", "column", "message"),
    [
        ("args.out[0] = args.conf;", 24, "has no member named 'conf'"),
        (
            "args.out[0] = args.model_W;",
            24,
            "known only where a case gives shapes={'model': (H, W)}",
        ),
        ("args.out[0] = 1", 20, "expected ';'"),
        ("args.out[0] = sigmoid(1.0f);", 19, "'sigmoid'"),
        ("args.out[0] = __shfl_sync(~0u, args, 0).out[0];", 30, "exchange numbers of 4 or 8 bytes"),
    ],
)
@pytest.mark.parametrize("compiler", [name for name in ("g++", "clang++") if shutil.which(name)])
def test_errors_have_the_authors_line_and_column(
    tmp_path, monkeypatch, code, column, message, compiler
):
    monkeypatch.setenv("CXX", compiler)
    error = refused(Cubins(tmp_path / "kernels"), KERNEL + code + "\n}")
    assert str(error).startswith("patch mine does not compile on the host:\n")
    problem = error.problems[0]
    assert (problem.file, problem.line) == (FILE, 3)
    assert problem.column == column or compiler != "g++"
    assert message in problem.message or compiler != "g++"
    assert "anonymous" not in str(error)


@pytest.mark.parametrize(
    ("code", "found", "kind"),
    [
        ('asm("mov.u32 %0, 1;" : "=r"(x));', "asm", "inline PTX"),
        ("kernel<<<1, 1>>>(args);", "<<<", "launches from within a kernel"),
        ("auto g = cooperative_groups::this_grid();", "cooperative_groups", "cooperative groups"),
        ("cub::BlockScan<int, 32> scan;", "cub::", "CUDA's libraries"),
        ("cuda::atomic<int> x;", "cuda::", "CUDA's libraries"),
        ("tex2D<float>(t, 1, 2);", "tex2D", "textures and surfaces"),
        ("cudaDeviceSynchronize();", "cudaDeviceSynchronize", "the CUDA runtime"),
        ("__half2 x;", "__half2", "cuda_fp16.h"),
        ("__shfl_down(1, 2);", "__shfl_down", "warp calls without a mask"),
        ("static __managed__ int x;", "__managed__", "managed memory"),
        ("__cluster_dims__(2, 1, 1);", "__cluster_dims__", "thread block clusters"),
    ],
)
def test_constructs_that_the_host_cannot_do(cubins, code, found, kind):
    text = KERNEL + '/* asm cub:: <<< */ const char* text = "<<< cub::";\n  ' + code + "\n}"
    error = refused(cubins, text)
    assert "uses what executor 'host' cannot do" in str(error)
    (problem,) = error.problems
    assert (problem.file, problem.line, problem.column) == (FILE, 4, 3 + code.index(found))
    assert problem.message.startswith(f"'{found}': ")
    assert kind in problem.message


def test_all_such_constructs_at_once(cubins):
    error = refused(cubins, KERNEL + 'asm("");\n    cub::Sum sum;\n}')
    assert [problem.line for problem in error.problems] == [3, 4]


def test_what_the_preprocessor_drops_does_not_count(bench):
    text = (
        '#ifdef TRTPATCH_HOST\n#define WHERE 1\n#else\n#define WHERE 2\nasm("");\n#endif\n'
        + KERNEL
        + "args.out[0] = WHERE; }"
    )
    out = np.zeros(1, np.float32)
    bench.run(text, block=1, out=out)
    assert out[0] == 1


def test_a_header_is_refused(cubins):
    error = refused(cubins, "#include <cub/cub.cuh>\n" + KERNEL + "}")
    (problem,) = error.problems
    assert (problem.file, problem.line, problem.column) == (FILE, 1, 1)
    assert "#include <cub/cub.cuh>" in problem.message


@pytest.mark.parametrize(
    "signature", ["const Args args, int more", "", "const float* values, float* out, int count"]
)
def test_a_kernel_that_takes_something_else(cubins, signature):
    text = f'// kernel(\nextern "C" __global__ void kernel({signature}) {{ }}'
    (problem,) = refused(cubins, text).problems
    assert (problem.file, problem.line, problem.column) == (FILE, 2, 28)
    assert "every kernel takes one argument, by value: (const Args args)" in problem.message


def test_a_kernel_that_is_not_there(cubins):
    unit = replace(unit_of(KERNEL + "}", OUT), entries=("kernel", "other"))
    with pytest.raises(CompileError, match=f"{FILE}: no kernel 'other', which the contract"):
        HostUnit.build(unit, cubins)


def test_a_function_that_is_nowhere(cubins):
    error = refused(
        cubins, "__device__ float other(float);\n" + KERNEL + "args.out[0] = other(1); }"
    )
    assert "other" in str(error)


def test_a_frame_that_does_not_fit_the_stack_of_a_thread(cubins):
    error = refused(cubins, KERNEL + "volatile float all[50000]; args.out[0] = all[7]; }")
    assert "frame size" in error.problems[0].message or "stack frame" in error.problems[0].message
    assert error.problems[0].file == FILE


def test_hundreds_of_units_fit_a_process(tmp_path):
    """Each with the stacks of 1024 threads; Linux allows a process 65530 mappings."""
    code = """
import sys, numpy as np
from pathlib import Path
from tests.host_units import Bench
from trtpatch.compiler.cubins import Cubins

def mappings():
    return len(Path("/proc/self/maps").read_text().splitlines())

bench, before = Bench(Cubins(Path(sys.argv[1]))), mappings()
text = 'extern "C" __global__ void kernel(const Args args) { __syncthreads(); args.out[0] = %d; }'
for number in range(3):
    bench.run(text % number, block=1024, out=np.zeros(1, np.float32))
print((mappings() - before) / 3)
"""
    command = [sys.executable, "-c", code, str(tmp_path / "kernels")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert float(done.stdout) < 65530 / 500


def test_the_cache_is_asked_first(tmp_path, monkeypatch):
    cubins = Cubins(tmp_path / "kernels")
    unit = unit_of(KERNEL + "args.out[0] = 5; }", OUT)
    HostUnit.build(unit, cubins)
    assert [stored.label for stored in cubins.list()] == ["mine-host", "runtime-host"]
    monkeypatch.setattr("subprocess.run", None)
    again = Cubins(tmp_path / "kernels")
    out = np.zeros(4, np.float32)
    args = np.array([(out.ctypes.data,)], unit.args_dtype)
    HostUnit.build(unit, again).launch(launch_of(unit), args)
    assert (again.hits, again.misses) == (1, 0)
    assert out[0] == 5


def test_a_broken_entry_is_compiled_again(tmp_path):
    cubins = Cubins(tmp_path / "kernels")
    unit = unit_of(KERNEL + "args.out[0] = 6; }", OUT)
    HostUnit.build(unit, cubins)
    stored = next(one for one in cubins.list() if one.label == "mine-host")
    data = stored.path.read_bytes()
    stored.path.unlink()  # it is mapped: cutting it would kill this process
    stored.path.write_bytes(data[:-100])
    out = np.zeros(4, np.float32)
    args = np.array([(out.ctypes.data,)], unit.args_dtype)
    HostUnit.build(unit, Cubins(tmp_path / "kernels")).launch(launch_of(unit), args)
    assert out[0] == 6
    again = Cubins(tmp_path / "kernels")
    HostUnit.build(unit, again)
    assert again.misses == 0


def test_a_cache_that_cannot_be_written(tmp_path, monkeypatch):
    cubins = Cubins(tmp_path / "kernels")
    monkeypatch.setattr(cubins, "put", lambda *_, **__: None)
    unit = unit_of(KERNEL + "args.out[0] = 7; }", OUT)
    out = np.zeros(4, np.float32)
    args = np.array([(out.ctypes.data,)], unit.args_dtype)
    HostUnit.build(unit, cubins).launch(launch_of(unit), args)
    assert out[0] == 7


def test_no_compiler(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CompileError, match=r"needs a C\+\+ compiler and g\+\+ or clang\+\+"):
        HostUnit.build(unit_of(KERNEL + "}", OUT), Cubins(tmp_path / "kernels"))
    monkeypatch.setenv("CXX", "nowhere/cc")
    with pytest.raises(CompileError, match="CXX=nowhere/cc"):
        HostUnit.build(unit_of(KERNEL + "}", OUT), Cubins(tmp_path / "kernels"))
    monkeypatch.setenv("CXX", "'g++")
    with pytest.raises(CompileError, match="CXX='g\\+\\+: no command line: No closing quotation"):
        HostUnit.build(unit_of(KERNEL + "}", OUT), Cubins(tmp_path / "kernels"))


def test_no_temporary_folder(tmp_path, monkeypatch):
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "file"))
    error = refused(Cubins(tmp_path / "kernels"), KERNEL + "}")
    assert str(error).startswith("mine cannot be compiled on the host: [Errno 20] Not a directory")
