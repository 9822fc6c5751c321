"""Whole programs: which rounding behaviour eager and compiled execution have, and why they differ.

The table it prints (`pytest -s`) has a row for each program and way to run it: the grade against
eager, the elements outside the order interval, and what explains them.
"""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from parity.casefile.case import Case
from parity.compare.rows import compare_case
from parity.compare.standing import contains
from parity.worker.protocol import PathOutcome

DTYPES = ("float32", "bfloat16", "float16")


def normal(*shape, scale=1.0):
    seed = sum(shape)
    return (np.random.default_rng(seed).normal(size=shape) * scale).astype(np.float32)


def mlp(dtype):
    """Two layers with gelu between them, without bias."""

    def function(x, first, second):
        x, first, second = (a.astype(dtype) for a in (x, first, second))
        return (jax.nn.gelu(x @ first) @ second).astype(jnp.float32)

    return function, (normal(16, 64), normal(64, 128, scale=1 / 8), normal(128, 32, scale=1 / 11))


def attention(dtype):
    """Softmax of scaled scores."""

    def function(q, k, v):
        q, k, v = (a.astype(dtype) for a in (q, k, v))
        scores = jnp.einsum("bqd,bkd->bqk", q, k) / np.asarray(np.sqrt(32), dtype)
        weights = jax.nn.softmax(scores, axis=-1)
        return jnp.einsum("bqk,bkd->bqd", weights, v).astype(jnp.float32)

    q, k, v = normal(6, 16, 32).reshape(3, 2, 16, 32)
    return function, (q, k, v)


def layer_norm(dtype):
    """Mean and variance over the last axis, a gain and a bias."""

    def function(x, gain, bias):
        x, gain, bias = (a.astype(dtype) for a in (x, gain, bias))
        centred = x - jnp.mean(x, -1, keepdims=True)
        variance = jnp.mean(centred**2, -1, keepdims=True)
        scaled = centred * lax.rsqrt(variance + np.asarray(1e-5, dtype))
        return (scaled * gain + bias).astype(jnp.float32)

    return function, (normal(16, 64), normal(64), normal(65)[1:])


PROGRAMS = {"mlp": mlp, "attention": attention, "layer norm": layer_norm}


def runs(function, inputs):
    """What each way to run a function gives; the last is jit with excess precision off."""
    lowered = jax.jit(function).lower(*inputs)
    exact = lowered.compile(compiler_options={"xla_allow_excess_precision": False})
    made = {"eager": function, "jit": jax.jit(function), "jit-declared": exact}
    return {path: np.asarray(run(*map(jnp.asarray, inputs))) for path, run in made.items()}


def compared(make_program, interpret, name, dtype):
    """Rows, outputs and references of one program."""
    function, inputs = PROGRAMS[name](getattr(jnp, dtype))
    outputs = runs(function, inputs)
    references = interpret(function, *inputs)
    spec = make_program(function, *inputs).spec
    case = Case(
        f"{name} {dtype}", Path("none.yaml"), 1, name, "", (), {}, spec, (), tuple(outputs), "eager"
    )
    outcomes = [PathOutcome(path, outputs={"out": out}) for path, out in outputs.items()]
    rows = {row.path: row for row in compare_case(case, outcomes, references)}
    return rows, outputs, references


@pytest.fixture(scope="module")
def table(make_program, interpret):
    """By program and dtype; printed as it is made."""
    print(f"\n{'program':<20}{'path':<14}{'grade':<12}{'outside':<9}{'needs':<12}"
          f"{'model':<18}{'share':<8}vacuous")  # fmt: skip
    made = {}
    for name in PROGRAMS:
        for dtype in DTYPES:
            made[name, dtype] = rows, outputs, references = compared(
                make_program, interpret, name, dtype
            )
            for path, row in rows.items():
                outside = np.mean(~contains(references.strict["out"], outputs[path]))
                print(f"{name + ' ' + dtype:<20}{path:<14}{row.grade:<12}{outside:<9.2f}"
                      f"{row.licences or '-':<12}{row.model or '-':<18}{row.bound_share:<8.3f}"
                      f"{row.vacuous:.2f}")  # fmt: skip
    return made


CELLS = [(name, dtype) for name in PROGRAMS for dtype in DTYPES]


