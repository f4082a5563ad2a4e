"""Text and architecture to a cubin: what is compiled, what is refused, and what is said of it."""

from __future__ import annotations

import logging
import struct
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import trtpatch
from tests.nvrtc.units import ARGS, FILE, KERNEL, unit, unit_of
from trtpatch.compiler import nvrtc
from trtpatch.compiler.compile import Cubin, compile_unit, cubin_for
from trtpatch.compiler.cubins import Cubins
from trtpatch.compiler.includes import inline_includes
from trtpatch.errors import CompileError, Problem
from trtpatch.unit import Unit

ROOT = Path(trtpatch.__file__).parents[1]
ARCHS = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120")


def body(statement: str, **more: Any) -> Unit:
    """A unit whose kernel is one statement, on line 3."""
    return unit(KERNEL.replace("args.y[threadIdx.x] = args.x[threadIdx.x];", statement), **more)


def failure(wrong: Unit, *, arch: str = "sm_90") -> tuple[str, tuple[Problem, ...]]:
    with pytest.raises(CompileError) as caught:
        compile_unit(wrong, arch=arch)
    return str(caught.value), caught.value.problems


def only(wrong: Unit) -> str:
    """The one mistake of a unit, with its place."""
    message, problems = failure(wrong)
    assert message.startswith("patch decode_mine ")
    (problem,) = problems
    assert str(problem) in message
    return str(problem)


def sections(elf: bytes) -> dict[str, bytes]:
    """The sections of a 64-bit ELF file."""
    at, size, count, names = struct.unpack_from("<Q", elf, 40) + struct.unpack_from("<3H", elf, 58)
    heads = [struct.unpack_from("<IIQQQQ", elf, at + size * number) for number in range(count)]
    strings = heads[names][4]
    return {
        elf[strings + name : elf.index(b"\0", strings + name)].decode(): elf[start : start + length]
        for name, kind, _, _, start, length in heads
        if kind != 8  # NOBITS
    }


def machine_code(of: Unit) -> bytes:
    return sections(compile_unit(of, arch="sm_90").code)[".text.decode_mine"]


# ---- What comes out.


@pytest.mark.parametrize("arch", ARCHS)
def test_every_architecture(arch: str) -> None:
    kernel = """
struct float16 { unsigned short bits; };
__device__ float load(const float16* x)
{
    float wide;
    asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(x->bits));
    return wide;
}
extern "C" __global__ void __launch_bounds__(256) decode_mine(const Args args)
{
    __shared__ float tile[256];
    tile[threadIdx.x] = load(reinterpret_cast<const float16*>(args.x) + threadIdx.x);
    __syncthreads();
    float sum = tile[255 - threadIdx.x];
    for (int lane = 16; lane > 0; lane /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, lane);
    if (__ballot_sync(0xffffffffu, sum > 1.0f)) atomicAdd(args.y, expf(sum));
}
"""
    cubin = compile_unit(unit(kernel), arch=arch)

    assert (cubin.name, cubin.arch, cubin.log) == ("decode_mine", arch, "")
    assert cubin.code[:4] == b"\x7fELF"
    assert struct.unpack_from("<H", cubin.code, 18) == (190,)  # EM_CUDA
    (flags,) = struct.unpack_from("<I", cubin.code, 48)  # where the number is changed with CUDA 13
    assert int(arch[3:]) in (flags & 0xFF, flags >> 8 & 0xFF)
    assert cubin.compiler == f"NVRTC {nvrtc.load().release}"
    (use,) = cubin.kernels
    assert (use.name, use.shared_bytes, use.stack_bytes, use.spill_bytes) == (
        "decode_mine",
        1024,
        0,
        0,
    )
    assert 8 <= use.registers <= 64


