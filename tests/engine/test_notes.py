"""What a reader must know of a case besides its numbers."""

import parity

CASE = """
name: sums
about: Whole numbers whose sum is beyond what the accumulator holds exactly.
op: dot_general
operands:
  lhs: {shape: [1, 2048], dtype: bfloat16, draw: integers, low: -256, high: 256}
  rhs: {shape: [2048, 1], dtype: bfloat16, draw: integers, low: -256, high: 256}
attributes: {contracting: [[1], [0]], preferred_element_type: float32}
paths: [eager]
"""


def test_integers_say_when_they_no_longer_are_exact(tmp_path):
    (tmp_path / "sums.yaml").write_text(CASE)
    (case,) = parity.run(tmp_path).cases
    assert any("a difference may be rounding" in note for note in case.notes)
    (tmp_path / "sums.yaml").write_text(CASE.replace("256", "4"))
    (case,) = parity.run(tmp_path).cases
    assert case.notes == ()
