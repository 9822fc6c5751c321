"""Inference of shapes and dtypes; `jax.eval_shape` is the oracle."""

import jax
import jax.numpy as jnp
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from jax import lax
from jax.experimental import enable_x64

from parity.casefile.op import promoted
from parity.casefile.ops import infer, ops
from parity.casefile.problem import Problem
from parity.program.spec import OperandSpec

FAST = settings(max_examples=150, deadline=None, derandomize=True)
SIZES = st.integers(0, 5)


def specs(*shapes, dtype="float32"):
    return [OperandSpec(f"operand{i}", tuple(shape), dtype) for i, shape in enumerate(shapes)]


def abstract(operands):
    return [jax.ShapeDtypeStruct(spec.shape, spec.dtype) for spec in operands]


def agree(op, function, operands, keywords):
    """Either both give the same shape and dtype, or both refuse."""
    try:
        wanted = jax.eval_shape(function, *abstract(operands))
    except (AssertionError, TypeError, ValueError):
        with pytest.raises(Problem):
            infer(op, operands, keywords)
        return False
    result = infer(op, operands, keywords)
    assert result.shape == wanted.shape
    assert result.dtype == wanted.dtype.name
    return True


@st.composite
def convolutions(draw):
    """Mostly fitting operands and attributes of a convolution."""
    rank = draw(st.integers(0, 2))
    letters = "HW"[:rank]
    groups = draw(st.integers(1, 3))
    batches = draw(st.integers(1, 3)) if groups == 1 or draw(st.integers(0, 9)) == 0 else 1
    sizes = {
        "N": draw(st.integers(0, 2)) * batches + draw(st.sampled_from([0, 0, 0, 1])),
        "C": draw(st.integers(0, 2)) * groups + draw(st.sampled_from([0, 0, 0, 1])),
        "O": draw(st.integers(0, 2)) * groups * batches + draw(st.sampled_from([0, 0, 0, 1])),
    }
    sizes["I"] = sizes["C"] // groups
    numbers = tuple("".join(draw(st.permutations(pair + letters))) for pair in ("NC", "OI", "NC"))
    lhs = {**sizes, **{letter: draw(SIZES) for letter in letters}}
    rhs = {**sizes, **{letter: draw(SIZES) for letter in letters}}
    several = st.lists(st.integers(1, 3), min_size=rank, max_size=rank).map(tuple)
    pairs = st.lists(
        st.tuples(st.integers(-2, 3), st.integers(-2, 3)), min_size=rank, max_size=rank
    ).map(tuple)
    keywords = {
        "window_strides": draw(several),
        "padding": draw(st.sampled_from(["VALID", "SAME", "SAME_LOWER"]) | pairs),
        "lhs_dilation": draw(st.none() | several),
        "rhs_dilation": draw(st.none() | several),
        "dimension_numbers": numbers,
        "feature_group_count": groups,
        "batch_group_count": batches,
        "preferred_element_type": draw(st.sampled_from([None, "float32"])),
    }
    operands = specs([lhs[a] for a in numbers[0]], [rhs[a] for a in numbers[1]])
    return operands, {name: value for name, value in keywords.items() if value is not None}


@FAST
@given(convolutions())
def test_convolutions_agree_with_jax(configuration):
    operands, keywords = configuration
    agree(
        "conv_general_dilated",
        lambda lhs, rhs: lax.conv_general_dilated(lhs, rhs, **keywords),
        operands,
        keywords,
    )


@pytest.mark.parametrize(
    ("lhs", "rhs", "keywords", "shape"),
    [
        ((1, 1, 3), (1, 1, 5), {"padding": "VALID"}, (1, 1, 0)),
        ((1, 1, 3), (1, 1, 2), {"padding": ((-1, -1),)}, (1, 1, 0)),
        ((1, 1, 3), (1, 1, 1), {"padding": ((-1, -1),)}, (1, 1, 1)),
        ((0, 3, 8), (2, 3, 3), {"padding": "VALID"}, (0, 2, 6)),
        ((4, 3), (2, 3), {"padding": "VALID", "window_strides": ()}, (4, 2)),
    ],
)
def test_empty_and_negatively_padded_convolutions(lhs, rhs, keywords, shape):
    keywords = {"window_strides": (1,), **keywords}
    assert infer("conv_general_dilated", specs(lhs, rhs), keywords).shape == shape