def test_spills_and_local_arrays_are_counted() -> None:
    spilling = """
extern "C" __global__ void decode_mine(const Args args)
{
    float r[64], sum = 0.0f;
#pragma unroll
    for (int i = 0; i < 64; ++i) r[i] = args.x[i * 64 + threadIdx.x];
#pragma unroll
    for (int i = 0; i < 64; ++i) sum += r[i] * args.x[i];
#pragma unroll
    for (int i = 0; i < 64; ++i) args.y[i * 64 + threadIdx.x] = r[i] * sum;
}
"""
    (use,) = compile_unit(unit(spilling, options=("--maxrregcount=24",)), arch="sm_90").kernels
    assert use.registers <= 24
    assert use.spill_bytes > 0
    assert use.stack_bytes > 0
    (use,) = compile_unit(unit(spilling), arch="sm_90").kernels
    assert (use.spill_bytes, use.stack_bytes) == (0, 0)

    indexed = "float q[64]; for (int i = 0; i < int(args.x[3]); ++i) q[i % 64] = args.x[i]; "
    indexed += "args.y[0] = q[int(args.x[1])] + q[int(args.x[2])];"
    (use,) = compile_unit(body(indexed), arch="sm_90").kernels
    assert use.stack_bytes == 256
    assert use.spill_bytes == 0


def test_several_kernels_each_have_their_numbers() -> None:
    second = KERNEL.replace("decode_mine", "second").replace("{\n", "{ __shared__ float q[64];\n")
    second = second.replace("args.x[threadIdx.x]", "q[args.x[0] > 0.0f]")
    cubin = compile_unit(unit(KERNEL + second, entries=("second", "decode_mine")), arch="sm_90")
    assert {kernel.name: kernel.shared_bytes for kernel in cubin.kernels} == {
        "decode_mine": 0,
        "second": 256,
    }


def test_the_same_text_gives_the_same_bytes_also_from_threads() -> None:
    with ThreadPoolExecutor(4) as threads:
        codes = set(threads.map(lambda _: compile_unit(unit(), arch="sm_80").code, range(8)))
    assert len(codes) == 1


@pytest.mark.parametrize(
    ("written", "exact"),
    [
        ("x * y + 1.5f", "__fadd_rn(__fmul_rn(x, y), 1.5f)"),
        ("x / y", "__fdiv_rn(x, y)"),
        ("sqrtf(x)", "__fsqrt_rn(x)"),
    ],
)
def test_arithmetic_is_rounded_step_by_step(written: str, exact: str) -> None:
    def of(expression: str, **more: Any) -> Unit:
        return body(f"const float x = args.x[0], y = args.x[1]; args.y[0] = {expression};", **more)

    assert machine_code(of(written)) == machine_code(of(exact))
    assert machine_code(of(written)) != machine_code(of(written, fast_math=True))


def test_fast_math_is_the_contracts_choice() -> None:
    precise = body("args.y[0] = sinf(args.x[0]);")
    approximate = body("args.y[0] = __sinf(args.x[0]);")
    assert machine_code(precise) != machine_code(approximate)
    assert machine_code(replace(precise, fast_math=True)) == machine_code(
        replace(approximate, fast_math=True)
    )


def test_pointers_are_restrict_and_lines_are_known() -> None:
    cubin = compile_unit(body("args.y[0] = args.x[0];"), arch="sm_90")
    assert FILE.rpartition("/")[2].encode() in sections(cubin.code)[".debug_line"]


def test_a_warning_is_logged_in_the_authors_terms(caplog: pytest.LogCaptureFixture) -> None:
    cubin = compile_unit(body("int unused; args.y[0] = args.x[0];"), arch="sm_90")
    assert cubin.log.startswith(f'{FILE}:3:9: variable "unused" was declared but never referenced')
    (record,) = [r for r in caplog.records if r.levelno == logging.WARNING]
    assert cubin.log in record.getMessage()
    assert "suppress" not in cubin.log


# ---- What does not compile.


def test_all_errors_with_their_places_and_lines() -> None:
    message, problems = failure(body("int a = foo;\n\targs.z[0] = bar;"))
    places = [(problem.file, problem.line, problem.column) for problem in problems]
    assert places == [(FILE, 3, 13), (FILE, 4, 7), (FILE, 4, 14)]
    assert message == (
        "patch decode_mine does not compile for sm_90:\n"
        f'{FILE}:3:13: identifier "foo" is undefined\n'
        "      int a = foo;\n"
        "              ^\n"
        f'{FILE}:4:7: class "Args" has no member "z"\n'
        "  \targs.z[0] = bar;\n"
        "  \t     ^\n"
        f'{FILE}:4:14: identifier "bar" is undefined\n'
        "  \targs.z[0] = bar;\n"
        "  \t            ^"
    )


