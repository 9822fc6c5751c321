"""The contractions of a program: how many of which dtypes, in its forward and backward passes."""

from __future__ import annotations

from collections import Counter

from parity.program.jax_versions import ClosedJaxpr, equations

_CONTRACTIONS = ("dot_general", "conv_general_dilated")


def dots(closed: ClosedJaxpr) -> str:
    """The dtypes of a program's dots and convolutions, those of inner jaxprs included.

    Returns:
        As in "2 bfloat16·bfloat16 -> float32, 1 float32·bfloat16 -> float32 (mixed)", in the order
        in which the program has them; "" for a program without any.
    """
    found: Counter[str] = Counter()
    for eqn in equations(closed):
        if eqn.primitive.name in _CONTRACTIONS:
            lhs, rhs = (atom.aval.dtype.name for atom in eqn.invars[:2])
            mixed = " (mixed)" if lhs != rhs else ""
            found[f"{lhs}·{rhs} -> {eqn.outvars[0].aval.dtype.name}{mixed}"] += 1
    return ", ".join(f"{count} {kind}" for kind, count in found.items())
