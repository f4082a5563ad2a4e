"""What messages tell to install is what setup.cfg has."""

from __future__ import annotations

import configparser
import re
from pathlib import Path

import pytest

from trtpatch.extras import EXTRAS, install

ROOT = Path(__file__).parents[2]


def test_packages_are_those_of_the_extras() -> None:
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg", encoding="utf-8")
    extras = dict(config["options.extras_require"])
    del extras["dev"]
    lines = {name: text.strip().splitlines() for name, text in extras.items()}
    assert {
        name: tuple(line.partition(">=")[0] for line in lines[name]) for name in lines
    } == EXTRAS


@pytest.mark.parametrize("extra", EXTRAS)
def test_readme_lists_them(extra: str) -> None:
    table = (ROOT / "README.md").read_text(encoding="utf-8").partition("| extra | for |")[2]
    assert re.search(rf"^\|.*`{extra}`.*\| ", table, re.MULTILINE)


def test_what_a_shell_would_take_apart_is_quoted() -> None:
    assert install("cu13") == "pip install cupy-cuda13x 'cuda-toolkit[cudart,nvrtc]==13.*'"
