from dataclasses import replace

import numpy as np
import pytest

from parity.compare.rows import compare_case
from parity.compare.words import words
from parity.program.spec import OperandSpec, ProgramSpec
from parity.worker.protocol import Enclosure, Failure, References

F32 = np.float32
# The founding report: operands and product in bfloat16, residual in float32.
STRICT = np.array([-1.3705847, -2.27708], F32)
KEPT = np.array([-1.3709509, -2.2795215], F32)
WIDE = np.array([-1.3713225, -2.2845213], F32)
F64 = np.array([-1.3713225, -2.28452135])


def out(array):
    """An output about which nothing is uncertain."""
    return {"out": Enclosure(array, array, array)}


REFERENCES = References(
    f64={"out": Enclosure(F64, F64 - 0.01, F64 + 0.01)},
    strict=out(STRICT),
    models={"excess-precision": out(KEPT), "wide": out(WIDE)},
)


@pytest.fixture
def said(make_case, make_outcome):
    def lines(outputs, references=REFERENCES, **changes):
        case = make_case(**changes)
        outcomes = [make_outcome(path, value) for path, value in outputs.items()]
        return words(case, compare_case(case, outcomes, references), outcomes, references)

    return lines


def test_the_founding_report(said):
    assert said({"eager": STRICT, "jit": KEPT, "native": WIDE, "nonnative": STRICT}) == (
        "jit keeps the product in float32: closer to float64 than eager, but not what bfloat16"
        " declares",
        "native drops the casts to bfloat16 and computes in float32 throughout: closer to float64"
        " than eager, but not what bfloat16 declares",
    )


@pytest.mark.parametrize(
    ("op", "attributes", "declared"),
    [
        ("callable", {"callable": "a:f"}, "the program"),
        ("callable", {"arguments": {"to": ("float16",)}}, "float16"),
        ("flax", {"kwargs": {"dtype": "bfloat16"}}, "bfloat16"),
        ("steps", {"steps": ({"cast": "bfloat16"}, {"cast": "float32"})}, "bfloat16"),
        ("steps", {"steps": ({"cast": "float32"},)}, "float32"),
    ],
)
def test_what_a_program_declares(said, op, attributes, declared):
    program = ProgramSpec(op, (OperandSpec("x", (2,), "float32"),), attributes)
    to = "" if declared == "the program" else f"to {declared} "
    assert said({"eager": STRICT, "jit": KEPT, "native": WIDE}, program=program) == (
        "jit keeps intermediate results in float32: closer to float64 than eager, but not what "
        f"{declared} declares",
        f"native drops the casts {to}and computes in float32 throughout: closer to float64 than "
        f"eager, but not what {declared} declares",
    )


def test_a_model_is_named_only_for_its_very_bits(said):
    near = KEPT.copy()
    near[1] = np.nextafter(near[1], F32(0))
    line = said({"eager": STRICT, "jit": near})[0]
    assert "product" not in line
    assert line == (
        "jit differs from eager in 2 of 2 elements, by at most 10239 ulp of float32; closer to"
        " float64 than eager; eager is what the program declares"
    )


def test_a_model_that_strict_equals_explains_nothing(said):
    references = References(
        f64=REFERENCES.f64, strict=out(KEPT), models={"excess-precision": out(KEPT)}
    )
    assert said({"eager": STRICT, "jit": KEPT}, references) == (
        "jit differs from eager in 2 of 2 elements, by at most 10240 ulp of float32; closer to"
        " float64 than eager; it is what the program declares, eager is not",
    )


