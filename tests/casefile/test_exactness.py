"""When sums of whole numbers stop being exact."""

import pytest

from parity.casefile.exactness import exact_limit, exact_until
from parity.dtypes import dtype

INTEGERS = """\
about: Whole numbers.
op: dot_general
operands:
  lhs: {shape: [2, K], dtype: DTYPE, draw: integers}
  rhs: {shape: [K, 2], dtype: DTYPE, draw: integers}
attributes:
  contracting: [[1], [0]]
"""


@pytest.mark.parametrize(
    "name", ["float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "float4_e2m1fn"]
)
def test_every_whole_number_up_to_the_limit_is_held_and_the_next_is_not(name):
    limit = exact_limit(dtype(name))
    held = [float(dtype(name).numpy().type(n)) == n for n in range(limit + 2)]
    assert held == [True] * (limit + 1) + [False]


@pytest.mark.parametrize(
    ("name", "terms", "lines", "sentence"),
    [
        ("bfloat16", 16, "", None),
        (
            "bfloat16",
            17,
            "",
            "K·max|lhs|·max|rhs| may reach 17·4·4 = 272, but bfloat16 holds every whole "
            "number only up to 256: a difference may be rounding",
        ),
        ("bfloat16", 17, "  preferred_element_type: float32\n", None),
        (
            "bfloat16",
            17,
            "  preferred_element_type: float32\noutput_dtype: bfloat16\n",
            "K·max|lhs|·max|rhs| may reach 17·4·4 = 272, but bfloat16 holds every whole "
            "number only up to 256: a difference may be rounding",
        ),
        (
            "float32",
            17,
            "compute_dtype: bfloat16\n",
            "K·max|lhs|·max|rhs| may reach 17·4·4 = 272, but bfloat16 holds every whole "
            "number only up to 256: a difference may be rounding",
        ),
        ("float32", 17, "", None),
        ("int8", 7, "", None),
        (
            "int8",
            8,
            "",
            "K·max|lhs|·max|rhs| may reach 8·4·4 = 128, but int8 holds every whole number "
            "only up to 127: a difference may come from wrapping around",
        ),
    ],
)
def test_the_sentence(folder, name, terms, lines, sentence):
    text = INTEGERS.replace("K", str(terms)).replace("DTYPE", name) + lines
    assert exact_until(folder.cases(text)[0]) == sentence


def test_an_operand_may_itself_be_beyond_its_dtype(folder):
    text = INTEGERS.replace("K", "1").replace("DTYPE", "bfloat16")
    text = text.replace("integers}\n  rhs", "integers, low: -300, high: 2}\n  rhs")
    assert exact_until(folder.cases(text)[0]) == (
        "operand lhs reaches 300, but bfloat16 holds every whole number only up to 256: "
        "a difference may be rounding"
    )


def test_explicit_whole_numbers_count_and_others_do_not(folder):
    text = INTEGERS.replace("K", "2").replace("DTYPE", "float16")
    values = text.replace("draw: integers}\n  rhs", "values: [[1, 2], [3, VALUE]]}\n  rhs")
    assert exact_until(folder.cases(values.replace("VALUE", "256"))[0]) is None  # 2·256·4 = 2048
    assert exact_until(folder.cases(values.replace("VALUE", "300"))[0]).startswith("K·max|lhs|")
    assert exact_until(folder.cases(values.replace("VALUE", "300.5"))[0]) is None
