"""Outputs that lie on several devices: an error for each, and replicas against each other."""

import numpy as np
import pytest

from parity.compare.groups import groups
from parity.compare.rows import as_dict, compare_case
from parity.compare.shards import ShardError
from parity.compare.words import words
from parity.worker.protocol import PathOutcome, References, Shard

WANT = np.array([[1, 2], [3, 4], [5, 6], [7, 8]], np.float32)


def halves(array, **held):
    """Four devices: 0 and 1 hold the first two rows, 2 and 3 the others; `held` by d0 to d3."""
    return tuple(
        Shard(device, (2 * (device // 2), 0), (2, 2), device % 2, held.get(f"d{device}"))
        for device in range(4)
    )


def outcome(path, array, shards=()):
    return PathOutcome(path, outputs={"out": array}, shards={"out": shards} if shards else {})


@pytest.fixture
def references(make_references):
    """Within an eighth is accurate; declared is what is wanted, or a sixteenth more."""
    return make_references(
        f64=(WANT.astype(float), WANT - 0.125, WANT + 0.125),
        strict=(WANT, WANT, WANT + np.float32(0.0625)),
    )


def test_errors_are_told_by_device(make_case, references):
    """The rows of the second half are zero: their error is all of them, that of others nothing."""
    got = np.where(WANT > 4, 0, WANT).astype(np.float32)
    outcomes = [outcome("eager", WANT), outcome("jit", got, halves(got))]
    eager, jit = compare_case(make_case(), outcomes, references)
    assert eager.shards == ()
    assert jit.grade == "inaccurate"
    assert jit.shards[0] == ShardError(0, (0, 0), (2, 2), 0, 0, 0.0, 0.0, 0.0)
    assert [one.differing for one in jit.shards] == [0, 0, 4, 4]
    assert [one.max_abs for one in jit.shards] == [0, 0, 8, 8]
    assert [one.rms_rel for one in jit.shards] == [0, 0, 1, 1]
    assert [one.start for one in jit.shards] == [(0, 0), (0, 0), (2, 0), (2, 0)]
    assert jit.replicas == ""
    assert as_dict(jit)["shards"][3] == {
        "device": 3,
        "start": [2, 0],
        "shape": [2, 2],
        "replica": 1,
        "differing": 4,
        "max_abs": 8.0,
        "max_ulp": 7 / 2.0**-21,  # an ulp of 4 to 8 is 2**-21, of 8 2**-20
        "rms_rel": 1.0,
        "apart": 0,
        "max_apart": None,
        "sha256": "",
    }


ALLOWED = "; each is what another order of evaluation may give"


@pytest.mark.parametrize(
    ("other", "grade", "faithful", "accurate"),
    [
        ([[1, 2.0625], [3, 4]], "divergent", True, True),  # as declared: yet there are two answers
        ([[1, 2.125], [3, 4]], "divergent", False, True),
        ([[1, 2.5], [3, 4]], "inaccurate", False, False),
        ([[1, np.nan], [3, 4]], "mismatched", False, False),
    ],
)
def test_replicas_that_differ_are_a_finding_whatever_the_first_device_has(
    make_case, references, other, grade, faithful, accurate
):
    shards = halves(WANT, d1=np.float32(other))
    outcomes = [outcome("eager", WANT), outcome("jit", WANT, shards)]
    eager, jit = compare_case(make_case(), outcomes, references)
    assert (eager.grade, jit.grade) == ("identical", grade)
    assert (jit.faithful, jit.accurate) == (faithful, accurate)
    assert jit.differing == jit.baseline.differing == jit.f64.differing == 1
    assert jit.detail.startswith("replicas differ: 1 of 4 elements, by at most ")
    assert jit.replicas.endswith(", on device 1" + (ALLOWED if faithful else ""))
    assert [one.apart for one in jit.shards] == [0, 1, 0, 0]
    lines = words(make_case(), (eager, jit), outcomes, references)
    assert lines[0] == f"jit: {jit.replicas}"
    assert not any("is what the program declares" in line for line in lines)


@pytest.mark.parametrize("wrong", ["d0", "d1"])
def test_the_row_says_the_errors_of_the_worst_device(make_case, references, wrong):
    """100 more on one of the devices, be it the first, whose elements are the output's own."""
    off = WANT[:2] + np.float32(100)
    got = np.concatenate([off, WANT[2:]]) if wrong == "d0" else WANT
    held = {"d1": WANT[:2] if wrong == "d0" else off}
    outcomes = [outcome("eager", WANT), outcome("jit", got, halves(got, **held))]
    jit = compare_case(make_case(), outcomes, references)[1]
    assert (jit.grade, jit.faithful, jit.accurate) == ("inaccurate", False, False)
    assert jit.f64.max_abs == jit.strict.max_abs == jit.baseline.max_abs == 100
    assert jit.bound_share == 800  # 100 of an eighth


def test_devices_are_compared_with_the_same_ones_of_the_baseline(make_case, references):
    """Both are wrong on device 1, with the same bits there: nothing differs from the baseline."""
    shards = halves(WANT, d1=WANT[:2] + np.float32(100))
    outcomes = [outcome(path, WANT, shards) for path in ("eager", "jit")]
    eager, jit = compare_case(make_case(), outcomes, references)
    assert (eager.grade, eager.faithful, eager.accurate) == ("inaccurate", False, False)
    assert (jit.grade, jit.faithful, jit.accurate) == ("divergent", False, False)
    assert (jit.differing, jit.detail) == (0, jit.replicas)
    assert [one.differing for one in jit.shards] == [0, 0, 0, 0]
    assert groups(outcomes, "out") == (("eager", "jit"),)
    lines = words(make_case(), (eager, jit), outcomes, references)
    assert lines[0] == f"eager: {eager.replicas}"
    assert lines[1].startswith(
        "eager: inaccurate: not faithful: outside the order interval in 4 of"
    )
    assert lines[2:] == (f"jit: {jit.replicas}",)


def test_a_path_on_one_device_differs_from_a_baseline_whose_replicas_do(make_case, references):
    """And one whose replicas agree differs on the device where the baseline's do not."""
    wrong = halves(WANT, d1=WANT[:2] + np.float32(100))
    outcomes = [
        outcome("eager", WANT, wrong),
        outcome("jit", WANT),
        outcome("other", WANT, halves(WANT)),
    ]
    eager, jit, other = compare_case(make_case(), outcomes, references)
    assert (jit.grade, jit.differing) == ("identical", 0)  # as the first device of the baseline
    assert (other.grade, other.differing, other.accurate) == ("divergent", 4, True)
    assert [one.differing for one in other.shards] == [0, 4, 0, 0]
    assert groups(outcomes, "out") == (("eager",), ("jit", "other"))
    assert eager.bits != jit.bits == other.bits == (jit.sha256,)


def test_so_are_those_of_the_baseline(make_case, references):
    shards = halves(WANT, d3=WANT[2:] + np.float32(0.0625))
    (eager,) = compare_case(make_case(), [outcome("eager", WANT, shards)], references)
    assert eager.grade == "divergent"
    said = "replicas differ: 4 of 4 elements, by at most 0.0625, on device 3"
    assert eager.replicas == said + ALLOWED


def test_a_tolerance_does_not_make_one_answer_of_two(make_case, references):
    from parity.casefile.case import Tolerance

    shards = halves(WANT, d1=WANT[:2] + np.float32(0.0625))
    case = make_case(tolerance=Tolerance(atol=1))
    _, jit = compare_case(case, [outcome("eager", WANT), outcome("jit", WANT, shards)], references)
    assert jit.grade == "divergent"


def test_all_nans_are_one_answer(make_case):
    """The bits of a NaN are nobody's answer."""
    nan = np.array([np.nan, 1], np.float32)
    other = np.array([0x7FC00001, 0x3F800000], np.uint32).view(np.float32)
    shards = (Shard(0, (0,), (2,)), Shard(1, (0,), (2,), 1, other))
    (row,) = compare_case(make_case(), [outcome("eager", nan, shards)], References())
    assert (row.grade, row.replicas) == ("identical", "")


def test_a_scalar_lies_on_devices_too(make_case):
    one, two = np.float32(1), np.float32(2)
    shards = (Shard(0, (), ()), Shard(1, (), (), 1, np.asarray(two)))
    (row,) = compare_case(make_case(), [outcome("eager", np.asarray(one), shards)], References())
    assert row.replicas == "replicas differ: 1 of 1 elements, by at most 1, on device 1"