@pytest.mark.parametrize(
    ("kernel", "place", "said"),
    [
        (KERNEL.replace("}", ""), ":2:1: ", 'expected a "}"'),
        (f"namespace mine {{\n{KERNEL}", ":1:16: ", 'expected a "}"'),
        (f"{KERNEL}/* goes on", ":5:1: ", "comment unclosed"),
        (f"{KERNEL}#if 1\n", ":5:2: ", "#endif"),
        (f"#error not yet\n{KERNEL}", ":1:2: ", "not yet"),
        (f"int half(int a) {{ return a / 2; }}\n{KERNEL}", ":1:5: ", "Write __device__ before it."),
        (KERNEL.replace("args.y[", 'asm("no.such;"); args.y['), ": ", "ptxas: "),
    ],
)
def test_a_broken_text_is_told_once_and_in_the_authors_file(
    kernel: str, place: str, said: str
) -> None:
    message, problems = failure(unit(kernel))
    assert str(problems[0]).startswith(f"{FILE}{place}")
    assert said in problems[0].message
    assert not [problem for problem in problems if problem.file != FILE]
    assert "trtpatch_takes_args" not in message
    assert "detected in the compilation" not in message


def test_notes_stay_with_their_error() -> None:
    kernel = (
        f'template <int N> struct S {{ static_assert(N > 3, "at least 4"); }};\nS<1> s;\n{KERNEL}'
    )
    message = str(failure(unit(kernel))[1][0])
    assert message.startswith(f"{FILE}:1:")
    assert 'detected during instantiation of class "S<N> [with N=1]" at line 2' in message


def test_an_error_in_an_included_file_names_that_file(tmp_path: Path) -> None:
    (tmp_path / "box.cuh").write_text("\n__device__ float area(float w) { return w * h; }\n")
    text = inline_includes(f'#include "box.cuh"\n{KERNEL}', folder=tmp_path, file_label=FILE)
    assert only(unit_of(ARGS + text)).startswith(
        'patches/decode_mine/box.cuh:2:45: identifier "h" is undefined'
    )


def test_a_file_included_twice_is_seen_once_also_where_the_first_place_is_off(
    tmp_path: Path,
) -> None:
    (tmp_path / "box.cuh").write_text("__device__ inline float twice(float w) { return 2 * w; }\n")
    include = '#include "box.cuh"\n'
    kernel = KERNEL.replace("= args.x[threadIdx.x]", "= twice(args.x[0])")
    kernel = f"#if 0\n{include}#endif\n{include}{include}{kernel}"
    text = inline_includes(kernel, folder=tmp_path, file_label=FILE)
    assert compile_unit(unit_of(ARGS + text), arch="sm_90").kernels


def test_non_ascii_text_and_labels() -> None:
    text = unit(f"// größe 検出\n{KERNEL}").text.replace("decode_mine/", "größe_検出/")
    assert compile_unit(unit_of(text), arch="sm_90").kernels
    wrong = unit_of(text.replace("args.x", "args.z"))
    assert only(wrong).startswith("patches/größe_検出/kernel.cu:4:32: ")


def test_no_file_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "box.cuh").write_text("struct Box {};")
    monkeypatch.chdir(tmp_path)
    _, problems = failure(unit(f'#include "box.cuh"\n  #include <cuda_fp16.h>\n{KERNEL}'))
    assert [(problem.line, problem.column) for problem in problems] == [(1, 1), (2, 3)]
    assert "float16" in problems[1].message
    assert "patches/README.md" in problems[1].message


# ---- Kernels that do not fit their contract.


def test_a_missing_kernel_is_told_with_the_nearest_name() -> None:
    found = only(unit(KERNEL.replace("decode_mine", "decode_mien")))
    assert found == (
        f"{FILE}: no kernel 'decode_mine', which the contract launches. Did you mean 'decode_mien'?"
    )


def test_a_kernel_without_c_linkage_is_named() -> None:
    found = only(unit(KERNEL.replace('extern "C" ', "")))
    assert found.startswith(f"{FILE}:1:17: kernel 'decode_mine' needs extern \"C\"")


def test_a_kernel_in_a_namespace_is_named() -> None:
    found = only(unit(f"namespace mine {{\n{KERNEL}}}\n"))
    assert found.startswith(f"{FILE}:2:28: kernel 'decode_mine' must be defined outside")