def test_farther_and_mixed(said):
    one = References(f64=out(np.array([1.0, 100.0])))
    base = np.array([1.0, 101.0], F32)
    line = said({"eager": base, "jit": np.array([1.0, 102.0], F32)}, one)[0]
    assert line.endswith("; farther from float64 than eager")
    line = said({"eager": base, "jit": np.array([1.0, 99.0], F32)}, one)[0]
    assert line.endswith("; about as far from float64 as eager")
    # rms: sqrt(0.9^2 + 0.9^2) > 1, at worst 0.9 < 1
    line = said({"eager": base, "jit": np.array([1.9, 100.9], F32)}, one)[0]
    assert line.endswith("; farther from float64 than eager on the whole, closer at worst")


def test_nan_leaves_the_distance_unsaid(said):
    one = References(f64=out(np.array([1.0, 2.0])), strict=out(np.array([1.0, 2.0], F32)))
    nan = np.array([np.nan, 2.0], F32)
    line = said({"eager": nan, "jit": np.array([np.nan, 3.0], F32)}, one)[1]
    assert line == "jit differs from eager in 1 of 2 elements, by at most 4194304 ulp of float32"


def test_failures(said):
    failure = Failure("error", "convert", "NotImplementedError", "RhsT of bool\nin the list")
    gone = Failure("unsupported", "build", "", "removed in JAX 0.7.2")
    killed = Failure("crashed", "run", "SIGSEGV")
    assert said({"eager": STRICT, "jit": failure, "native": gone, "third": killed}) == (
        "jit: error at convert: NotImplementedError: RhsT of bool",
        "native: unsupported: removed in JAX 0.7.2",
        "third: crashed at run: SIGSEGV",
    )


def test_mismatch_and_signed_zeros_and_integers(said):
    none = References()
    zero = np.zeros(2, F32)
    assert said({"eager": zero, "jit": np.zeros(3, F32)}, none) == (
        "jit: mismatched: shape (3), baseline (2)",
    )
    assert said({"eager": zero, "jit": -zero}, none) == (
        "jit differs from eager in 2 of 2 elements, in the sign of zeros only",
    )
    assert said({"eager": np.array([1, 2]), "jit": np.array([1, 5])}, none) == (
        "jit differs from eager in 1 of 2 elements, by at most 3",
    )
    assert said({"eager": np.array([True]), "jit": np.array([False])}, none) == (
        "jit differs from eager in 1 of 1 elements",
    )


def test_outputs_are_named_where_there_are_several(said):
    two = {"vjp.lhs": STRICT, "vjp.rhs": STRICT}
    lines = said({"eager": two, "jit": two | {"vjp.rhs": KEPT}}, References())
    assert len(lines) == 1
    assert lines[0].startswith("jit (vjp.rhs) differs from eager in 2 of 2 elements")


def test_without_a_baseline(said):
    lines = said({"eager": Failure("timeout", "run"), "jit": STRICT, "native": KEPT})
    assert lines[0] == "eager: timeout at run"
    assert lines[1] == "jit: no baseline"
    assert lines[2].startswith("native: no baseline; excess-precision; differs from strict in 2")


def test_a_gradient_of_another_dtype_than_its_operand(said):
    operands = (OperandSpec("lhs", (2,), "bfloat16"), OperandSpec("rhs", (2,), "float32"))
    program = ProgramSpec("callable", operands, transform="vjp")
    both = {"vjp.lhs": STRICT, "vjp.rhs": STRICT}
    lines = said({"eager": both, "jit": both}, References(), program=program)
    assert lines == (
        "eager: vjp.lhs is float32, its operand bfloat16",
        "jit: vjp.lhs is float32, its operand bfloat16",
    )


def test_a_float64_gradient_is_float32_without_64_bit_types(said):
    program = ProgramSpec("callable", (OperandSpec("x", (2,), "float64"),), transform="vjp")
    narrow, wide = {"vjp.x": STRICT}, {"vjp.x": F64}
    assert said({"eager": narrow}, References(), program=program) == ()
    program = replace(program, x64=True)
    assert said({"eager": wide}, References(), program=program) == ()
    assert said({"eager": narrow}, References(), program=program) == (
        "eager: vjp.x is float32, its operand float64",
    )