@pytest.mark.parametrize("cell", CELLS, ids=" ".join)
def test_nothing_is_inaccurate_and_every_departure_has_a_cause(table, cell):
    rows, _, references = table[cell]
    for row in rows.values():
        assert row.accurate
        assert row.grade in ("identical", "equivalent", "divergent")
        assert row.bound_share <= 1
        assert row.faithful or row.model == "excess-precision"
    assert references.estimated == ()
    assert references.undecided == {}


def of(table, name, dtype):
    """(faithful, licences, model) by path."""
    return {
        path: (row.faithful, row.licences, row.model) for path, row in table[name, dtype][0].items()
    }


FAITHFUL = (True, "", "")
EXPANDED = (True, "expansion", "")
FUSED = (True, "fma", "")
RECIPROCAL = (True, "reciprocal", "")
EXCESS = (False, "", "excess-precision")


def fuses_float16():
    """Whether a float16 product is added unrounded here, as with AVX512-FP16.

    (1 + 2**-10)**2 is 1 + 2**-9 + 2**-20: rounded, the last bit is lost.
    """
    x = np.full(32, 8 * (1 + 2.0**-10), np.float16)
    return bool(jax.jit(lambda x, y: x * x - y)(x, np.float16(64 + 2.0**-3))[0])


def test_float16_mlp_is_inside_though_farther_than_any_order_of_summation(table):
    """No order has the errors of gelu's expansion, or of its fused additions: it needs either."""
    found = set(of(table, "mlp", "float16").values())
    assert found <= {EXPANDED, FUSED}


@pytest.mark.parametrize("name", PROGRAMS)
def test_float32_is_inside_however_it_is_run(table, name):
    assert set(of(table, name, "float32").values()) == {FAITHFUL}


def test_bfloat16_attention_is_bit_for_bit_what_is_declared_but_for_excess_precision(table):
    rows, outputs, references = table["attention", "bfloat16"]
    strict = references.strict["out"].point
    assert np.array_equal(outputs["eager"], strict)
    assert np.array_equal(outputs["jit-declared"], strict)
    assert np.mean(outputs["jit"] != strict) > 0.9
    assert of(table, "attention", "bfloat16")["jit"] == EXCESS
    assert [rows[p].grade for p in rows] == ["identical", "divergent", "identical"]
    assert rows["jit"].detail.startswith("excess-precision; differs from the baseline in ")


def test_bfloat16_layer_norm_differs_by_excess_precision_alone(table):
    found = of(table, "layer norm", "bfloat16")
    assert found == {"eager": FAITHFUL, "jit": EXCESS, "jit-declared": FAITHFUL}
    assert table["layer norm", "bfloat16"][0]["jit"].grade == "divergent"


def test_bfloat16_mlp_expands_gelu(table):
    """x**3 is two rounded multiplications; compiled as a whole, roundings are dropped."""
    found = of(table, "mlp", "bfloat16")
    assert found["eager"] == found["jit-declared"] == EXPANDED
    assert found["jit"][0] is False
    assert found["jit"][2] == "excess-precision"


def test_float16_attention_compiled_multiplies_by_the_reciprocal(table):
    found = of(table, "attention", "float16")
    assert found == {"eager": FAITHFUL, "jit": RECIPROCAL, "jit-declared": RECIPROCAL}
    rows = table["attention", "float16"][0]
    assert rows["jit"].grade == "equivalent"
    assert rows["jit"].detail.startswith("needs reciprocal; differs from the baseline in ")


def test_float16_layer_norm_expands_rsqrt(table):
    """Compiled as a whole, its gain and bias are one fused operation where the processor has it."""
    compiled = (True, "fma+expansion", "") if fuses_float16() else EXPANDED
    found = of(table, "layer norm", "float16")
    assert found == {"eager": EXPANDED, "jit": compiled, "jit-declared": compiled}


def test_the_order_interval_is_tight_where_roundings_collapse_it(table):
    """In bfloat16 attention it is a point for most elements; half the largest value at no time."""
    strict = table["attention", "bfloat16"][2].strict["out"]
    assert np.mean(strict.lo == strict.hi) > 0.9
    for cell in CELLS:
        enclosure = table[cell][2].strict["out"]
        width = np.maximum(enclosure.hi - enclosure.point, enclosure.point - enclosure.lo)
        assert width.max() < 0.05 * np.abs(enclosure.point).max()
