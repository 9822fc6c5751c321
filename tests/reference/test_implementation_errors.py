"""The stated errors of elementary functions hold what XLA's CPU backend really returns."""

import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from parity.dtypes import DTYPES
from parity.reference.policies import F64, STRICT
from parity.reference.value import Value
from parity.reference.wide import widen

NAMES = [
    "abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "cbrt", "ceil", "cos", "cosh",
    "digamma", "erf", "erf_inv", "erfc", "exp", "exp2", "expm1", "floor", "lgamma", "log", "log1p",
    "logistic", "neg", "rsqrt", "sign", "sin", "sinh", "sqrt", "square", "tan", "tanh",
]  # fmt: skip
FUNCTIONS = {name: getattr(lax, name) for name in NAMES}
FUNCTIONS |= {
    f"integer_pow {n}": lambda x, n=n: lax.integer_pow(x, n) for n in (-3, -2, -1, 2, 3, 5)
}

LIMITS = {
    # exp(-x) overflows in float16, and 1/inf is 0: XLA loses what float16 could hold
    ("logistic", "float16"): (-11, 1e5),
    # the power overflows or vanishes before it is inverted
    ("integer_pow -2", "float16"): (0.02, 100),
    ("integer_pow -3", "float16"): (0.1, 20),
    ("integer_pow -2", "bfloat16"): (1e-18, 1e18),
    ("integer_pow -3", "bfloat16"): (1e-12, 1e12),
}


def arguments(name, dtype):
    """Every 23rd bit pattern of 16 bits; float32 near 0 and 1 and over five decades."""
    if dtype == "float32":
        rng = np.random.default_rng(0)
        x = np.concatenate([
            rng.normal(size=4000) * 10.0 ** rng.uniform(-3, 2, 4000), rng.uniform(-1, 1, 2000),
            1 + rng.normal(size=500) * 1e-4, [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan],
        ]).astype(np.float32)  # fmt: skip
    else:
        every = np.arange(0, 65536, 23, dtype=np.uint16)
        x = np.concatenate([every, [0, 0x8000]]).astype(np.uint16).view(DTYPES[dtype].numpy())
    with np.errstate(invalid="ignore"):
        size = np.abs(x.astype(np.float32))
    smallest = 2.0 ** DTYPES[dtype].format.emin
    normal = (size == 0) | (size >= smallest) | np.isnan(size) | (dtype == "float16")
    low, high = LIMITS.get((name, dtype), (-np.inf, np.inf))
    within = size if low >= 0 else x.astype(np.float32)
    return x[normal & ~((within < low) | (within > high))]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_xla_is_inside_what_is_stated(enclosed, name, dtype):
    """Both the order interval, with the licence `expansion`, and the accuracy bound."""
    function, x = FUNCTIONS[name], arguments(name, dtype)
    got = widen(np.asarray(function(jnp.asarray(x))))
    tiny = 2.0 ** (DTYPES[dtype].format.emin + 1)  # asin halves it on the way, and flushes that
    for policy in (STRICT.granting("expansion"), F64):
        want = enclosed(function, Value.exactly(widen(x)), dtype=dtype, policy=policy)
        held = (want.lo <= got) & (got <= want.hi)
        flushed = (got == 0) & (np.abs(want.point) <= tiny) & (dtype != "float16")
        assert (held | flushed | (np.isnan(got) & np.isnan(want.point))).all()
