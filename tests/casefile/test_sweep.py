"""Sweeps: their points, how ids spell them, and what is refused."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parity.casefile.sweep import parse


def test_a_product_varies_its_last_axis_fastest(folder, dot):
    text = dot + "transforms: [forward, vjp]\nsweep: {compute_dtype: [float32, null], seed: [1]}\n"
    assert folder.ids(text) == [
        "dot:compute_dtype=float32,seed=1",
        "dot:compute_dtype=float32,seed=1,transform=vjp",
        "dot:compute_dtype=null,seed=1",
        "dot:compute_dtype=null,seed=1,transform=vjp",
    ]


def test_zipped_axes_move_together_and_exclusions_leave_points_out(folder, dot):
    text = f"""{dot}
sweep:
  product: {{compute_dtype: [float32, float16]}}
  zip:
    operands.lhs.dtype: [bfloat16, float32]
    operands.rhs.dtype: [float32, bfloat16]
  exclude:
    - {{compute_dtype: float16, rhs.dtype: bfloat16}}
"""
    cases = folder.cases(text)
    assert [case.point for case in cases] == [
        {"compute_dtype": "float32", "lhs.dtype": "bfloat16", "rhs.dtype": "float32"},
        {"compute_dtype": "float32", "lhs.dtype": "float32", "rhs.dtype": "bfloat16"},
        {"compute_dtype": "float16", "lhs.dtype": "bfloat16", "rhs.dtype": "float32"},
    ]
    assert [spec.dtype for spec in cases[1].program.operands] == ["float32", "bfloat16"]


def test_an_axis_of_zip_may_repeat_values_as_long_as_the_rows_differ(folder, dot):
    text = dot + "sweep:\n  zip: {seed: [1, 1, 2], batch: [2, 3, 2]}\n"
    assert folder.ids(text) == ["dot:seed=1,batch=2", "dot:seed=1,batch=3", "dot:seed=2,batch=2"]


def test_a_zipped_axis_may_repeat_a_value(folder, dot):
    text = dot + "sweep: {zip: {seed: [1, 1], batch: [1, 2]}}\n"
    assert folder.ids(text) == ["dot:seed=1,batch=1", "dot:seed=1,batch=2"]


def test_axes_reach_any_field(folder, dot):
    text = dot.replace("contracting: [[1], [0]]", "precision: high") + (
        "sweep:\n  attributes.contracting: [[[1], [0]], [[0], [1]]]\n"
        "  operands.lhs.shape: [[3, 3]]\n  operands.rhs.shape.1: [3]\n  tolerance.rtol: [1.0e-5]\n"
    )
    cases = folder.cases(text)
    stem = "dot:contracting={},shape=3x3,1=3,rtol=1e-05"
    assert [case.id.removeprefix("dot.yaml::") for case in cases] == [
        stem.format("1x0"),
        stem.format("0x1"),
    ]
    assert cases[1].program.attributes["dimension_numbers"] == (((0,), (1,)), ((), ()))
    assert cases[0].program.operands[1].shape == (3, 3)
    assert cases[0].tolerance.rtol == 1e-5


@pytest.mark.parametrize(
    ("values", "spelt"),
    [
        ([[1, 2], 3, "a-b"], ["1x2", "3", "a-b"]),
        ([[[0, 1], [-2, 3]]], ["0x1x-2x3"]),
        ([None, True, False, 1.5], ["null", "true", "false", "1.5"]),
        (["a b"], [hashlib.sha256(b'"a b"').hexdigest()[:8]]),
        (["x" * 41, "x" * 40], [hashlib.sha256(b'"%s"' % (b"x" * 41)).hexdigest()[:8], "x" * 40]),
        ([[]], [hashlib.sha256(b"[]").hexdigest()[:8]]),
        ([{"b": 1, "a": 2}], [hashlib.sha256(b'{"a": 2, "b": 1}').hexdigest()[:8]]),
        (
            [[1, 2], [[1], 2]],
            [hashlib.sha256(text).hexdigest()[:8] for text in (b"[1, 2]", b"[[1], 2]")],
        ),
    ],
)
def test_values_in_ids(values, spelt):
    assert list(parse({"seed": values}, ["forward"]).axes[0].spelt) == spelt


@given(
    st.lists(
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.text(max_size=50),
            lambda inner: st.lists(inner, max_size=3),
            max_leaves=5,
        ),
        min_size=1,
        max_size=4,
        unique_by=repr,
    )
)
def test_distinct_values_have_distinct_spellings_that_ids_can_hold(values):
    spelt = parse({"seed": values}, ["forward"]).axes[0].spelt
    allowed = set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.+-")
    assert len(set(spelt)) == len(values)
    assert all(text and set(text) <= allowed and len(text) <= 40 for text in spelt)


@pytest.mark.parametrize(
    ("sweep", "message"),
    [
        ("3", "9:8: sweep is not a mapping of axes (got 3; allowed field: [values])"),
        ("{}", "9:8: sweep is not a mapping of axes (got {}; allowed field: [values])"),
        ("{seed: 1}", "9:15: sweep.seed is not a list (got 1; allowed a list)"),
        ("{seed: []}", "9:15: sweep.seed has too few entries (got []; allowed at least 1)"),
        ("{seed: [1, 2, 1]}", "9:22: duplicate case id: seed has the same value twice (got 1)"),
        (
            "{zip: {seed: [1, 1, 1], batch: [2, 3, 2]}}",
            "9:28: duplicate case id: seed and batch have the same values twice (got 1 and 2)",
        ),
        ("{about: [a]}", "9:9: 'about' holds for the whole file"),
        (
            "{transform: [vjp]}",
            "9:9: 'transform' holds for the whole file\nhint: list them under transforms",
        ),
        (
            "{op.x: [1]}",
            "9:9: the axis leads to 'x' in something that is not a mapping (got 'dot_general')",
        ),
        (
            "{product: {seed: [1]}, seed: [1]}",
            "9:31: unknown key 'seed' in sweep (got seed; allowed product, zip, exclude)",
        ),
        (
            "{product: {seed: [1]}, zip: {seed: [1]}}",
            "9:37: 'seed' stands under product and under zip",
        ),
        (
            "{zip: {seed: [1], batch: [1, 2]}}",
            "9:33: the axes of zip differ in length (got 1 values of seed and 2 of batch)",
        ),
        (
            "{zip: {seed: [1, 1, 1], batch: [1, 2, 1]}}",
            "9:28: duplicate case id: seed and batch have the same values twice (got 1 and 1)",
        ),
        (
            "{product: {seed: [1]}, exclude: [{sed: 1}]}",
            "9:42: 'sed' is not an axis of this sweep (got sed; allowed seed, transform)\n"
            "hint: did you mean 'seed'?",
        ),
        (
            "{product: {seed: [1]}, exclude: [{seed: 2}]}",
            '9:41: sweep.exclude[0] excludes nothing (got {"seed": 2})',
        ),
        (
            "{product: {seed: [1, 2]}, exclude: [{seed: [1, 2]}]}",
            "9:43: the sweep is empty: all 2 points are excluded",
        ),
        (
            "{seed: [true]}",
            "9:16: seed is not an integer (got true; allowed an integer), at seed=true",
        ),
        (
            "{operands.rhs.shape: [[3, 4], [4, 4]]}",
            "8:16: contracting dimensions differ in size (got lhs[1] = 3 and rhs[0] = 4 of "
            "lhs [2, 3], rhs [4, 4]; allowed equal sizes), at shape=4x4",
        ),
        (
            "{attributes.batch: [[[1], [1]]]}",
            "9:29: dimension 1 of lhs is both contracting and batch, at batch=1x1",
        ),
    ],
)
def test_a_sweep_that_makes_no_sense_is_refused(folder, dot, sweep, message):
    assert folder.error(f"{dot}sweep: {sweep}\n") == message


def test_a_sweep_of_an_unknown_field_is_an_unknown_key(folder, dot):
    message = folder.error(dot + "sweep: {compute_dtyp: [float32]}\n")
    assert message.startswith("9:9: unknown key 'compute_dtyp' (got compute_dtyp; allowed name, ")
    assert message.endswith("hint: did you mean 'compute_dtype'?")


def test_an_explosion_is_refused_before_it_is_expanded(folder, dot):
    axes = ", ".join(f"operands.lhs.a{i}: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]" for i in range(30))
    assert folder.error(f"{dot}sweep: {{{axes}}}\n") == (
        "9:8: the sweep spans 1,000,000,000,000,000,000,000,000,000,000 cases (allowed 10,000)\n"
        "hint: sweep fewer values, or zip axes"
    )


def test_the_limit_may_be_raised(folder, dot):
    text = dot + "sweep: {seed: [1, 2, 3]}\n"
    assert len(folder.cases(text, max_cases=3)) == 3
    assert folder.error(text, max_cases=2).startswith("9:8: the sweep spans 3 cases (allowed 2)")


def test_sweeping_dtypes_keeps_the_data(folder, dot):
    text = dot + "sweep: {operands.lhs.dtype: [float64, float32]}\n"
    wide, narrow = (case.arrays()[0] for case in folder.cases(text))
    assert (wide.astype("float32") == narrow).all()
