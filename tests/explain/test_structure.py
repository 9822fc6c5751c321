"""Outputs that are right but for their structure, each planted in plain NumPy."""

import itertools

import numpy as np
import pytest

from parity.explain.attribution import ASKED, attribute
from parity.explain.laboratory import Laboratory
from parity.explain.structure import hypotheses, residual
from parity.program.build import build
from parity.program.spec import OperandSpec, ProgramSpec
from parity.reference.evaluate import evaluate
from parity.worker.protocol import Enclosure, PathOutcome, References

from .campaign import case_of, interpreted

NUMBERS = ("NHWC", "HWIO", "NHWC")


def correlation(x, w, padding, stride=1):
    """A convolution as XLA means it, by loops: NHWC, HWIO; padding as XLA takes it."""
    x = np.pad(x.astype(np.float64), ((0, 0), *padding, (0, 0)))
    rows = (x.shape[1] - w.shape[0]) // stride + 1
    columns = (x.shape[2] - w.shape[1]) // stride + 1
    out = np.zeros((x.shape[0], rows, columns, w.shape[3]))
    for i, j in itertools.product(range(rows), range(columns)):
        patch = x[:, i * stride : i * stride + w.shape[0], j * stride : j * stride + w.shape[1]]
        out[:, i, j] = np.tensordot(patch, w.astype(np.float64), axes=3)
    return out.astype(np.float32)


def draw(seed, *shapes):
    rng = np.random.default_rng(seed)
    return tuple(rng.standard_normal(shape).astype(np.float32) for shape in shapes)


def explained(spec, arrays, got):
    """The attribution of an output of a program of one op."""

    def references(program, inputs, models):
        return evaluate(build(program), inputs, models=models)

    laboratory = Laboratory(lambda inputs: pytest.fail("no path"), references)
    names = build(spec).outputs
    case = case_of(arrays)
    object.__setattr__(case, "program", spec)
    outcome = PathOutcome("planted", {names[0]: got})
    found = references(spec, arrays, ASKED)
    (attribution,) = attribute(case, outcome, found, laboratory=laboratory, inputs=arrays)
    return attribution


def convolution(x, w, padding="VALID", **attributes):
    operands = (
        OperandSpec("lhs", x.shape, x.dtype.name),
        OperandSpec("rhs", w.shape, w.dtype.name),
    )
    given = {"window_strides": (1, 1), "padding": padding, "dimension_numbers": NUMBERS}
    return ProgramSpec("conv_general_dilated", operands, given | attributes)


NONE = ((0, 0), (0, 0))


@pytest.mark.parametrize("axes", [(0,), (1,), (0, 1)])
def test_a_kernel_flipped_in_space(axes):
    x, w = draw(1, (1, 6, 7, 2), (3, 3, 2, 4))
    got = correlation(x, np.flip(w, axes), NONE)
    found = explained(convolution(x, w), (x, w), got)
    assert found.model == ""
    assert found.rms_rel > 0.5
    best = found.structure[0]
    along = "axis" if len(axes) == 1 else "axes"
    assert best.name == f"rhs flipped along {along} {', '.join(map(str, axes))}"
    assert best.residual < 1e-6
    assert found.name == best.name


def test_a_transposed_convolution_is_another_librarys_with_its_kernel_flipped():
    """jax-ml/jax#17618: by its definition the gradient of a convolution, as TensorFlow means it."""
    x, w = draw(2, (1, 4, 4, 2), (3, 3, 2, 3))
    got = np.zeros((1, 9, 9, 3))
    for i, j in itertools.product(range(4), range(4)):
        got[0, 2 * i : 2 * i + 3, 2 * j : 2 * j + 3] += np.einsum("c,hwco->hwo", x[0, i, j], w)
    spec = convolution(x, w, ((2, 2), (2, 2)), lhs_dilation=(2, 2))
    found = explained(spec, (x, w), got.astype(np.float32))
    assert found.structure[0].name == "rhs flipped along axes 0, 1"
    assert found.structure[0].residual < 1e-6


