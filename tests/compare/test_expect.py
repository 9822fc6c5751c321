import pytest

from parity.compare.expect import holds, judge
from parity.compare.rows import Row

ENV = {"jax": "0.7.1", "tensorflow": "2.20.0", "platform": "linux", "cpu": "x86_64"}


def ok(path, grade, output="out"):
    return Row(case="cases/d.yaml::d", path=path, output=output, outcome="ok", grade=grade)


def failed(path, outcome, stage="run", message=""):
    return Row(
        case="cases/d.yaml::d", path=path, output="", outcome=outcome, stage=stage, message=message
    )


@pytest.fixture
def judged(make_case):
    """The status of each row, and the rows."""

    def judge_them(rows, *expect, **options):
        result = judge(make_case(expect=expect), rows, environment=ENV, **options)
        return [row.status for row in result], result

    return judge_them


@pytest.mark.parametrize(
    ("fail_on", "first_finding"),
    [("identical", 0), ("equivalent", 1), ("divergent", 2), ("inaccurate", 3), ("mismatched", 4)],
)
def test_any_grade_at_or_beyond_fail_on_is_a_finding(judged, fail_on, first_finding):
    grades = ("identical", "equivalent", "divergent", "inaccurate", "mismatched")
    statuses, rows = judged([ok("jit", g) for g in grades], fail_on=fail_on)
    assert statuses == ["ok"] * first_finding + ["finding"] * (5 - first_finding)
    assert [row.is_finding for row in rows] == [s == "finding" for s in statuses]


def test_outcomes_that_fail(judged):
    rows = [failed("jit", o) for o in ("error", "crashed", "timeout", "out-of-memory")]
    assert judged(rows)[0] == ["finding"] * 4
    assert judged([failed("jit", "unsupported")])[0] == ["ok"]


def test_an_expected_grade(judged, make_expectation):
    entry = make_expectation(("jit", "native"), grades=("divergent",))
    statuses, rows = judged(
        [ok("eager", "identical"), ok("jit", "divergent"), ok("native", "divergent")], entry
    )
    assert statuses == ["ok", "expected", "expected"]
    assert (rows[1].because, rows[1].link) == ("known", "https://example.org/1")
    assert rows[0].because == ""


def test_any_of_several_grades(judged, make_expectation):
    entry = make_expectation("jit", grades=("divergent", "inaccurate"))
    assert judged([ok("jit", "inaccurate")], entry)[0] == ["expected"]
    assert judged([ok("jit", "mismatched")], entry)[0] == ["finding"]


def test_an_entry_that_no_longer_comes_true_is_stale_for_its_path(judged, make_expectation):
    entry = make_expectation(("jit", "native"), grades=("divergent",))
    statuses, rows = judged([ok("jit", "identical"), ok("native", "divergent")], entry)
    assert statuses == ["stale", "expected"]
    assert rows[0].is_finding
    assert rows[0].detail == "cases/d.yaml:30 expects divergent, came identical"


def test_a_finding_stays_a_finding_and_says_what_was_expected(judged, make_expectation):
    statuses, rows = judged(
        [ok("jit", "mismatched")], make_expectation("jit", grades=("equivalent", "divergent"))
    )
    assert statuses == ["finding"]
    assert rows[0].detail == "cases/d.yaml:30 expects equivalent or divergent, came mismatched"
    _, rows = judged(
        [failed("jit", "timeout")], make_expectation("jit", outcome="error", match="boom")
    )
    assert rows[0].detail == "cases/d.yaml:30 expects error matching 'boom', came timeout at run"


def test_what_makes_no_entry_stale(judged, make_expectation):
    entry = make_expectation("native", grades=("divergent",))
    assert judged([failed("native", "unsupported")], entry)[0] == ["ok"]
    assert judged([ok("eager", "identical")], entry)[0] == ["ok"]  # native was not run
    off = make_expectation("native", grades=("divergent",), when={"jax": "<0.5"})
    assert judged([ok("native", "identical")], off)[0] == ["ok"]
    assert judged([ok("native", "divergent")], off)[0] == ["finding"]


