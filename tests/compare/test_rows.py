import dataclasses
import itertools
import math

import numpy as np
import pytest

from parity.compare.groups import groups
from parity.compare.metrics import Metrics
from parity.compare.reference_rows import reference_rows
from parity.compare.rows import as_dict, compare_case
from parity.worker.protocol import Enclosure, Failure, References, digest

STRICT = np.array([1.0, 2.0], np.float32)
KEPT = np.array([1.0, 2.5], np.float32)
IDEAL = Enclosure(np.array([1.0, 2.75]), np.array([0.75, 1.75]), np.array([1.25, 3.75]))
REFERENCES = References(f64={"out": IDEAL}, strict={"out": Enclosure(STRICT, STRICT, STRICT)})


def test_one_row_per_path_and_output(make_case, make_outcome):
    outcomes = [make_outcome(p, x) for p, x in (("eager", STRICT), ("jit", KEPT), ("native", KEPT))]
    eager, jit, native = compare_case(make_case(), outcomes, REFERENCES)
    assert [r.path for r in (eager, jit, native)] == ["eager", "jit", "native"]
    assert [r.grade for r in (eager, jit, native)] == ["identical", "divergent", "divergent"]
    assert [r.group for r in (eager, jit, native)] == [0, 1, 1]
    assert (jit.dtype, jit.shape, jit.count, jit.differing) == ("float32", (2,), 2, 1)
    assert jit.values == (1.0, 2.5)
    assert (jit.f64.max_abs, jit.strict.max_abs, jit.baseline.max_abs) == (0.25, 0.5, 0.5)
    assert (eager.f64.max_abs, eager.strict.max_abs, eager.baseline.max_abs) == (0.75, 0, 0)
    assert jit.sha256 == digest(KEPT) == native.sha256
    assert (eager.faithful, eager.accurate, eager.bound_share) == (True, True, 0.75)
    assert (jit.faithful, jit.accurate, jit.bound_share) == (False, True, 0.25)
    assert (jit.model, jit.licences, jit.vacuous, jit.undecided) == ("", "", 0.0, 0)


def test_what_the_references_say_stands_in_the_row(make_case, make_outcome, make_references):
    """Vacuous: a bound of 3 beyond the rms of (1, 2.75), 2.07."""
    references = make_references(
        strict=STRICT,
        f64=(IDEAL.point, np.array([-2.0, 1.75]), IDEAL.hi),
        licensed={"fma": (STRICT, STRICT, KEPT)},
        models={"wide": np.array([1.25, 2.75], np.float32)},
        undecided=np.array([True, False]),
    )
    other = np.array([1.25, 2.75], np.float32)
    outcomes = [
        make_outcome(p, x) for p, x in (("eager", STRICT), ("jit", KEPT), ("native", other))
    ]
    eager, jit, native = compare_case(make_case(), outcomes, references)
    assert [r.licences for r in (eager, jit, native)] == ["", "fma", ""]
    assert [r.model for r in (eager, jit, native)] == ["", "", "wide"]
    assert [r.faithful for r in (eager, jit, native)] == [True, True, False]
    assert [(r.undecided, r.vacuous) for r in (eager, jit, native)] == [(1, 0.5)] * 3
    flat = as_dict(jit)
    assert (flat["licences"], flat["bound_share"], flat["accurate"]) == ("fma", 0.25, True)


def test_without_references_a_row_says_nothing_of_them(make_case, make_outcome):
    row = compare_case(make_case(), [make_outcome("eager", STRICT)], References())[0]
    assert (row.faithful, row.accurate, row.bound_share, row.undecided) == (None,) * 4


def test_every_path_is_compared_with_the_baseline_wherever_it_stands(make_case, make_outcome):
    outcomes = [make_outcome(p, x) for p, x in (("jit", KEPT), ("native", KEPT), ("eager", STRICT))]
    rows = compare_case(make_case(baseline="eager"), outcomes, REFERENCES)
    assert {r.path: r.grade for r in rows} == {
        "jit": "divergent", "native": "divergent", "eager": "identical",
    }  # fmt: skip


def test_a_failure_is_one_row(make_case, make_outcome):
    failure = Failure("error", "convert", "NotImplementedError", "no such op\nmore", "tail")
    row = compare_case(make_case(), [make_outcome("jit", failure)], REFERENCES)[0]
    assert (row.outcome, row.stage, row.error_type) == ("error", "convert", "NotImplementedError")
    assert (row.output, row.grade, row.shape) == ("", None, None)
    assert row.detail == "no such op"
    assert row.message == "no such op\nmore"
    assert row.stderr == "tail"


def test_without_the_baseline_the_others_are_graded_against_strict(make_case, make_outcome):
    outcomes = [
        make_outcome("eager", Failure("crashed", "run", "SIGSEGV")),
        make_outcome("jit", STRICT.copy()),
        make_outcome("native", KEPT),
    ]
    eager, jit, native = compare_case(make_case(), outcomes, REFERENCES)
    assert (eager.outcome, eager.detail) == ("crashed", "SIGSEGV")
    assert (jit.grade, jit.detail, jit.baseline) == ("equivalent", "no baseline", None)
    assert native.grade == "divergent"
    assert native.differing is None


