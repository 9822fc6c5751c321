"""Precision arguments by name."""

from __future__ import annotations

from typing import Any

from parity.errors import Unsupported


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
