"""What does not compile, or not to what the contract launches, told in the author's terms."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.nvrtc.units import ARGS, FILE, KERNEL, body, failure, only, unit, unit_of
from trtpatch.compiler.compile import compile_unit
from trtpatch.compiler.includes import inline_includes


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
        (
            f"int half(int a) {{ return a / 2; }}\n{KERNEL}",
            ":1:5: ",
            "Write __device__ before it, or __global__",
        ),
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