def test_a_kernel_with_its_axes_exchanged():
    x, w = draw(3, (1, 6, 6, 3), (3, 3, 3, 3))
    got = correlation(x, np.swapaxes(w, 2, 3), NONE)
    found = explained(convolution(x, w), (x, w), got)
    assert found.structure[0].name == "rhs axes 2 and 3 exchanged"


def test_operands_exchanged():
    a, b = draw(4, (5, 5), (5, 5))
    operands = OperandSpec("lhs", (5, 5), "float32"), OperandSpec("rhs", (5, 5), "float32")
    spec = ProgramSpec("dot_general", operands, {"dimension_numbers": (((1,), (0,)), ((), ()))})
    assert explained(spec, (a, b), b @ a).structure[0].name == "lhs and rhs exchanged"
    found = explained(spec, (a, b), a @ b.T).structure[0]
    assert found.name == "rhs axes 0 and 1 exchanged"


@pytest.mark.parametrize(
    ("declared", "computed", "name"),
    [
        ("SAME", ((1, 0), (1, 0)), "padding SAME_LOWER"),
        ("SAME_LOWER", ((0, 1), (0, 1)), "padding SAME"),
        (((1, 2), (0, 1)), ((2, 1), (1, 0)), "padding [[2, 1], [1, 0]]"),
        (((1, 2), (1, 2)), ((2, 1), (1, 2)), "padding [[2, 1], [1, 2]]"),
    ],
)
def test_another_padding(declared, computed, name):
    x, w = draw(5, (1, 6, 6, 2), (2, 2, 2, 3))
    found = explained(convolution(x, w, declared), (x, w), correlation(x, w, computed))
    assert {one.name: one.residual for one in found.structure}[name] < 1e-6
    assert any(one.name.startswith("output shifted") for one in found.structure)


def test_a_padding_that_changes_the_shape():
    x, w = draw(6, (1, 6, 6, 2), (3, 3, 2, 3))
    found = explained(convolution(x, w, "SAME"), (x, w), correlation(x, w, NONE))
    assert found.structure[0].name == "padding VALID"
    assert found.model == ""


def of(want):
    """References that say an output is exact."""
    point = np.asarray(want, np.float64)
    return References(f64={"out": Enclosure(point, point, point)})


def found_in(got, want, *, devices=1, batch=0, operands=()):
    specs = tuple(OperandSpec(f"x{i}", x.shape, x.dtype.name) for i, x in enumerate(operands))
    spec = ProgramSpec("none", specs, devices=devices, batch=batch)
    return hypotheses(np.asarray(got), "out", spec, operands, of(want), None)


@pytest.mark.parametrize(("factor", "name"), [(4, "4"), (0.25, "1/4"), (-1, "-1"), (1.5, "3/2")])
def test_a_factor(factor, name):
    want = np.random.default_rng(0).standard_normal((6, 5))
    (best, *_) = found_in((factor * want).astype(np.float32), want, devices=4)
    assert best.name == f"factor {name}"
    assert best.residual < 1e-6
    assert ("the number of devices" in best.meaning) == (abs(factor) in (4, 0.25))


def test_a_factor_names_the_axis_of_its_size():
    want = np.random.default_rng(0).standard_normal(6)
    x = np.zeros((3, 10), np.float32)
    (best, *_) = found_in(want / 10, want, operands=(x,))
    assert best.meaning == "It is the right result times 1/10: the size of axis 1 of x0."


@pytest.mark.parametrize(
    ("lost", "name"),
    [
        ([1, 2, 3], "blocks 1-3 of 4 along axis 0 zero"),
        ([0], "blocks 0 of 4 along axis 0 zero"),
        ([0, 2], "blocks 0, 2 of 4 along axis 0 zero"),
    ],
)
def test_shards_that_are_zero(lost, name):
    """jax-ml/jax#32157's sibling: every shard but the first."""
    want = np.random.default_rng(0).integers(1, 9, (8, 3, 2)).astype(float)
    got = want.copy()
    for block in lost:
        got[2 * block : 2 * block + 2] = 0
    (best, *_) = found_in(got, want, devices=4)
    assert (best.name, best.residual, best.covers) == (name, 0.0, 1.0)


