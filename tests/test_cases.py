"""The case files of this repository: their form, and the founding report's numbers."""

import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import parity

CASES = Path(__file__).parent.parent / "cases"
FILES = sorted(CASES.glob("*.yaml"))
SCHEMA_LINE = "# yaml-language-server: $schema=parity.schema.json"

load = cache(parity.load)

STRICT = [-1.3705847, -2.27708]
EXCESS = [-1.3709509, -2.2795215]
IDEAL = [-1.3713225, -2.28452135]
FLOAT16 = [-1.3713171, -2.2848926]
FLOAT32 = [-1.3713225, -2.2845213]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_case_file_says_what_it_guards(file):
    loaded = load(file)
    assert file.read_text(encoding="utf-8").splitlines()[0] == SCHEMA_LINE
    assert {case.name for case in loaded.cases} == {file.stem}
    about = {case.about for case in loaded.cases}.pop()
    assert about.endswith(".")
    if file.stem != "conv_bf16":  # the complete example of a case file, with a second sentence
        assert not re.search(r"[.!?:] ", about)
    assert len(file.read_text(encoding="utf-8").splitlines()) < 60


def test_ids_are_unique():
    ids = [case.id for file in FILES for case in load(file).cases]
    assert len(ids) == len(set(ids)) > 150


def test_links_lead_to_public_issues():
    links = {
        link
        for file in FILES
        for case in load(file).cases
        for link in (*case.links, *(entry.link for entry in case.expect if entry.link))
    }
    issue = re.compile(r"https://github\.com/[\w-]+/[\w-]+/issues/\d+")
    assert links
    assert [link for link in links if not issue.fullmatch(link)] == []


@pytest.fixture(scope="module")
def founding():
    return parity.run(CASES / "conv_bf16.yaml")


def _values(result, dtype, path):
    case = next(c for c in result.cases if c.case.point["compute_dtype"] == dtype)
    row = next(row for row in (*case.rows, *case.references) if row.path == path)
    return np.asarray(row.values, np.float64 if path == "f64" else np.float32)


@pytest.mark.parametrize(
    ("dtype", "path", "want"),
    [
        ("bfloat16", "eager", STRICT),
        ("bfloat16", "jax2tf-nonnative", STRICT),
        ("bfloat16", "strict", STRICT),
        ("bfloat16", "jit", EXCESS),
        ("bfloat16", "jax2tf-native", EXCESS),
        *(("float16", path, FLOAT16) for path in ("eager", "jit", "jax2tf-native", "strict")),
        *(("float32", path, FLOAT32) for path in ("eager", "jit", "jax2tf-native", "strict")),
        ("float16", "jax2tf-nonnative", FLOAT16),
        ("float32", "jax2tf-nonnative", FLOAT32),
    ],
)
def test_the_founding_report_has_its_numbers(founding, dtype, path, want):
    np.testing.assert_array_equal(_values(founding, dtype, path), np.float32(want))


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
def test_the_ideal_is_that_of_the_founding_report(founding, dtype):
    np.testing.assert_allclose(_values(founding, dtype, "f64"), IDEAL, rtol=0, atol=5e-8)


def test_the_founding_report_differs_by_what_was_reported(founding):
    difference = {
        row.path: row.baseline.max_abs
        for row in founding.cases[0].rows
        if row.path in ("jit", "jax2tf-native")
    }
    assert difference == {"jit": 0.00244140625, "jax2tf-native": 0.00244140625}
    assert np.float32(0.0024414062) == np.float32(0.00244140625)


def test_the_founding_report_is_expected(founding):
    assert founding.verdict == "ok"
    assert [row.path for row in founding.rows if row.status == "expected"] == [
        "jit",
        "jax2tf-native",
    ]


@pytest.fixture(scope="module")
def ladder():
    result = parity.run(CASES / "dot_precision_ladder.yaml")
    return {
        case.case.point["precision"]: {row.path: row for row in case.rows} for case in result.cases
    }


@pytest.mark.parametrize(
    ("preset", "named"), [("BF16_BF16_F32", 8), ("BF16_BF16_F32_X3", 16), ("BF16_BF16_F32_X6", 24)]
)
def test_on_a_cpu_these_presets_deliver_the_bits_of_a_float32_dot(ladder, preset, named):
    plain = ladder["default"]["eager"]
    for path in ("eager", "jit", "jax2tf-native"):
        row = ladder[preset][path]
        assert (row.sha256, row.delivered, row.named) == (plain.sha256, 24.0, named)
        assert "accepted, no effect here" in row.evidence["no_effect"]


def test_the_other_presets_deliver_what_they_say_or_are_refused(ladder):
    half = ladder["F16_F16_F16"]["eager"]
    assert half.named == 11
    assert 10.9 < half.delivered <= 11.1
    refused = {name for name, rows in ladder.items() if rows["eager"].outcome == "error"}
    assert refused == {
        "TF32_TF32_F32",
        "TF32_TF32_F32_X3",
        "BF16_BF16_F32_X9",
        "BF16_BF16_BF16",
        "F16_F16_F32",
    }


def test_attention_in_float32_is_the_closest_backward_pass():
    result = parity.run(CASES / "attention_backward.yaml", k="vjp")
    errors = {
        case.case.point["callable"]: {
            row.output: row.f64.rms_rel for row in case.rows if row.path == "eager"
        }
        for case in result.cases
    }
    for output in ("vjp.query", "vjp.key", "vjp.value"):
        wide = errors["attention.in_float32"][output]
        assert wide < errors["attention.in_narrow"][output]
        assert wide == errors["attention.plain"][output] == errors["attention.by_preset"][output]
    dots = {case.case.point["callable"]: case.rows[0].evidence["dots"] for case in result.cases}
    assert dots["attention.in_float32"].endswith("4 float32·float32 -> float32")
    assert dots["attention.plain"].endswith("4 float32·bfloat16 -> float32 (mixed)")


def test_a_transposed_convolution_is_tensorflows_once_its_kernel_is_flipped():
    result = parity.run(CASES / "conv_transpose.yaml", k="apart")
    (case,) = result.cases
    values = {(row.path, row.output): row.values for row in case.rows}
    for path in case.case.paths:
        assert values[path, "gradient_of_flipped"] == (0,)
        assert values[path, "gradient"][0] > 0.5


def test_a_dot_of_int8_and_bfloat16_without_xla_loses_the_preferred_float32():
    """A relative error of 1.5e-3 where the others have 3.4e-8."""
    result = parity.run(CASES / "dot_no_xla.yaml", k="int8 and bfloat16")
    (case,) = result.cases
    rms = {row.path: row.f64.rms_rel for row in case.rows}
    assert rms["eager"] == rms["jax2tf-nonnative"] < 1e-6
    assert 1e-3 < rms["jax2tf-nonnative.no-xla"] < 3e-3
