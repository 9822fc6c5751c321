"""The template of a new case file."""

from __future__ import annotations

from parity.casefile.ops import op, ops
from parity.casefile.problem import did_you_mean, listed, show
from parity.errors import UserError

SCHEMA_FILE = "parity.schema.json"

_TEMPLATE = """\
# yaml-language-server: $schema={schema}
name: {name}
about: One sentence that says what this case guards.
links: []
op: {op}
{example}\
# compute_dtype: bfloat16   # operands are cast to it before the op
# output_dtype: float32     # its result is cast to it
# residual: lhs             # an operand that is added to the result
transforms: [forward]       # forward, vjp, jvp, vmap
paths: [eager, jit, jax2tf-native, jax2tf-nonnative]
baseline: eager
# tolerance: {{rtol: 1.0e-6, atol: 0, max_ulp: 4, against: baseline}}
sweep:
  compute_dtype: [float32, bfloat16]
# expect:
#   - path: jit
#     where: {{compute_dtype: bfloat16}}
#     grade: divergent
#     because: excess-precision
"""


def template(op_name: str, name: str) -> str:
    """A commented case file of one op, which loads as it is.

    Args:
        op_name: of the op.
        name: of the case file, used in ids.

    Raises:
        UserError: no such op.
    """
    if op_name not in ops():
        what = f"unknown op (got {show(op_name)}; allowed {listed(ops())})"
        raise UserError(what, hint=did_you_mean(op_name, ops()))
    return _TEMPLATE.format(schema=SCHEMA_FILE, name=name, op=op_name, example=op(op_name).EXAMPLE)
