"""What is said where the driver does not load a cubin."""

from __future__ import annotations

import pytest

from trtpatch.compiler.compile import Cubin
from trtpatch.executors.kernels import refusal

NO_BINARY = "CUDA_ERROR_NO_BINARY_FOR_GPU: no kernel image is available for execution on the device"
MEMORY = "CUDA_ERROR_OUT_OF_MEMORY: out of memory"


@pytest.mark.parametrize(
    ("compiler", "error", "remedy"),
    [
        ("NVRTC 13.5.37", NO_BINARY, "pip install cupy-cuda12x"),
        ("NVRTC 12.9.86", NO_BINARY, "Run 'trtpatch cache clear', or make the bundle again"),
        ("NVRTC 12.9.86", "CUDA_ERROR_INVALID_IMAGE: device kernel image is invalid", "clear"),
        ("NVRTC 12.9.86", MEMORY, f"{MEMORY}."),
    ],
)
def test_it_names_compiler_driver_architecture_and_remedy(
    compiler: str, error: str, remedy: str
) -> None:
    cubin = Cubin("decode_mine", "sm_90", b"", compiler, "", ())
    said = refusal(cubin, error, serves=12040, majors={12: "/lib/libcudart.so.12"})
    assert said.startswith("patch decode_mine: the driver, which serves CUDA 12.4, does not load")
    assert f"the cubin that {compiler} made for sm_90: {error}" in said
    assert said.endswith(remedy) or remedy in said
    assert "This process" not in said


def test_two_majors_are_named_with_their_files() -> None:
    cubin = Cubin("decode_mine", "sm_90", b"", "NVRTC 13.5.37", "", ())
    majors = {13: "/b/libnvrtc.so.13", 12: "/a/libcudart.so.12"}
    said = refusal(cubin, NO_BINARY, serves=12040, majors=majors)
    assert "loaded CUDA 12 (/a/libcudart.so.12) and 13 (/b/libnvrtc.so.13)." in said
