"""Precision arguments by name."""

from __future__ import annotations

from typing import Any

from parity.errors import Unsupported
from parity.program.jax_versions import ClosedJaxpr, Jaxpr, equations


def precision(value: Any) -> Any:
    """What JAX takes as `precision`.

    Args:
        value: None; "default", "high" or "highest"; a pair of these (lhs, rhs); or the name of a
            `jax.lax.DotAlgorithmPreset` such as "BF16_BF16_F32_X3".

    Raises:
        Unsupported: the installed JAX has no such preset.
    """
    from jax import lax

    if value is None:
        return None
    if not isinstance(value, str):
        lhs, rhs = (precision(one) for one in value)
        return lhs, rhs
    if value.upper() in lax.Precision.__members__:
        return lax.Precision[value.upper()]
    presets = getattr(lax, "DotAlgorithmPreset", None)
    if presets is None or value.upper() not in presets.__members__:
        import jax

        raise Unsupported(f"JAX {jax.__version__} has no DotAlgorithmPreset {value}")
    return presets[value.upper()]


def precision_name(value: Any) -> Any:
    """The name that `precision` turns into a value of JAX; None where there is none.

    Args:
        value: a `jax.lax.Precision`, a `DotAlgorithmPreset`, or a pair (lhs, rhs) of precisions.

    Returns:
        A name, or for a pair of different ones a list of two.
    """
    from jax import lax

    if isinstance(value, tuple):
        names = [precision_name(one) for one in value]
        if None in names:
            return None
        return names[0] if names[0] == names[1] else names
    if isinstance(value, lax.Precision):
        return value.name.lower()
    presets = getattr(lax, "DotAlgorithmPreset", None)
    return value.name if presets is not None and isinstance(value, presets) else None


def precisions(closed: ClosedJaxpr) -> tuple[str, ...]:
    """The precisions other than the default that a program's equations carry, sorted names.

    Whoever asks for them: an argument, a context, a setting of `jax.config` or the environment.
    """
    return tuple(sorted({name for eqn in equations(closed) for name in _asked(eqn)}))


def without_precisions(closed: ClosedJaxpr) -> ClosedJaxpr:
    """A program with the default precision in each equation, those of inner jaxprs included."""
    return closed.replace(jaxpr=_rewritten(closed.jaxpr))


def _asked(eqn: Any) -> list[str]:
    value = eqn.params.get("precision")
    name = precision_name(value) or str(value)
    names = [name] if isinstance(name, str) else name
    return [] if value is None else [name for name in names if name.lower() != "default"]


def _rewritten(jaxpr: Jaxpr) -> Jaxpr:
    eqns = []
    for eqn in jaxpr.eqns:
        params = {name: _rewritten_value(value) for name, value in eqn.params.items()}
        if "precision" in params:
            params["precision"] = None
        eqns.append(eqn.replace(params=params))
    return jaxpr.replace(eqns=eqns)


def _rewritten_value(value: Any) -> Any:
    if isinstance(value, ClosedJaxpr):
        return value.replace(jaxpr=_rewritten(value.jaxpr))
    if isinstance(value, Jaxpr):
        return _rewritten(value)
    if isinstance(value, list | tuple) and any(
        isinstance(one, ClosedJaxpr | Jaxpr) for one in value
    ):
        return type(value)(map(_rewritten_value, value))
    return value
