"""The commands of patches/README.md, one after the other, in a folder of one's own."""

import os
import re
import subprocess
import sys
from pathlib import Path

from trtpatch import builtin

README = builtin.patches_folder() / "README.md"


def commands() -> list[str]:
    blocks = re.findall(r"```sh\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    lines = [line.split("  #")[0].strip() for block in blocks for line in block.splitlines()]
    return [line for line in lines if line]


def test_the_newcomers_path(tmp_path: Path) -> None:
    python = f'"{sys.executable}" -m trtpatch'
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    assert len(commands()) == 4
    for command in commands():
        line = re.sub(r"^trtpatch\b", python, command.split(" #")[0])
        run = subprocess.run(
            line, shell=True, cwd=tmp_path, env=environment, capture_output=True, text=True
        )
        assert run.returncode == 0, f"{command}\n{run.stdout}{run.stderr}"
    assert (tmp_path / "patches/decode_mine/kernel.cu").is_file()

    kernel = tmp_path / "patches/decode_mine/kernel.cu"
    broken = kernel.read_text(encoding="utf-8").replace("args.head", "args.haed", 1)
    kernel.write_text(broken, encoding="utf-8")
    check = subprocess.run(
        [sys.executable, "-m", "trtpatch", "check", "decode_mine"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert check.returncode != 0
    assert "kernel.cu:" in check.stdout + check.stderr
    assert "Did you mean 'head'" in check.stdout + check.stderr
