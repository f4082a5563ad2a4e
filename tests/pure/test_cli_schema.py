"""The JSON Schemas: in step with the code, complete, and agreeing with what is read."""

import json
from pathlib import Path

import jsonschema
import pytest

from tests.command import invoke
from trtpatch import builtin
from trtpatch.spec import yamlfile
from trtpatch.spec.schemas import SCHEMAS, json_schema

ROOT = Path(__file__).parents[2]
CONTRACTS = sorted(builtin.patches_folder().glob("*/patch.yaml"))
EXAMPLE = ROOT / "examples/centerface"


def errors_in(name: str, data: object) -> list[str]:
    validator = jsonschema.Draft202012Validator(json_schema(name))
    return [error.message for error in validator.iter_errors(data)]


@pytest.mark.parametrize("name", SCHEMAS)
def test_committed_schema_is_in_step(name: str) -> None:
    result = invoke("schema", name)
    committed = (ROOT / f"docs/schemas/{name}.schema.json").read_text(encoding="utf-8")
    assert committed == result.stdout, (
        f"run: trtpatch schema {name} > docs/schemas/{name}.schema.json"
    )
    jsonschema.Draft202012Validator.check_schema(json.loads(committed))


@pytest.mark.parametrize("name", SCHEMAS)
def test_every_key_is_described(name: str) -> None:
    schema = json_schema(name)
    parts = [schema, *schema.get("$defs", {}).values()]
    bare = [
        f"{part['title']}.{key}"
        for part in parts
        for key, value in part.get("properties", {}).items()
        if not value.get("description")
    ]
    assert not bare


@pytest.mark.parametrize("path", CONTRACTS, ids=lambda path: path.parent.name)
def test_schema_and_contracts_agree(path: Path) -> None:
    assert not errors_in("patch", yamlfile.load(path).data)


@pytest.mark.parametrize("path", [builtin.registry_file(), EXAMPLE / "registry.yaml"], ids=str)
def test_schema_and_registries_agree(path: Path) -> None:
    assert not errors_in("registry", yamlfile.load(path).data)


def test_schema_and_pipeline_files_agree() -> None:
    assert not errors_in("pipeline", yamlfile.load(EXAMPLE / "pipeline.yaml").data)


def test_one_item_may_stand_without_its_list() -> None:
    assert not errors_in("pipeline", {"engine": {"path": "a.onnx"}, "registry": "mine.yaml"})


@pytest.mark.parametrize(
    "wrong",
    [
        {"engine": {"path": "a.onnx"}, "exceutor": "cpu"},
        {"engine": {"path": "a.onnx", "kind": "tensorrt"}},
        {"rule": "yolox"},
        {"engine": {"path": "a.onnx"}, "batch": 0},
    ],
)
def test_mistakes_are_seen(wrong: object) -> None:
    assert errors_in("pipeline", wrong)
