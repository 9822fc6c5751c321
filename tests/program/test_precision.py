"""Precisions by name, both ways."""

import pytest
from jax import lax

from parity.program.precision import precision, precision_name

PRESETS = [preset for preset in lax.DotAlgorithmPreset if preset.name != "DEFAULT"]


@pytest.mark.parametrize("value", [*lax.Precision, *PRESETS], ids=str)
def test_the_name_of_a_value_gives_it_back(value):
    assert precision(precision_name(value)) is value


def test_the_default_algorithm_is_the_default_precision():
    assert precision(precision_name(lax.DotAlgorithmPreset.DEFAULT)) is lax.Precision.DEFAULT


def test_pairs():
    high, highest = lax.Precision.HIGH, lax.Precision.HIGHEST
    assert precision_name((high, highest)) == ["high", "highest"]
    assert precision(["high", "highest"]) == (high, highest)
    assert precision_name((high, high)) == "high"


def test_an_algorithm_without_a_preset_has_no_name():
    algorithm = lax.DotAlgorithmPreset.F32_F32_F32
    assert precision_name(object()) is None
    assert precision_name((algorithm, object())) is None
