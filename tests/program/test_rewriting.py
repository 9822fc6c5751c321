"""Barriers and observed intermediates in every kind of equation that runs others."""

import hashlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from parity.dtypes import DTYPES, UnsupportedDType
from parity.errors import Unsupported
from parity.program import jax_versions
from parity.program.build import build
from parity.program.outputs import ProgramError
from parity.program.rewriting import Rewriting, rewrite, rewritten
from parity.program.sites import Site, address, barrier_bits, output, spelt
from parity.program.spec import OperandSpec, ProgramSpec

BF16 = jnp.bfloat16
X = jnp.asarray(np.random.default_rng(0).standard_normal((4, 3)), BF16)


@jax.custom_vjp
def squashed(x):
    return jnp.tanh(x) * x


squashed.defvjp(lambda x: (squashed(x), x), lambda x, g: (g * x,))


@jax.custom_jvp
def wave(x):
    return jnp.sin(x) * x


wave.defjvp(lambda primals, tangents: (wave(*primals), tangents[0]))


@jax.jit
def called(x):
    return wave(x) * x


def everything(x):
    """A scan, a custom derivative of both kinds, a checkpoint, a branch, a loop, random keys."""
    carry, rows = lax.scan(lambda c, row: (squashed(c * row), c), x[0], x)
    held = jax.checkpoint(lambda a: jnp.exp(a) * a)(rows)
    chosen = lax.cond(carry[0] > 0, called, lambda a: a * 2, held)
    loop = lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] * s[1]), (0, chosen))
    noise = jax.random.normal(jax.random.key(0), (2,), BF16)
    return loop[1].astype(jnp.float32), called(x), noise


def addresses(closed, above=()):
    """Of every equation, with its primitive."""
    for number, eqn in enumerate(closed.jaxpr.eqns):
        yield spelt((*above, number)), eqn.primitive.name
        for at, body in enumerate(jax_versions.bodies(eqn)):
            yield from addresses(jax_versions.closed(body), (*above, number, at))


EQUATIONS = dict(addresses(jax.make_jaxpr(everything)(X)))
OBSERVABLE = [
    a for a in EQUATIONS if a.count(".") == 0 or EQUATIONS[a.partition(".")[0]] != "while"
]


def rewriting(function, barriers=(), observed=()):
    names = []

    def named(*arrays):
        outputs = function(*arrays)
        names[:] = [f"out.{at}" for at in range(len(outputs))]
        return outputs

    return rewritten(named, barriers, observed, names), names


def bits(arrays):
    return [(str(x.dtype), np.asarray(x).tobytes()) for x in arrays]


def test_there_is_an_equation_of_every_kind():
    kinds = set(EQUATIONS.values())
    assert {"scan", "cond", "while", "custom_jvp_call"} < kinds
    assert kinds & {"jit", "pjit"}
    assert kinds & {"custom_vjp_call", "custom_vjp_call_jaxpr"}
    assert kinds & {"checkpoint", "remat2"}
    assert len(EQUATIONS) > 40


def test_barriers_everywhere_change_no_rounded_value():
    function, names = rewriting(everything, list(EQUATIONS))
    assert bits(function(X)) == bits(everything(X))
    assert names == ["out.0", "out.1", "out.2"]
    assert str(jax.make_jaxpr(function)(X)).count("reduce_precision") > 20


@pytest.mark.parametrize("mode", [jax.jit, lambda f: jax.vmap(f), jax.checkpoint])
def test_barriers_everywhere_at_once_in_every_mode(mode):
    function, _ = rewriting(everything, list(EQUATIONS))
    given = X[None] if mode is not jax.jit else X
    assert len(mode(function)(given if mode is not jax.checkpoint else X)) == 3


def test_observed_equations_are_outputs_and_change_nothing_op_by_op():
    function, names = rewriting(everything, observed=OBSERVABLE)
    outputs = function(X)
    assert bits(outputs[:3]) == bits(everything(X))
    keys = {a for a in OBSERVABLE if EQUATIONS[a].startswith("random_seed")}
    assert {name.partition(":")[0] for name in names[3:]} >= {
        f"observed.{a}" for a in OBSERVABLE if a not in keys and EQUATIONS[a] != "random_wrap"
    }
    assert len(names) == len(outputs) == len(jax.jit(function)(X))


@pytest.mark.parametrize("kind", ["scan", "cond", "jit", "pjit", "tanh", "sin", "exp"])
def test_one_observed_equation_is_one_output(kind):
    for where in [a for a in OBSERVABLE if EQUATIONS[a] == kind][:1]:
        function, names = rewriting(everything, observed=[where])
        outputs = function(X)
        assert bits(outputs[:3]) == bits(everything(X))
        assert all(name.startswith(f"observed.{where}") for name in names[3:])


def test_observed_values_are_what_was_computed_there():
    function, names = rewriting(everything, observed=["0", *scans()])
    outputs = dict(zip(names, function(X), strict=True))
    first, last = scans()
    carry, rows, values = X[0], [], []
    for row in X:
        rows.append(carry * row)
        carry = squashed(rows[-1])
        values.append(carry)
    np.testing.assert_array_equal(outputs[f"observed.{first}"], jnp.stack(rows))
    np.testing.assert_array_equal(outputs[f"observed.{last}"], jnp.stack(values))


def scans():
    """The product in the body of the scan, and the result of the function that it calls there."""
    (scan,) = [a for a, name in EQUATIONS.items() if name == "scan"]
    return f"{scan}.0.0", f"{scan}.0.1"