def test_terms_are_the_products_of_one_element():
    keywords = {"window_strides": (1, 1), "padding": "SAME", "feature_group_count": 2}
    conv = infer("conv_general_dilated", specs((1, 6, 8, 8), (4, 3, 5, 7)), keywords)
    dot = {"dimension_numbers": (((1, 2), (0, 1)), ((0,), (2,)))}
    assert conv.terms == 3 * 5 * 7
    assert infer("dot_general", specs((2, 3, 4), (3, 4, 2)), dot).terms == 12
    assert infer("einsum", specs((2, 3, 4), (4, 5)), {"subscripts": "bij,jk->ik"}).terms == 8


@st.composite
def contractions(draw):
    """Dimension numbers of a dot_general, most of which fit the shapes."""
    batch, contracted = draw(st.integers(0, 2)), draw(st.integers(0, 2))
    kinds = ["b0", "b1"][:batch] + ["c0", "c1"][:contracted]
    size = {kind: draw(SIZES) for kind in kinds}
    sides = []
    for side in "lr":
        labels = draw(
            st.permutations([*kinds, *(f"{side}{i}" for i in range(draw(st.integers(0, 2))))])
        )
        sides.append((labels, [size.get(label, 2) for label in labels]))
    if kinds and draw(st.integers(0, 4)) == 0:
        sides[0][1][sides[0][0].index(kinds[0])] += 1
    numbers = tuple(
        tuple(tuple(labels.index(kind) for kind in group) for labels, _ in sides)
        for group in (kinds[batch:], kinds[:batch])
    )
    if draw(st.integers(0, 4)) == 0:
        numbers = (numbers[0], draw(st.sampled_from([((0,), (0,)), ((3,), (0,)), ((0,), ())])))
    return specs(*(shape for _, shape in sides)), {"dimension_numbers": numbers}


@FAST
@given(contractions(), st.sampled_from(["float32", "bfloat16", "int8", "complex64", "bool"]))
def test_contractions_agree_with_jax(configuration, dtype):
    operands, keywords = configuration
    operands = [OperandSpec(spec.name, spec.shape, dtype) for spec in operands]
    agree("dot_general", lambda a, b: lax.dot_general(a, b, **keywords), operands, keywords)


@FAST
@given(
    st.lists(st.text("ijk", max_size=3), min_size=1, max_size=3),
    st.none() | st.text("ijk", max_size=3),
    st.fixed_dictionaries({letter: st.integers(1, 4) for letter in "ijk"}),
    st.lists(st.integers(1, 3), max_size=2),
    st.booleans(),
)
def test_einsums_agree_with_jax(terms, output, sizes, lead, wrong):
    dots = ["..." if lead and index != 1 else "" for index in range(len(terms))]
    shapes = [
        (*(lead if mark else ()), *(sizes[letter] for letter in term))
        for mark, term in zip(dots, terms, strict=True)
    ]
    if wrong and terms[0]:
        shapes[0] = (*shapes[0][:-1], shapes[0][-1] + 1)
    subscripts = ",".join(mark + term for mark, term in zip(dots, terms, strict=True))
    if output is not None:
        subscripts += "->" + ("..." if lead else "") + output
    keywords = {"subscripts": subscripts}
    # A diagonal of unequal sizes: NumPy refuses it, JAX broadcasts it.
    assume(not (wrong and terms[0].count(terms[0][-1:]) > 1))
    agree("einsum", lambda *a: jnp.einsum(subscripts, *a), specs(*shapes), keywords)