@pytest.mark.parametrize(
    "takes",
    [
        "",
        "const float* x, float* y",
        "const Args* args",
        "const Args args, int n",
        "struct float2_",
    ],
)
def test_a_kernel_that_takes_something_else_is_named_with_what_it_takes(takes: str) -> None:
    kernel = f"""
struct float2_ {{ const float* x; float* y; }};
// __global__ void decode_mine(const Args args): not this one
extern "C" __global__ void __launch_bounds__(128)
    decode_mine({takes}) {{}}
"""
    assert only(unit(kernel)) == (
        f"{FILE}:5:5: kernel 'decode_mine' takes ({takes}); every kernel takes one argument, by "
        "value: (const Args args). Args has all that the contract names"
    )


def test_every_wrong_kernel_is_told() -> None:
    other = KERNEL.replace("decode_mine", "other").replace("const Args args", "float* y")
    other = other.replace("args.x[threadIdx.x]", "1.0f").replace("args.", "")
    _, problems = failure(unit(KERNEL + other, entries=("decode_mine", "other", "third")))
    assert [problem.line for problem in problems] == [5, 0]


def test_args_of_another_size_than_its_record_is_our_mistake() -> None:
    found = only(unit(args_dtype=np.dtype(np.float32)))
    assert "mistake in trtpatch" in found


def test_too_much_shared_memory_is_told_at_the_kernel() -> None:
    big = "__shared__ float q[12289]; q[threadIdx.x] = args.x[0]; __syncthreads(); "
    big += "args.y[0] = q[threadIdx.x + 1];"
    found = only(body(big))
    assert found.startswith(f"{FILE}:1:28: kernel 'decode_mine' declares 49156 bytes of __shared__")
    assert "49152" in found
    assert "shared:" in found
    assert compile_unit(body(big.replace("12289", "12288")), arch="sm_90").kernels


# ---- Options and architectures.


@pytest.mark.parametrize(
    ("option", "reason"),
    [
        ("-arch=sm_80", "the architecture is the GPU's own"),
        ("--gpu-architecture=compute_80", "the architecture is the GPU's own"),
        ("-I/usr/include", "no file is read"),
        ("--include-path=/usr/include", "no file is read"),
        ("-include=box.cuh", "no file is read"),
        ("-default-device", "write __device__"),
        ("--device-as-default-execution-space", "write __device__"),
        ("--use_fast_math", "fast_math: true"),
        ("-ftz=true", "fast_math: true"),
        ("-DN=4", "parameter of the contract"),
        ("--std=c++20", "same for every patch"),
        ("-rdc=true", "nothing to link"),
        ("--no-such-option", "unknown here"),
        ("-maxrregcount=32 -arch=sm_80", "unknown here"),
    ],
)
def test_options_that_are_not_a_contracts_are_refused_with_the_reason(
    option: str, reason: str
) -> None:
    message, _ = failure(unit(options=(option,)))
    assert message.startswith(f"patch decode_mine: option {option!r} in the contract is refused")
    assert reason in message


@pytest.mark.parametrize("option", ["--fmad=true", "-fmad=false", "--maxrregcount=32"])
@pytest.mark.parametrize("fast_math", [False, True])
def test_options_that_a_contract_may_set(option: str, fast_math: bool) -> None:
    assert compile_unit(unit(options=(option,), fast_math=fast_math), arch="sm_90").kernels


@pytest.mark.parametrize("arch", ["foo", "", "90", "compute_90", "sm_90 -I/", "SM_90"])
def test_what_is_no_architecture_is_refused(arch: str) -> None:
    assert "one is written sm_90" in failure(unit(), arch=arch)[0]


def test_an_architecture_that_nvrtc_does_not_know_is_told_with_those_it_does() -> None:
    message, _ = failure(unit(), arch="sm_999")
    for part in (f"NVRTC {nvrtc.load().release}", "sm_999", *ARCHS, "pip install -U nvidia-cuda"):
        assert part in message
    assert "pip install 'trtpatch[cu12]'" in failure(unit(), arch="sm_20")[0]
    assert "no such GPU" in failure(unit(), arch="sm_91")[0]


# ---- The cache in front.


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