def test_an_equation_of_the_branch_that_is_not_taken_is_zero():
    def function(x):
        return (lax.cond(x[0, 0] > 100, lambda a: a + 1, lambda a: a * 2, x),)

    (branch,) = [a for a, name in addresses(jax.make_jaxpr(function)(X)) if name in ("add", "mul")][
        1:
    ]
    other = branch.replace(".1.", ".0.") if ".1." in branch else branch.replace(".0.", ".1.")
    changed, names = rewriting(function, observed=[branch, other])
    outputs = dict(zip(names, changed(X), strict=True))
    values = [np.asarray(outputs[f"observed.{one}"], np.float32) for one in (branch, other)]
    assert sorted(float(np.abs(v).max()) for v in values)[0] == 0
    assert any((v == np.asarray(X * 2, np.float32)).all() for v in values)


def test_a_call_is_observed_beside_what_it_runs():
    function, names = rewriting(lambda x: (called(x),), observed=["0", "0.0.1"])
    outputs = dict(zip(names, function(X), strict=False))
    assert list(outputs)[-2:] == ["observed.0", "observed.0.0.1"]
    for name in ("observed.0", "observed.0.0.1"):
        np.testing.assert_array_equal(outputs[name], called(X))


def test_a_loop_that_may_end_at_any_time_is_observed_as_a_whole():
    (loop,) = [a for a, name in EQUATIONS.items() if name == "while"]
    function, _ = rewriting(everything, observed=[f"{loop}.1.0"])
    with pytest.raises(ProgramError, match=rf"{loop}\.1\.0 cannot be observed: it is inside a whi"):
        function(X)


@pytest.mark.parametrize("where", ["999", "0.0.0", "2.7.0"])
def test_an_equation_that_is_not_there(where):
    function, _ = rewriting(everything, [where])
    with pytest.raises(ProgramError, match="the program has no equation"):
        function(X)


@pytest.mark.parametrize("text", ["1.2", "", "a", "-1"])
def test_what_is_no_address(text):
    with pytest.raises(ValueError):  # noqa: PT011 - the words are int's own or ours
        address(text)


def test_a_barrier_keeps_a_rounding_that_the_compiler_drops():
    """jax-ml/jax#25873: compiled as a whole, the product of two bfloat16 numbers is not rounded."""

    def function(x, y):
        return ((x * y).astype(jnp.float32),)

    x, y = (jnp.asarray([v], BF16) for v in (1.09324, 0.254364))
    held, _ = rewriting(function, ["0"])
    (rounded,), (compiled,), (barred,) = (
        function(x, y),
        jax.jit(function)(x, y),
        jax.jit(held)(x, y),
    )
    assert rounded != compiled
    assert barred == rounded


@pytest.mark.parametrize("name", [n for n, of in DTYPES.items() if of.kind == "float"])
def test_a_barrier_keeps_every_value_of_its_dtype(name):
    held = barrier_bits(name)
    if held is None:
        assert name in ("float8_e8m0fnu", "float8_e5m2fnuz")
        return
    try:
        element = DTYPES[name].numpy()
    except UnsupportedDType:
        pytest.skip("ml_dtypes is too old")
    if DTYPES[name].bits > 16:
        assert held == {"float32": (8, 23), "float64": (11, 52)}[name]
        return
    count = 2 ** DTYPES[name].bits
    values = np.arange(count, dtype=np.uint8 if count <= 256 else np.uint16).view(element)
    kept = np.asarray(jax.jit(lambda x: lax.reduce_precision(x, *held))(values))
    kept, values = np.asarray(kept, np.float32), np.asarray(values, np.float32)
    np.testing.assert_array_equal(kept, values)
    np.testing.assert_array_equal(np.signbit(kept[values == 0]), np.signbit(values[values == 0]))


def test_what_a_wire_carries():
    spec = ProgramSpec("add", (), barriers=("3", "5.0.2"), observed=("1",))
    assert ProgramSpec.from_wire(spec.to_wire()) == spec
    wire = spec.to_wire() | {"barriers": ["3"], "observed": []}
    assert ProgramSpec.from_wire(wire).barriers == ("3",)
    site = Site(
        "5.0.2", "dot_general", ("bfloat16",), ((2, 3),), "model.py", 3, "f", within=("jit",)
    )
    assert Site.from_wire(site.to_wire()) == site
    assert site.place == "model.py:3 in f"
    assert site.outputs == ("observed.5.0.2",)
    assert output("4", 1, 2) == "observed.4:1"


def test_a_built_program_is_rewritten_and_named(tmp_path):
    text = "import jax.numpy as jnp\n\n\ndef program(x):\n    return {'y': jnp.tanh(x * x)}\n"
    (tmp_path / "small.py").write_text(text)
    spec = ProgramSpec(
        "callable",
        (OperandSpec("x", (3,), "bfloat16"),),
        {
            "callable": "small:program",
            "folder": str(tmp_path),
            "sources": {"small.py": hashlib.sha256(text.encode()).hexdigest()},
        },
        barriers=("0",),
        observed=("1", "0"),
    )
    program = build(spec)
    assert program.outputs == ("y", "observed.0", "observed.1")
    x = np.asarray([1, 2, 3], BF16)
    y, square, result = program.function(x)
    np.testing.assert_array_equal(square, x * x)
    np.testing.assert_array_equal(result, y)
    with pytest.raises(Unsupported, match="no barriers"):
        program.forward()


def test_nothing_asked_is_nothing_changed():
    closed = jax.make_jaxpr(everything)(X)
    same, further = rewrite(closed, Rewriting(frozenset(), frozenset()))
    assert further == []
    assert str(same) == str(closed)