def test_promotion_agrees_with_jax_wherever_it_claims_to_know():
    names = ("bool", "int8", "uint8", "int32", "float16", "bfloat16", "float32", "float64")
    known = 0
    with enable_x64():
        for left in names:
            for right in names:
                ours = promoted((left, right))
                if ours is not None:
                    known += 1
                    assert ours == jnp.promote_types(left, right).name
    # 8 pairs of equals, 12 of different floats, 3 integers with 4 floats in either order.
    assert known == 8 + 12 + 24


def test_operands_of_two_dtypes_have_no_dtype_without_jax():
    operands = [OperandSpec("lhs", (2, 3), "float32"), OperandSpec("rhs", (3, 2), "bfloat16")]
    keywords = {"dimension_numbers": (((1,), (0,)), ((), ()))}
    assert infer("dot_general", operands, keywords).dtype is None
    keywords["preferred_element_type"] = "float16"
    assert infer("dot_general", operands, keywords).dtype == "float16"


def test_every_op_has_its_counterpart_in_the_worker():
    from importlib.util import find_spec

    assert ops() == ("conv_general_dilated", "dot_general", "einsum")
    assert all(find_spec(f"parity.program.ops.{name}") for name in ops())


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        (
            "window_strides: [1], padding: VALID",
            "10:30: attributes.window_strides has 1 entry (got [1]; allowed 2, one per "
            "spatial dimension)",
        ),
        (
            "window_strides: [1, 1], padding: SOME",
            "10:47: attributes.padding is no padding (got 'SOME'; allowed SAME, "
            "SAME_LOWER, VALID, or one [low, high] per spatial dimension)",
        ),
        (
            "window_strides: [1, 1], padding: [[0, 1], [1]]",
            "10:56: attributes.padding[1] is no pair of integers (got [1]; allowed [low, high])",
        ),
        (
            "window_strides: [1, 1], padding: [[0, 0], [-9, 0]]",
            "10:56: attributes.padding[1] cuts away more than there is (got [-9, 0]; "
            "allowed low + high of at least -8)",
        ),
        (
            "window_strides: [1, 1], padding: VALID, feature_group_count: 2",
            "10:75: attributes.feature_group_count does not divide the features of lhs "
            "(NHWC) (got 2; allowed a divisor of lhs C = 3)",
        ),
        (
            "window_strides: [1, 1], padding: VALID, feature_group_count: 3",
            "8:16: rhs I must be lhs C / feature_group_count (got I = 3 in HWIO; allowed 3 "
            "/ 3 = 1)",
        ),
        (
            "window_strides: [1, 1], padding: VALID, batch_group_count: 3",
            "10:73: attributes.batch_group_count does not divide the output features of "
            "rhs (HWIO) (got 3; allowed a divisor of rhs O = 4)",
        ),
        (
            "window_strides: [1, 1], padding: VALID, batch_group_count: 4",
            "10:73: attributes.batch_group_count does not divide the batch of lhs (NHWC) "
            "(got 4; allowed a divisor of lhs N = 2)",
        ),
        (
            "window_strides: [1, 1], padding: SAME, lhs_dilation: [2, 1]",
            "10:47: attributes.padding cannot stand beside lhs_dilation (got 'SAME'; "
            "allowed [[low, high], …])\nhint: give the padding as [[low, high], …]",
        ),
        (
            "window_strides: [1, 0], padding: SAME",
            "10:34: attributes.window_strides[1] is too small (got 0; allowed at least 1)",
        ),
        (
            "padding: SAME",
            "10:13: missing key 'window_strides' in attributes\nhint: window_strides: one "
            "per spatial dimension",
        ),
    ],
)
def test_an_impossible_convolution_is_refused_at_its_place(folder, attributes, message):
    text = f"""\
name: dot
about: >-
  A convolution.

op: conv_general_dilated
operands:
  lhs: {{shape: [2, 8, 8, 3], dtype: float32, draw: normal}}
  rhs: {{shape: [3, 3, 3, 4], dtype: float32, draw: normal}}

attributes: {{{attributes}, dimension_numbers: [NHWC, HWIO, NHWC]}}
"""
    assert folder.error(text) == message


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        (
            "[NHWC, HWIO]",
            '7:22: attributes.dimension_numbers has too few entries (got ["NHWC", '
            '"HWIO"]; allowed at least 3)',
        ),
        (
            "[NHC, HWIO, NHWC]",
            "7:23: attributes.dimension_numbers[0] does not name each dimension of lhs "
            "(got 'NHC'; allowed 4 different letters, N and C among them)",
        ),
        (
            "[NHWC, HWIN, NHWC]",
            "7:29: attributes.dimension_numbers[1] does not spell the dimensions of rhs "
            "(got 'HWIN'; allowed 4 different letters, O and I among them)",
        ),
        (
            "[NHWC, HWIO, NHHC]",
            "7:35: attributes.dimension_numbers[2] does not spell the dimensions of output "
            "(got 'NHHC'; allowed 4 different letters, N and C among them)",
        ),
        (
            "[NHWC, HDIO, NHWC]",
            "7:22: attributes.dimension_numbers name different spatial dimensions (got "
            '["NHWC", "HDIO", "NHWC"]; allowed the same ones in all three)',
        ),
    ],
)
def test_impossible_letters_are_refused_at_their_place(folder, numbers, message):
    text = f"""\
about: A convolution.
op: conv_general_dilated
operands:
  lhs: {{shape: [2, 8, 8, 3], dtype: float32, draw: normal}}
  rhs: {{shape: [3, 3, 3, 4], dtype: float32, draw: normal}}
attributes:
  dimension_numbers: {numbers}
  window_strides: [1, 1]
  padding: SAME
"""
    assert folder.error(text) == message


