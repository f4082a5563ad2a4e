"""What the README says is there, is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.command import invoke
from trtpatch.spec import yamlfile
from trtpatch.spec.pipeline import PipelineSpec
from trtpatch.spec.validate import validate

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("text", blocks("yaml"))
def test_pipeline_files_are_valid(text: str, tmp_path: Path) -> None:
    (tmp_path / "pipeline.yaml").write_text(text, encoding="utf-8")
    assert validate(PipelineSpec, yamlfile.load(tmp_path / "pipeline.yaml")).engine.path


@pytest.mark.parametrize("text", blocks("python"))
def test_python_is_python(text: str) -> None:
    compile(text, "README.md", "exec")


def test_ci_runs_the_two_commands() -> None:
    commands = re.findall(r"^sh \S+", blocks("sh")[0], re.MULTILINE)
    assert len(commands) == 2
    assert set(commands) <= set((ROOT / ".ci/run").read_text(encoding="utf-8").splitlines())


@pytest.mark.parametrize(
    "name", re.findall(r"^trtpatch (\w+)", "".join(blocks("sh")), re.MULTILINE)
)
def test_commands_exist(name: str) -> None:
    invoke(name, "--help")


@pytest.mark.parametrize("target", re.findall(r"\]\(([^)#:]+)\)", README))
def test_links_lead_somewhere(target: str) -> None:
    assert (ROOT / target).exists()
