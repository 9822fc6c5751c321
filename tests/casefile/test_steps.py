"""Chains of steps without Python."""

import pytest

STEPS = """\
about: A chain.
operands:
  x: {shape: [2, 3], dtype: float32, draw: normal}
  w: {shape: [3, 4], dtype: float32, draw: normal}
  b: {shape: [4], dtype: float16, draw: normal}
"""
DOT = "{dot: {contracting: [[1], [0]]}, with: narrow}"


def test_shapes_and_dtypes_are_known(folder):
    """Cast to bfloat16, [2,3]x[3,4], + float16[4]: float32[2,4] by JAX's promotion."""
    text = STEPS + (
        "steps:\n"
        "  - {cast: bfloat16, from: w, as: narrow}\n"
        "  - {cast: bfloat16, from: x}\n"
        f"  - {DOT}\n"
        "  - {add: b}\n"
        "  - {activation: gelu}\n"
        "transforms: [vjp]\n"
    )
    (case,) = folder.cases(text)
    (cotangent,) = case.program.extra
    assert (cotangent.shape, cotangent.dtype) == ((2, 4), "float32")
    assert case.program.attributes == {
        "operands": ("x", "w", "b"),
        "steps": (
            {"cast": "bfloat16", "from": "w", "as": "narrow"},
            {"cast": "bfloat16", "from": "x"},
            {"dot": {"dimension_numbers": (((1,), (0,)), ((), ()))}, "with": "narrow"},
            {"add": "b"},
            {"activation": "gelu"},
        ),
    }


def test_a_step_is_swept_and_found_again(folder):
    text = STEPS.replace("  b: {shape: [4], dtype: float16, draw: normal}\n", "") + (
        "steps: [{cast: bfloat16}, {dot: {contracting: [[1], [0]]}, with: w}]\n"
        "sweep: {steps.0.cast: [float32, float16]}\n"
        "expect: [{path: jit, where: {steps.0.cast: float16}, grade: divergent, because: x}]\n"
    )
    wide, narrow = folder.cases(text)
    assert (wide.id, narrow.id) == ("dot.yaml::dot:cast=float32", "dot.yaml::dot:cast=float16")
    assert (len(wide.expect), len(narrow.expect)) == (0, 1)


CONV = """\
about: A chain.
operands:
  x: {shape: [1, 1, 8], dtype: float32, draw: normal}
  w: {shape: [1, 1, 3], dtype: float32, draw: normal}
steps:
  - {cast: float64, from: w, as: k}
  - {conv: {window_strides: [1], padding: SAME}, from: x, with: k}
"""


def test_a_convolution_takes_one_dtype(folder):
    """As lax does in every release; a dot takes any two. Without x64 float64 is float32."""
    for dtype in ("float64", "bfloat16"):
        assert folder.error(CONV.replace("float64", dtype)) == (
            f"7:12: steps[1].conv: lhs and rhs differ in dtype (got float32, {dtype}; allowed one "
            "dtype)\nhint: cast one of them in a step before"
        )
    (case,) = folder.cases(CONV + "x64: false\n")
    assert not case.program.x64
    dot = "{dot: {contracting: [[1], [0]]}, with: w}"
    text = STEPS + f"steps: [{{cast: bfloat16}}, {dot}, {{add: b}}]\n"
    assert len(folder.cases(text)) == 1


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        (
            "[{add: c}, {add: w}, {add: b}]",
            "6:15: steps[0].add names nothing (got c; allowed x, w, b)",
        ),
        (
            "[{add: w}, {add: b}]",
            "6:15: steps[0].add does not fit (got [3, 4]; allowed [2, 3] or what broadcasts "
            "with it)",
        ),
        (
            "[{cast: float16}]",
            "4:3: operand 'w' is not used (got x, w, b; the steps use x)",
        ),
        (
            "[{as: y}]",
            "6:9: steps[0] needs exactly one of cast, conv, dot, add, sub, mul, activation "
            "(got none)",
        ),
        (
            "[{cast: float16, mul: b}]",
            "6:9: steps[0] needs exactly one of cast, conv, dot, add, sub, mul, activation "
            "(got cast, mul)",
        ),
        (
            "[{dot: {contracting: [[1], [0]]}}]",
            "6:9: missing key 'with' in steps[0]\nhint: with: an operand, or a "
            "name given by `as`, which is rhs",
        ),
        ("[{add: b, with: w}]", "6:18: steps[0].with stands beside conv and dot only"),
        ("[{cast: float16, as: w}]", "6:29: steps[0].as is taken (got w)"),
        (
            "[{activation: gleu}]",
            "6:22: steps[0].activation is no activation (got 'gleu'; allowed elu, gelu, "
            "log_softmax, relu, sigmoid, silu, softmax, softplus, tanh)\n"
            "hint: did you mean 'gelu'?",
        ),
        (
            "[{dot: {contracting: [[2], [0]]}, with: w}, {add: b}]",
            "6:30: steps[0].dot: contracting dimension of lhs does not exist (got 2 for lhs "
            "[2, 3]; allowed 0 to 1)",
        ),
        (
            "[{dot: {contraction: 1}, with: w}, {add: b}]",
            "6:16: unknown key 'contraction' in steps[0].dot (got contraction; allowed "
            "dimension_numbers, contracting, batch, precision, preferred_element_type)\n"
            "hint: did you mean 'contracting'?",
        ),
        (
            "[{dot: {}, with: w}, {add: b}]",
            "6:10: steps[0].dot: give either dimension_numbers or contracting\n"
            "hint: contracting: [[1], [0]] is a matrix product",
        ),
        ("[1]", "6:9: steps[0] is not a mapping (got 1; allowed a mapping)"),
        ("[]", "6:8: steps has too few entries (got []; allowed at least 1)"),
    ],
)
def test_what_makes_no_sense(folder, steps, message):
    assert folder.error(f"{STEPS}steps: {steps}\n") == message
