"""The published JSON Schema against the loader: what one takes the other takes."""

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from ruamel.yaml import YAML

from parity.casefile.json_schema import json_schema
from parity.casefile.new import SCHEMA_FILE, template
from parity.casefile.ops import ops
from parity.errors import CaseFileError
from parity.program.spec import PROGRAMS

CASES = Path(__file__).parents[2] / "cases"


@pytest.fixture(scope="module")
def validator():
    Draft202012Validator.check_schema(json_schema())
    return Draft202012Validator(json_schema())


def parsed(text):
    data = YAML(typ="safe", pure=True).load(text)
    return json.loads(json.dumps(data, default=str))


def test_the_schema_beside_the_cases_is_the_current_one():
    assert json.loads((CASES / SCHEMA_FILE).read_text()) == json_schema()


@pytest.mark.parametrize("path", sorted(CASES.glob("*.yaml")), ids=lambda path: path.name)
def test_shipped_cases_are_valid(validator, path):
    assert list(validator.iter_errors(parsed(path.read_text()))) == []
    assert path.read_text().startswith(f"# yaml-language-server: $schema={SCHEMA_FILE}\n")


@pytest.mark.parametrize(
    "lines",
    [
        "",
        "  precision: BF16_BF16_F32_X3\n",
        "  precision: [high, DEFAULT]\n",
        "sweep: {seed: [1, 2]}\n",
        "sweep: {product: {seed: [1]}, zip: {batch: [1, 2]}, exclude: [{batch: 2}]}\n",
        "expect: [{path: jit, grade: [divergent, identical], because: x, until: 2999-01-01}]\n",
        "tolerance: {rtol: 1, against: f64}\nx64: true\ntimeout: 3\n",
        "cotangent: {dtype: float32, draw: uniform, low: 0}\n",
    ],
)
def test_good_files_pass_both(folder, dot, validator, lines):
    folder.load(dot + lines)
    assert list(validator.iter_errors(parsed(dot + lines))) == []


def test_a_sweep_may_give_what_is_missing(folder, dot, validator):
    text = dot.replace("attributes:\n  contracting: [[1], [0]]\n", "")
    text = text.replace("dtype: float32, draw: normal}\n  rhs", "draw: normal}\n  rhs")
    swept = text + (
        "sweep: {attributes.contracting: [[[1], [0]]], operands.lhs.dtype: [float32, float16]}\n"
    )
    folder.load(swept)
    assert list(validator.iter_errors(parsed(swept))) == []
    assert list(validator.iter_errors(parsed(text)))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("about:", "abuot:"),
        ("dot_general", "dot_genral"),
        ("contracting:", "contractin:"),
        ("[[1], [0]]", "[[1]]"),
        ("[3, 4]", "[3, '4']"),
        ("[3, 4]", "[3, -4]"),
        ("float32, draw: normal}\n  rhs", "bfloat61, draw: normal}\n  rhs"),
        ("draw: normal}\n  rhs", "draw: gauss}\n  rhs"),
        ("draw: normal}\n  rhs", "draw: normal, values: [1]}\n  rhs"),
        ("dtype: float32, draw: normal}\n  rhs", "draw: normal}\n  rhs"),
        ("attributes:\n", "x64: 'yes'\nattributes:\n"),
        ("attributes:\n", "sweep: {seed: []}\nattributes:\n"),
        ("attributes:\n", "tolerance: {rtol: -1}\nattributes:\n"),
        ("attributes:\n", "expect: [{path: jit, grade: divergent}]\nattributes:\n"),
        ("attributes:\n", "attributes:\n  precision: hgih\n"),
    ],
)
def test_bad_files_fail_both(folder, dot, validator, old, new):
    text = dot.replace(old, new)
    assert text != dot
    with pytest.raises(CaseFileError):
        folder.load(text)
    assert list(validator.iter_errors(parsed(text)))


@pytest.mark.parametrize("op", [*ops(), *PROGRAMS])
def test_templates_load_and_are_valid(folder, validator, op):
    text = template(op, "fresh")
    assert all(case.name == "fresh" and case.program.op == op for case in folder.cases(text))
    assert list(validator.iter_errors(parsed(text))) == []


@pytest.mark.parametrize("op", ["dot_general", *PROGRAMS])
def test_the_commented_lines_of_a_template_are_valid_too(folder, validator, op):
    text = template(op, "fresh")
    uncommented = "".join(
        line.replace("# ", "", 1) + "\n" if line.startswith("#") else line + "\n"
        for line in text.splitlines()[1:]
    )
    if op == "dot_general":  # its sum has another shape than lhs
        uncommented = uncommented.replace("residual: lhs", "residual: null")
    (full, narrow) = folder.cases(uncommented)
    assert (full.tolerance.max_ulp, len(narrow.expect)) == (4, 1)
    assert list(validator.iter_errors(parsed(uncommented))) == []
