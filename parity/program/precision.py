"""Precision arguments by name."""

from __future__ import annotations

from typing import Any

from parity.worker.protocol import Unsupported


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