def test_a_sum_over_devices_too_many_and_one_too_few():
    """jax-ml/jax#36886: every device has the sum of what each should have."""
    want = np.random.default_rng(0).standard_normal((8, 6))
    total = want.reshape(4, 2, 6).sum(axis=0)
    (best, *_) = found_in(np.tile(total, (4, 1)), want, devices=4)
    assert best.name == "each of 4 blocks along axis 0 is the sum of all"
    (best, *_) = found_in(want, np.tile(total, (4, 1)), devices=4)
    assert best.name == "4 blocks along axis 0 still to be summed"


@pytest.mark.parametrize(("value", "word"), [(np.nan, "NaN"), (0.0, "zero"), (0.2, "uniform")])
def test_rows_that_a_mask_leaves_nothing_of(value, word):
    rng = np.random.default_rng(0)
    want = rng.standard_normal((4, 5))
    mask = rng.random((4, 5)) < 0.9
    mask[2] = False
    got = want.copy()
    got[2] = value
    found = found_in(got, want, operands=(mask,))
    assert found[0].name == f"1 of 4 rows {word}, all masked by x0"
    assert found[0].residual == 0


def test_a_softmax_of_a_row_that_is_masked_altogether():
    """The right result is NaN or uniform there; the path gives zeros: jax-ml/jax#34114."""
    import jax.numpy as jnp

    scores, mask = draw(7, (4, 6))[0], np.ones((4, 6), bool)
    mask[1] = False

    def softmax(x, m):
        e = jnp.where(m, jnp.exp(x), 0)
        return e / e.sum(axis=1, keepdims=True)

    e = np.where(mask, np.exp(scores.astype(np.float64)), 0)
    sums = e.sum(axis=1, keepdims=True)
    got = np.where(sums > 0, e / np.where(sums > 0, sums, 1), 0).astype(np.float32)
    references = interpreted(softmax, (scores, mask))
    case = case_of((scores, mask))
    outcome = PathOutcome("planted", {"out": got})
    (found,) = attribute(case, outcome, references, inputs=(scores, mask))
    assert found.structure[0].name == "1 of 4 rows zero, all masked by x1"


def test_an_output_in_another_order():
    want = np.random.default_rng(0).standard_normal((4, 3, 4))
    names = {h.name for h in found_in(want.transpose(2, 1, 0), want)}
    assert "output axes in the order [2, 1, 0]" in names
    assert found_in(want[::-1], want)[0].name in (
        "output flipped along 0",
        "slices along axis 0 in another order: [3, 2, 1, 0]",
    )
    order = [2, 0, 3, 1]
    (best, *_) = found_in(want[order], want)
    assert best.name == "slices along axis 0 in another order: [2, 0, 3, 1]"
    (best, *_) = found_in(want[[0, 0, 0, 0]], want)
    assert best.name == "slices along axis 0 repeated: [0, 0, 0, 0]"
    shuffled = np.random.default_rng(1).permutation(want.ravel()).reshape(want.shape)
    assert found_in(shuffled, want)[0].name == "elements in another order"
    assert found_in(want.reshape(12, 4), want)[0].name == "shape [12, 4] instead of [4, 3, 4]"


def test_an_output_that_is_shifted_or_all_the_same():
    want = np.random.default_rng(0).standard_normal((7, 6))
    got = np.zeros_like(want)
    got[1:] = want[:-1]
    (best, *_) = found_in(got, want)
    assert best.name == "output shifted +1 along axis 0"
    assert best.covers == pytest.approx(6 / 7)
    assert found_in(np.zeros_like(want), want)[0].name == "all zero"
    assert found_in(np.full_like(want, 3.0), want)[0].name == "constant 3"


