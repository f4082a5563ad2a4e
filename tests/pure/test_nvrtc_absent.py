"""What is said where NVRTC is missing, or where two CUDA majors meet."""

from __future__ import annotations

import mmap
import subprocess
import sys
from pathlib import Path

import trtpatch
from trtpatch.compiler import nvrtc

ROOT = Path(trtpatch.__file__).parents[1]


def run(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run code in a Python that has no installed packages."""
    command = [sys.executable, "-S", "-c", f"import sys; sys.path.insert(0, {str(ROOT)!r})\n{code}"]
    return subprocess.run([*command, *arguments], capture_output=True, text=True)


def test_a_missing_nvrtc_is_named_with_the_command_that_installs_it() -> None:
    code = "from trtpatch.compiler import nvrtc\nprint(nvrtc.installed())\nnvrtc.load()"
    done = run(code)
    assert done.stdout == "None\n"
    last = done.stderr.splitlines()[-1]
    assert last.startswith("trtpatch.errors.CompileError: NVRTC")
    assert "takes no GPU: pip install cuda-pathfinder nvidia-cuda-nvrtc;" in last
    assert "No module" not in last


def test_the_release_is_read_off_the_newest_wheel(tmp_path: Path) -> None:
    for name in (
        "nvidia_cuda_nvrtc_cu12-12.9.86.dist-info",
        "nvidia_cuda_nvrtc-13.10.2.dist-info",
        "nvidia_cuda_nvrtc-13.9.37.dist-info",
        "nvidia_cuda_runtime-14.0.0.dist-info",
    ):
        (tmp_path / name).mkdir()
    code = "sys.path.append(sys.argv[1])\n"
    code += "from trtpatch.compiler import nvrtc\nprint(nvrtc.installed())"
    assert run(code, str(tmp_path)).stdout == "13.10.2\n"


def test_loaded_cuda_majors_are_found(tmp_path: Path) -> None:
    before = nvrtc.cuda_majors()
    folder = tmp_path / "site packages"
    folder.mkdir()
    library = folder / "libcudart.so.7.5"
    library.write_bytes(bytes(mmap.PAGESIZE))
    with library.open("rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ):
        assert nvrtc.cuda_majors() == {**before, 7: str(library)}
    assert nvrtc.cuda_majors() == before
