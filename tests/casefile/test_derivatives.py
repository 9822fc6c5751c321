"""What transforms take beside the operands, and what they leave alone."""

import numpy as np
import pytest

OPERANDS = """\
operands:
  q: {shape: [2, 3], dtype: float32, draw: normal}
  n: {shape: [2], dtype: int32, draw: integers}
"""
CALLABLE = f"about: A function.\nprogram: {{callable: 'attention:scores'}}\n{OPERANDS}"


def test_a_cotangent_for_one_output(folder):
    text = CALLABLE + "transforms: [vjp]\ncotangent: {shape: [5], dtype: bfloat16}\n"
    (case,) = folder.cases(text)
    (spec,) = case.program.extra
    assert (spec.name, spec.shape, spec.dtype) == ("cotangent", (5,), "bfloat16")
    assert case.operands[-1].draw == "normal"


def test_cotangents_of_several(folder):
    text = CALLABLE + (
        "transforms: [vjp, forward]\n"
        "cotangents: {out.0: {shape: [5], dtype: float32}, loss: {values: 1, dtype: float16}}\n"
    )
    vjp, forward = folder.cases(text)
    specs = [(spec.name, spec.shape, spec.dtype) for spec in vjp.program.extra]
    assert specs == [
        ("cotangent.out.0", (5,), "float32"),
        ("cotangent.loss", (), "float16"),
    ]
    assert vjp.arrays()[-1] == np.float16(1)
    assert forward.program.extra == ()


def test_a_scalar_may_do_without(folder):
    (case,) = folder.cases(CALLABLE + "transforms: [vjp]\n")
    assert case.program.extra == ()


def test_tangents_are_those_of_what_is_differentiated(folder):
    text = CALLABLE.replace("dtype: int32, draw: integers", "dtype: float32, draw: normal")
    (both,) = folder.cases(text + "transforms: [jvp]\n")
    (one,) = folder.cases(text + "transforms: [jvp]\ngradients: [n]\n")
    assert [spec.name for spec in both.program.extra] == ["tangent.q", "tangent.n"]
    assert [spec.name for spec in one.program.extra] == ["tangent.n"]
    assert one.program.gradients == ("n",)
    np.testing.assert_array_equal(both.arrays()[-1], one.arrays()[-1])


@pytest.mark.parametrize(("op", "chosen"), [(False, "q"), (True, "rhs")])
def test_only_what_is_batched_gets_an_axis(folder, dot, op, chosen):
    text = (dot if op else CALLABLE) + f"transforms: [vmap]\nbatched: {chosen}\nbatch: 7\n"
    (case,) = folder.cases(text)
    inputs = case.program.inputs()
    assert [spec.name for spec in inputs if spec.shape[0] == 7] == [chosen]
    assert [array.shape for array in case.arrays()] == [spec.shape for spec in inputs]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (
            "cotangent: {dtype: float32}",
            "7:12: missing key 'shape' in cotangent, at transform=vjp\n"
            "hint: the output's shape: [2, 3]",
        ),
        (
            "cotangents: {out: {shape: [2]}}",
            "7:19: missing key 'dtype' in cotangents.out, at transform=vjp\n"
            "hint: the output's dtype",
        ),
        (
            "cotangents: {out: {shape: [2], dtype: int8}}",
            "7:39: cotangents.out.dtype is not floating (got int8), at transform=vjp",
        ),
        (
            "cotangents: {out: {shape: [], dtype: float32}}\ncotangent: {dtype: float32}",
            "8:1: cotangent stands beside cotangents, at transform=vjp\n"
            "hint: write it as cotangents: {out: {…}}",
        ),
        (
            "gradients: [n]",
            "7:13: gradients[0] names no floating operand (got n; allowed operands, q), "
            "at transform=vjp",
        ),
        (
            "gradients: parameters",
            "7:12: gradients[0] names no floating operand (got parameters; allowed operands, q)"
            ", at transform=vjp",
        ),
    ],
)
def test_what_makes_no_sense(folder, lines, message):
    assert folder.error(f"{CALLABLE}transforms: [vjp]\n{lines}\n") == message


def test_of_an_op_the_shape_is_known(folder, dot):
    text = dot + "transforms: [vjp]\ncotangent: {shape: [2, 5]}\n"
    assert folder.error(text) == (
        "10:20: cotangent.shape is not the output's (got [2, 5]; allowed [2, 4]), at transform=vjp"
    )
    text = dot + "transforms: [vjp]\ncotangents: {out: {draw: normal}}\n"
    assert folder.error(text) == (
        "10:1: cotangents is for programs of several outputs (got one output), "
        "at transform=vjp\nhint: write cotangent: {…}"
    )


def test_batched_names_operands(folder, dot):
    assert folder.error(dot + "transforms: [vmap]\nbatched: [lsh]\n") == (
        "10:11: batched[0] names no operand (got lsh; allowed lhs, rhs), at transform=vmap\n"
        "hint: did you mean 'lhs'?"
    )