def test_bits_that_are_read_as_another_dtype():
    """An integer convolution on jax2tf's non-native path, where a float is preferred."""
    want = np.array([49, -18, -4, 12, 0])
    (best, *_) = found_in(want.astype(np.int32).view(np.float32), want)
    assert (best.name, best.residual) == ("bits of an int32 read as float32", 0.0)
    beyond = np.array([3.0 * 2**31 + 5, -(2.0**40) - 7])  # sums that wrap in an int32
    wrapped = np.array([-(2**31) + 5, -7], np.int32)
    (best, *_) = found_in(wrapped.view(np.float32), beyond)
    assert best.name == "bits of an int32 read as float32"
    assert not any("bits" in one.name for one in found_in(wrapped.view(np.float32), beyond + 1))
    exact = [792523886 * 230757587, -1252269082 * 284457368 * 7]  # more than float64 holds
    held = np.array(exact, np.float64)
    wrapped = np.array([one % 2**32 for one in exact], np.uint32).view(np.float32)
    assert found_in(wrapped, held)[0].name == "bits of an int32 read as float32"
    other = np.array([(one + 2**20) % 2**32 for one in exact], np.uint32).view(np.float32)
    assert not any("bits" in one.name for one in found_in(other, held))
    halves = np.array([0.5, 1.5, -2.0])
    (best, *_) = found_in(halves.astype(np.float32).view(np.int32), halves)
    assert best.name == "bits of a float32 read as int32"


def test_single_elements_that_are_not_a_number():
    want = np.random.default_rng(0).standard_normal(8)
    got = np.where(np.arange(8) == 3, np.nan, want)
    assert found_in(got, want)[0].name == "1 of 8 elements NaN"


def test_complex_parts():
    rng = np.random.default_rng(0)
    want = rng.standard_normal(20) + 1j * rng.standard_normal(20)
    references = References(f64={"out": Enclosure(want, want, want)})
    spec = ProgramSpec("none", ())
    for got, name in ((want.conj(), "complex conjugate"), (1j * want.conj(), "parts exchanged")):
        found = hypotheses(got.astype(np.complex64), "out", spec, (), references, None)
        assert found[0].name == name


def test_what_is_nothing_of_all_that():
    """A hundred random outputs have no relation to the right one, and none is made up."""
    for seed in range(100):
        rng = np.random.default_rng(seed)
        shape = tuple(rng.integers(2, 6, rng.integers(1, 4)))
        if np.prod(shape) < 8:
            continue
        x = rng.standard_normal(shape).astype(np.float32)
        found = found_in(rng.standard_normal(shape), rng.standard_normal(shape), operands=(x,))
        assert found == (), (seed, shape)


def test_many_axes():
    want = np.random.default_rng(0).standard_normal((3, 2, 2, 3, 2, 3))
    assert found_in(np.full_like(want, 7.0), want)[0].name == "constant 7"


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_nothing_is_made_up_of_what_is_not_finite(value):
    """No element of the right result is left that could speak for a hypothesis."""
    want = np.full((4, 3), value)
    assert found_in(np.zeros_like(want), want) == ()
    huge = np.arange(12.0).reshape(4, 3) * 1e300
    found_in(huge[::-1], huge)
    half = np.where(np.arange(12).reshape(4, 3) % 2 == 0, value, 1.0)
    found_in(np.zeros_like(want), half)  # warns of nothing


def test_the_residual_leaves_out_what_is_not_finite_in_the_right_result():
    assert residual(np.array([1.0, 5.0]), np.array([1.0, np.inf])) == 0
    assert residual(np.array([np.nan, 5.0]), np.array([1.0, 5.0])) == np.inf
    assert residual(np.array([3.0, 4.4]), np.array([3.0, 4.0])) == pytest.approx(0.08)
    assert residual(np.zeros(2), np.zeros(2)) == 0
    assert residual(np.zeros(2), np.array([np.nan, np.inf])) == np.inf