def test_einsum_takes_as_many_operands_as_terms(folder):
    text = """\
about: Three operands and a residual.
op: einsum
operands:
  r: {shape: [2, 5], dtype: float32, draw: normal}
  a: {shape: [2, 3], dtype: float32, draw: normal}
  b: {shape: [3, 4], dtype: float32, draw: normal}
  c: {shape: [4, 5], dtype: float32, draw: normal}
attributes: {subscripts: "ij,jk,kl->il"}
residual: r
"""
    (case,) = folder.cases(text)
    assert [spec.name for spec in case.program.operands] == ["a", "b", "c", "r"]
    assert folder.error(text.replace("ij,jk,kl->il", "ij,jk,kl,lm,mn->in")) == (
        "8:26: attributes.subscripts takes 5 operands "
        "(got 'ij,jk,kl,lm,mn->in'; allowed 4 terms: r, a, b, c)"
    )
    assert folder.error(text.replace("ij,jk,kl->il", "ij,jk,k1->il")) == (
        "8:26: attributes.subscripts has a bad term "
        "(got 'k1'; allowed letters and one '...', such as bij,bjk->bik)"
    )


def test_presets_and_precisions_are_those_of_jax():
    from parity.casefile.fields import PRECISIONS, PRESETS

    assert set(PRESETS) | {"DEFAULT"} == set(lax.DotAlgorithmPreset.__members__)
    assert {name.upper() for name in PRECISIONS} == set(lax.Precision.__members__)


def test_precision_names_take_any_case_and_pairs(folder, dot):
    for written, read in (
        ("HIGHEST", "highest"),
        ("[Default, high]", ("default", "high")),
        ("bf16_bf16_f32_x3", "BF16_BF16_F32_X3"),
    ):
        (case,) = folder.cases(dot + f"  precision: {written}\n")
        assert case.program.attributes["precision"] == read


def test_a_diagonal_needs_equal_sizes(folder):
    text = """\
about: The diagonal of a matrix that has none.
op: einsum
operands:
  a: {shape: [3, 1], dtype: float32, draw: normal}
attributes: {subscripts: ii->i}
"""
    assert folder.error(text) == (
        "5:26: label 'i' has two sizes in one operand "
        "(got 3 and 1 in a [3, 1]; allowed equal sizes)"
    )
