"""`trtpatch patches`: the registry as it is, and the mistakes of contracts in their places."""

import json
import re
import shutil
from pathlib import Path

import pytest
import yaml
from click.testing import Result

from tests.command import invoke
from trtpatch import builtin
from trtpatch.spec.ports import AXES, PORTS

CONTRACTS = {
    path.parent.name: yaml.safe_load(path.read_text(encoding="utf-8"))
    for path in builtin.patches_folder().glob("[!_]*/patch.yaml")
}
RULES = yaml.safe_load(builtin.registry_file().read_text(encoding="utf-8"))["rules"]
EXAMPLE = Path(__file__).parents[2] / "examples/centerface/registry.yaml"


def patches(*arguments: str, code: int = 0) -> Result:
    return invoke("patches", *arguments, code=code)


def test_every_patch_is_listed() -> None:
    text = patches().stdout
    for name, contract in CONTRACTS.items():
        (line,) = (line for line in text.splitlines() if line.startswith(f"{name} "))
        assert contract["kind"] in line
        assert contract["summary"] in line


@pytest.mark.parametrize("name", CONTRACTS)
def test_all_of_one_contract(name: str) -> None:
    text = patches(name).stdout
    for part in ("inputs", "outputs", "params"):
        assert all(one in text for one in CONTRACTS[name].get(part, {}))
    for param, spec in CONTRACTS[name].get("params", {}).items():
        assert param in text
        assert spec["help"] in text
    for launch in CONTRACTS[name]["launch"]:
        assert launch["entry"] in text


def test_json_is_the_list_and_the_one() -> None:
    everything = json.loads(patches("--json").stdout)
    assert {one["name"] for one in everything} == set(CONTRACTS)
    for one in everything:
        assert one == json.loads(patches(one["name"], "--json").stdout)
        contract = CONTRACTS[one["name"]]
        assert [param["name"] for param in one["params"]] == list(contract.get("params", {}))


def test_every_rule_is_listed_and_one_is_shown() -> None:
    text = patches("--rules").stdout
    assert all(rule["name"] in text for rule in RULES)
    one = json.loads(patches("--rules", RULES[0]["name"], "--json").stdout)
    assert one["chain"] == RULES[0]["chain"]
    assert one["place"].startswith(str(builtin.registry_file()))


def test_ports_are_described() -> None:
    text = patches("--ports").stdout
    for port in PORTS.values():
        assert port.help in text
        for field, tensor in port.fields():
            (line,) = (one for one in text.splitlines() if one.startswith(f"  {field} "))
            assert tensor.dtype in line
            assert tensor.help in line
    assert re.search(r"^decode +candidates$", text, re.MULTILINE)
    assert re.search(r"^select +candidates, geometry +detections$", text, re.MULTILINE)


def test_a_port_is_found_by_its_name() -> None:
    text = patches("detections").stdout
    assert "detections_boxes" in text
    assert "candidates_boxes" not in text
    (one,) = [p for p in json.loads(patches("--ports", "--json").stdout) if p["name"] == "masks"]
    assert one == json.loads(patches("masks", "--json").stdout)
    assert one["given_by"] == ["mask"]
    assert "Did you mean 'masks'?" in patches("--ports", "mask", code=2).stderr


def test_every_axis_of_a_port_has_a_meaning() -> None:
    tensors = [one for port in PORTS.values() for one in port.tensors if not one.ragged]
    assert {axis for one in tensors for axis in one.shape if isinstance(axis, str)} == AXES.keys()


def test_a_registry_of_ones_own() -> None:
    assert "decode_centerface" in patches("--registry", str(EXAMPLE)).stdout
    assert "heatmap" in patches("decode_centerface", "--registry", str(EXAMPLE)).stdout
    assert "centerface" in patches("--rules", "--registry", str(EXAMPLE)).stdout


def test_unknown_names_are_guessed() -> None:
    name = max(CONTRACTS)
    assert f"Did you mean {name!r}?" in patches(f"{name}_", code=2).stderr
    assert "no rule is called" in patches("--rules", "nothing", code=2).stderr
    assert "cannot be read" in patches("--registry", "none.yaml", code=2).stderr


def test_the_mistakes_of_all_contracts_at_once(tmp_path: Path) -> None:
    for name in sorted(CONTRACTS)[:2]:
        shutil.copytree(builtin.patches_folder() / name, tmp_path / "mine" / name)
        contract = tmp_path / "mine" / name / "patch.yaml"
        contract.write_text(contract.read_text().replace("kind:", "knid:"))
    (tmp_path / "registry.yaml").write_text("patches: [mine]\n")
    said = patches("--registry", str(tmp_path / "registry.yaml"), code=2).stderr
    assert said.count("unknown key 'knid'. Did you mean 'kind'?") == 2
    assert "patch.yaml:2:1" in said


def test_a_folder_without_a_contract(tmp_path: Path) -> None:
    for command in ("check", "verify"):
        said = invoke(command, str(tmp_path), code=2).stderr
        assert f"{tmp_path}: a folder without a patch.yaml, so no patch" in said


def test_a_rule_is_called_one() -> None:
    said = patches("yolox", code=2).stderr
    assert said == "error: 'yolox' is a rule and no patch: trtpatch patches --rules yolox\n"


def test_a_built_in_patch_goes_by_its_short_path() -> None:
    assert "\nbuilt-in patches/decode_yolox/patch.yaml\n" in patches("decode_yolox").stdout
