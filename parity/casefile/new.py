"""The template of a new case file."""

from __future__ import annotations

import re
from collections.abc import Sequence

from parity.casefile.ops import op, ops
from parity.casefile.problem import did_you_mean, listed, show
from parity.errors import UserError
from parity.program.spec import PROGRAMS

SCHEMA_FILE = "parity.schema.json"

_AXES = ("compute_dtype",)
_FIRST_OPERAND = re.compile(r"^operands:.*\n +(\w+):", re.MULTILINE)

_TEMPLATE = """\
# yaml-language-server: $schema={schema}
name: {name}
about: One sentence that says what this case guards.
links: []
{example}\
# compute_dtype: bfloat16   # operands are cast to it before the op
# output_dtype: float32     # its result is cast to it
# residual: {operand:<15} # an operand that is added to the result
transforms: [forward]       # forward, vjp, jvp, vmap
paths: [eager, jit, jax2tf-native, jax2tf-nonnative]
baseline: eager
# tolerance: {{rtol: 1.0e-6, atol: 0, max_ulp: 4, against: baseline}}
sweep:
{sweep}
# expect:
#   - path: jit
#     where: {{{axis}: bfloat16}}
#     grade: divergent
#     because: excess-precision
"""


def template(op_name: str, name: str) -> str:
    """A commented case file of one op, or of what stands for one, which loads as it is.

    Args:
        op_name: of the op; or callable, flax, steps.
        name: of the case file, used in ids.

    Raises:
        UserError: no such op.
    """
    allowed = (*ops(), *PROGRAMS)
    if op_name not in allowed:
        what = f"unknown op (got {show(op_name)}; allowed {listed(allowed)})"
        raise UserError(what, hint=did_you_mean(op_name, allowed))
    head = "" if op_name in PROGRAMS else f"op: {op_name}\n"
    chosen = op(op_name)
    first = _FIRST_OPERAND.search(chosen.EXAMPLE)
    assert first is not None  # every example has operands
    axes = getattr(chosen, "AXES", _AXES)
    return _TEMPLATE.format(
        schema=SCHEMA_FILE,
        name=name,
        example=head + chosen.EXAMPLE,
        operand=first[1],
        axis=axes[0],
        sweep=_sweep(axes),
    )


def _sweep(axes: Sequence[str]) -> str:
    """Dtypes of one axis, or of several that move together."""
    lines = [f"  {axis}: [float32, bfloat16]" for axis in axes]
    return "\n".join(lines if len(axes) == 1 else ["  zip:", *(f"  {line}" for line in lines)])