def test_outputs_that_one_side_lacks_are_mismatched(make_case, make_outcome):
    outcomes = [
        make_outcome("eager", {"out": STRICT, "vjp.lhs": STRICT}),
        make_outcome("jit", {"out": STRICT, "vjp.rhs": STRICT}),
    ]
    rows = {(r.path, r.output): r for r in compare_case(make_case(), outcomes, REFERENCES)}
    assert rows["jit", "vjp.lhs"].grade == "mismatched"
    assert rows["jit", "vjp.lhs"].detail == "no such output; the baseline has it"
    assert rows["jit", "vjp.rhs"].grade == "mismatched"
    assert rows["jit", "vjp.rhs"].detail == "the baseline has no such output"
    assert rows["jit", "out"].grade == "identical"


def test_a_path_without_any_output_has_a_row(make_case, make_outcome):
    outcomes = [make_outcome(p, {}) for p in ("eager", "jit")]
    rows = compare_case(make_case(), outcomes, References())
    assert [(r.path, r.outcome, r.grade, r.detail) for r in rows] == [
        ("eager", "ok", None, "no output"),
        ("jit", "ok", None, "no output"),
    ]


def test_another_shape_than_the_references_has_no_metrics(make_case, make_outcome):
    outcomes = [make_outcome("eager", STRICT), make_outcome("jit", np.ones(3, np.float32))]
    jit = compare_case(make_case(), outcomes, REFERENCES)[1]
    assert (jit.grade, jit.f64, jit.strict, jit.baseline) == ("mismatched", None, None, None)
    assert jit.detail == "shape (3), baseline (2)"


def test_groups_do_not_depend_on_the_order_of_paths(make_outcome):
    nan = np.array([0x7FC00000, 0x3F800000], np.uint32).view(np.float32)
    other_nan = np.array([0xFFC00001, 0x3F800000], np.uint32).view(np.float32)
    outcomes = [
        make_outcome("eager", nan),
        make_outcome("jit", STRICT),
        make_outcome("native", STRICT.copy()),
        make_outcome("nonnative", other_nan),
        make_outcome("wide", STRICT.astype(float)),
        make_outcome("dead", Failure("timeout", "run")),
    ]
    expected = {frozenset({"eager", "nonnative"}), frozenset({"jit", "native"}),
                frozenset({"wide"})}  # fmt: skip
    for order in itertools.permutations(outcomes):
        assert {frozenset(g) for g in groups(order, "out")} == expected
    assert groups(outcomes, "out")[:2] == (("eager", "nonnative"), ("jit", "native"))


def test_groups_tell_signed_zeros_apart_and_leave_out_what_is_unspecified(make_outcome):
    outcomes = [make_outcome("a", np.array([0.0, 7.0])), make_outcome("b", np.array([-0.0, 8.0]))]
    assert groups(outcomes, "out") == (("a",), ("b",))
    assert groups(outcomes, "out", exclude=np.array([True, True])) == (("a", "b"),)


def test_reference_rows(make_case):
    f64, strict = reference_rows(make_case(), REFERENCES)
    assert (f64.path, f64.values, f64.dtype, f64.grade) == ("f64", (1.0, 2.75), "float64", None)
    assert (strict.path, strict.values, strict.dtype) == ("strict", (1.0, 2.0), "float32")
    assert strict.f64.max_abs == 0.75
    failed = References(failure=Failure("error", "trace", "TypeError", "no rule"))
    rows = reference_rows(make_case(), failed)
    assert [(r.path, r.outcome, r.detail) for r in rows] == [
        ("f64", "error", "no rule"), ("strict", "error", "no rule"),
    ]  # fmt: skip


def test_the_ideals_own_error_is_the_part_of_its_bound_that_float64_makes(make_case):
    f64, _ = reference_rows(make_case(), REFERENCES)
    # The widest half of the bound is 3.75 - 2.75 = 1.
    assert f64.own_error == 2.0**-53 / (2.0**-24 + 2.0**-53)
    point = np.array([1.0, 2.0])
    exact = dataclasses.replace(REFERENCES, f64={"out": Enclosure(point, point, point)})
    assert reference_rows(make_case(), exact)[0].own_error == 0.0


def _builtins_only(value):
    if isinstance(value, dict):
        return all(isinstance(k, str) and _builtins_only(v) for k, v in value.items())
    if isinstance(value, list):
        return all(_builtins_only(v) for v in value)
    return value is None or type(value) in (bool, int, float, str)


@pytest.mark.parametrize(
    "array",
    [
        np.array([1.5, np.nan, np.inf], np.float16),
        np.array([1 + 2j], np.complex64),
        np.array([2**63], np.uint64),
        np.array([True]),
        np.zeros((0, 2), np.float32),
    ],
    ids=lambda a: a.dtype.name,
)
def test_as_dict_is_flat_and_of_builtins(make_case, make_outcome, array):
    outcomes = [make_outcome("eager", array), make_outcome("jit", np.flip(array))]
    strict = {"out": Enclosure(array, array, array)}
    for row in compare_case(make_case(), outcomes, References(strict=strict)):
        flat = as_dict(row)
        assert _builtins_only(flat)
        assert {f"{f.name}_{t}" for f in dataclasses.fields(Metrics)
                for t in ("f64", "strict", "baseline")} < set(flat)  # fmt: skip
        assert flat["max_abs_f64"] is None


def test_as_dict_values(make_case, make_outcome):
    z = np.array([1 + 2j, complex(3, np.nan)], np.complex64)
    flat = as_dict(compare_case(make_case(), [make_outcome("eager", z)], References())[0])
    assert flat["values"][0] == [1.0, 2.0]
    assert math.isnan(flat["values"][1][1])
    many = make_outcome("eager", np.zeros(17, np.float32))
    assert as_dict(compare_case(make_case(), [many], References())[0])["values"] is None
