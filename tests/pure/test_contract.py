"""Contracts, registries and pipeline files: what is read, and what is refused and where."""

from typing import get_args

import numpy as np
import pytest
from pydantic import ValidationError

from trtpatch.errors import SpecError
from trtpatch.spec import yamlfile
from trtpatch.spec.dtypes import C_TYPES, ITEMSIZE, Dtype
from trtpatch.spec.patch import ParamSpec, PatchSpec
from trtpatch.spec.pipeline import PipelineSpec
from trtpatch.spec.registry import RegistrySpec
from trtpatch.spec.validate import Schema, validate

CONTRACT = """\
summary: Head to candidate boxes
kind: decode
inputs:
  head: {dtype: [float32, float16], shape: [N, A, 5 + C]}
outputs:
  candidates: port
params:
  score_threshold: {type: float, default: 0.1, min: 0.0, max: 1.0, runtime: true, help: keep above}
launch:
  - {entry: decode_mine, over: [N, A], per_thread: 4, block: 128}
tolerance: {candidates_boxes: {atol: 1e-2}, candidates_classes: exact}
"""


def problems(schema: type[Schema], text: str) -> list[str]:
    with pytest.raises(SpecError) as caught:
        validate(schema, yamlfile.parse(text, file="p.yaml"))
    return [str(problem) for problem in caught.value.problems]


def test_a_contract_reads_as_it_is_written() -> None:
    spec = validate(PatchSpec, yamlfile.parse(CONTRACT, file="p.yaml"))
    assert spec.fields(spec.outputs)[:2] == ("candidates_boxes", "candidates_scores")
    assert {"N", "A", "C", "model_H"} <= spec.symbols()
    assert spec.launch[0].per_thread.evaluate({}) == 4


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("block:", "blok:", "p.yaml:10:55: unknown key 'blok'. Did you mean 'block'?"),
        ("max: 1.0", "maxx: 1.0", "p.yaml:8:58: unknown key 'maxx'. Did you mean 'max'?"),
        ("type: float", "type: flaot", "Did you mean 'float'?"),
        (
            "exact}",
            "exakt}",
            "p.yaml:11:65: expected 'exact' or {atol: ..., rtol: ...}, found 'exakt'. Did",
        ),
        ("classes: exact", "classes: 1e-6", "or {atol: ..., rtol: ...}, found 1e-06"),
        ("5 + C", "5 ** C", "Pow is not part of the arithmetic"),
        (
            "candidates: port",
            "candidats: port",
            "p.yaml:6:3: 'candidats' is no port. Did you mean 'candid",
        ),
        ("default: 0.1", "default: 1.1", "expected 0.0 to 1.0, found 1.1"),
        ("default: 0.1", "default: yes", "expected a number, found 'yes'"),
        ("atol: 1e-2", "atol: -1", "greater than or equal to 0"),
        ("kind: decode", "kind: a b", "expected a name of letters"),
        ("over: [N, A], ", "", "either 'over' (elements) or 'grid' (blocks)"),
        ("candidates_boxes:", "boxes:", "p.yaml:11:13: tolerance for 'boxes', no output"),
        ("  head:", "  score_threshold:", "'score_threshold' is used twice"),
        ("dtype: [float32, float16]", "dtype: [double]", "found 'double'"),
    ],
)
def test_a_mistake_is_shown_in_its_place(old: str, new: str, expected: str) -> None:
    assert old in CONTRACT
    found = problems(PatchSpec, CONTRACT.replace(old, new, 1))
    assert any(expected in one for one in found), found


def test_all_mistakes_at_once() -> None:
    text = CONTRACT.replace("block:", "blok:").replace("max: 1.0", "maxx: 1.0")
    assert len(problems(PatchSpec, text)) == 3  # both keys, and the missing block


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "p.yaml:1:1: empty; expected a mapping with the keys engine"),
        ("- a", "p.yaml:1:1: a list; expected a mapping"),
        ("engine: {path: a}\nexecutor: cuda", "expected 'auto', 'gpu', 'cpu' or 'host'"),
        ("engine: {pth: a}", "p.yaml:1:10: unknown key 'pth'. Did you mean 'path'?"),
        ("engine: {path: a}\nbatch: 0", "p.yaml:2:8: expected greater than or equal to 1"),
        ("engine: {path: a}\nbatch: '2'", "expected a valid integer, found '2'"),
        ("engine: {path: a}\nchain: [a, b]", "a chain has 'engine' in it, once"),
        ("engine: {path: a}\nbind: {a: b}", "'bind' goes with 'chain' alone"),
        ("engine: {path: a}\nchain: [engine]\nrule: b\nbind: {a: b}", "'bind' goes with 'chain'"),
    ],
)
def test_mistakes_in_pipeline_files_have_their_place(text: str, expected: str) -> None:
    assert any(expected in one for one in problems(PipelineSpec, text))


def test_a_registry_needs_a_chain() -> None:
    text = "rules:\n  - name: mine\n    outputs: {head: [N, A]}\n    chian: [a, engine, b]\n"
    found = problems(RegistrySpec, text)
    assert "p.yaml:4:5: unknown key 'chian'. Did you mean 'chain'?" in found


def param(**keys: object) -> ParamSpec:
    return ParamSpec.model_validate({"help": "x", **keys})


def test_parameters_are_checked_against_type_and_range() -> None:
    count = param(type="int", default=1, min=1)
    assert count.check(2**63 - 1) == 2**63 - 1
    for wrong in (0, 1.0, True, "1", 2**63):
        with pytest.raises(ValueError, match="expected"):
            count.check(wrong)
    mean = param(type=["float"], default=[0.0], length=1)
    assert mean.check([2]) == (2.0,)
    for wrong in ([], [1.0, 2.0], 1.0, [float("nan")]):
        with pytest.raises(ValueError, match="expected"):
            mean.check(wrong)
    strides = param(type=["int"], default=[8])
    assert strides.check([2**31 - 1]) == (2**31 - 1,)
    with pytest.raises(ValueError, match="31 bits"):
        strides.check([8, 2**31])
    optional = param(type=["float"], default=[], min=0)
    assert optional.check([]) == ()
    assert optional.check([2, 0.5]) == (2.0, 0.5)
    with pytest.raises(ValueError, match="expected 0 or more, found -1"):
        optional.check([0.5, -1])
    score = param(type="float", default=0.5, max=1)
    assert score.check(np.float32(0.25)) == 0.25  # such as a score that was found
    for wrong, said in ((10**400, "finite"), (float("inf"), "finite"), (2, "1 or less, found 2")):
        with pytest.raises(ValueError, match=f"expected .*{said}"):
            score.check(wrong)
    color = param(type="choice", choices=["rgb", "bgr"], default="rgb")
    with pytest.raises(ValueError, match="expected rgb or bgr, found 'rbg'. Did you mean"):
        color.check("rbg")


def test_a_runtime_number_fits_the_kernels_int() -> None:
    limit = param(type="int", default=0, runtime=True)
    assert limit.check(2**63 - 1) == 2**31 - 1
    assert limit.check(-(2**32)) == -(2**31)
    with pytest.raises(ValidationError, match="runtime"):
        param(type="bool", default=True, runtime=True)


def test_element_types_are_numpys_and_have_a_name_in_kernels() -> None:
    assert set(C_TYPES) == set(get_args(Dtype))
    assert ITEMSIZE.keys() >= C_TYPES.keys()
    assert {name: np.dtype(name).itemsize for name in ITEMSIZE} == ITEMSIZE