def test_expected_outcomes(judged, make_expectation):
    row = failed("jit", "error", "convert", "NotImplementedError: RhsT of bool")
    for entry, status in [
        (make_expectation("jit", outcome="error"), "expected"),
        (make_expectation("jit", outcome="error", stage="convert", match="of (bool|int)"),
         "expected"),
        (make_expectation("jit", outcome="error", stage="run"), "finding"),
        (make_expectation("jit", outcome="error", match="of int"), "finding"),
        (make_expectation("jit", outcome="crashed"), "finding"),
    ]:  # fmt: skip
        assert judged([row], entry)[0] == [status]
    unsupported = make_expectation("jit", outcome="unsupported")
    assert judged([failed("jit", "unsupported")], unsupported)[0] == ["expected"]
    assert judged([ok("jit", "identical")], unsupported)[0] == ["stale"]


def test_without_output_any_output_makes_the_entry_true(judged, make_expectation):
    rows = [ok("jit", "divergent", "vjp.lhs"), ok("jit", "identical", "vjp.rhs")]
    assert judged(rows, make_expectation("jit", grades=("divergent",)))[0] == ["expected", "ok"]


def test_each_named_output_must_come_true(judged, make_expectation):
    rows = [ok("jit", "divergent", "vjp.lhs"), ok("jit", "identical", "vjp.rhs")]
    entry = make_expectation("jit", grades=("divergent",), outputs=("vjp.lhs", "vjp.rhs"))
    assert judged(rows, entry)[0] == ["expected", "stale"]
    one = make_expectation("jit", grades=("divergent",), outputs=("vjp.rhs",))
    assert judged(rows, one)[0] == ["finding", "stale"]
    absent = make_expectation("jit", grades=("identical",), outputs=("nothing",))
    statuses, result = judged([ok("jit", "identical")], absent)
    assert statuses == ["stale"]
    assert result[0].detail == "cases/d.yaml:30 names outputs that are not there: nothing"


def test_of_several_entries_one_suffices_and_the_other_is_stale(judged, make_expectation):
    true = make_expectation("jit", grades=("divergent",))
    false = make_expectation("jit", grades=("inaccurate",), line=40)
    statuses, rows = judged([ok("jit", "divergent")], true, false)
    assert statuses == ["stale"]
    assert rows[0].because == "known"
    assert rows[0].detail == "cases/d.yaml:40 expects inaccurate, came divergent"


def test_a_refused_tolerance_is_a_finding_whatever_is_expected(make_case, make_expectation):
    row = Row(case="c", path="jit", output="out", outcome="ok", grade="divergent",
              tolerance_refused=True)  # fmt: skip
    case = make_case(expect=(make_expectation("jit", grades=("divergent",)),))
    assert judge(case, [row], environment=ENV, fail_on="mismatched")[0].status == "finding"


@pytest.mark.parametrize(
    ("when", "expected"),
    [
        ({}, True),
        ({"jax": ">=0.7"}, True),
        ({"jax": ">=0.7,<0.7.1"}, False),
        ({"jax": ">=0.7", "tensorflow": "<2.18"}, False),
        ({"platform": "linux"}, True),
        ({"platform": "Darwin"}, False),
        ({"cpu": "X86*"}, True),
        ({"jax": ">=0.10"}, False),  # versions, not strings
    ],
)
def test_when(make_expectation, when, expected):
    assert holds(make_expectation("jit", when=when), ENV) is expected


def test_when_counts_prereleases_and_needs_what_it_names(make_expectation):
    entry = make_expectation("jit", when={"tensorflow": ">=2.18"})
    assert holds(entry, {"tensorflow": "2.21.0.dev20250101"})
    assert not holds(entry, {"jax": "0.7.1"})
