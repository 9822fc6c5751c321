"""The specification's interpreter as a reference of its own, beside `strict`."""

from pathlib import Path

import parity

CASES = Path(__file__).parents[2] / "cases"


def test_it_stands_last_and_says_where_it_is_not_strict():
    """A sum of 10,000 in bfloat16: the specification's reduce adds in the element type, and stalls
    at 256, where half an ulp is 1; strict adds wide and rounds once."""
    found = parity.run(
        CASES / "bf16_long_sum.yaml", k="bfloat16", paths=("stablehlo", "eager"), cache=False
    )
    assert [row.path for row in found.rows] == ["eager", "stablehlo"]
    assert found.rows[1].values == (256.0,)
    (case,) = found.cases
    assert (
        "stablehlo: a reference of its own; other bits than strict in 1 of 1 elements, "
        "outside its interval"
    ) in case.words


def test_where_it_has_the_bits_of_strict_nothing_is_said():
    found = parity.run(CASES / "conv_bf16.yaml", paths=("stablehlo", "eager"), cache=False)
    assert not any("a reference of its own" in line for case in found.cases for line in case.words)
