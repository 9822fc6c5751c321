"""Fuzzing finds what is known to be wrong, says it once, and leaves a small case that runs."""

import json
from dataclasses import replace

import pytest

import parity
from parity.casefile.load import load
from parity.cli import invoke
from parity.engine.workers import Workers
from parity.fuzzing import campaign, ops
from parity.fuzzing.campaign import UNSTEADY, Fuzzing, _generate, fuzz
from parity.fuzzing.groups import Campaign
from parity.report.html.resolved import text

PATHS = ("eager", "jit", "jax2tf-native", "jax2tf-nonnative")


@pytest.fixture(scope="module")
def workers():
    with Workers() as running:
        yield running


@pytest.fixture(params=ops.names())
def op_cases(request):
    """A function that gives some random cases of an op for a seed."""

    def made(number):
        found = []
        _generate(found.append, ops.cases(request.param), 20, number)
        return found

    return made


def rerun(group):
    """The row of a group's path when its case file is run."""
    result = parity.run(group.file)
    assert result.verdict == "ok"
    return next(row for row in result.rows if row.path == group.path)


def groups_of(workers, folder, op, *cases):
    """The groups that some cases of an op end up in."""
    found = Campaign(op, PATHS, 0)
    it = Fuzzing(workers, folder, None, 300.0, found, lambda campaign: None)
    for fields in cases:
        it.one({"op": op, **fields})
    assert found.cases == len(cases)
    return found.groups


def test_dots_of_bool_are_one_group(workers, tmp_path):
    """TensorFlow's XlaDotV2 has no kernel for bool: jax2tf says so only when it runs."""
    draw = {"dtype": "bool", "draw": "integers", "low": 0, "high": 1}
    cases = [
        {
            "operands": {
                "lhs": {"shape": [*batch, 2, 3], **draw},
                "rhs": {"shape": [*batch, 3], **draw},
            },
            "attributes": {"dimension_numbers": [[[n + 1], [n]], [[*range(n)], [*range(n)]]]},
        }
        for n, batch in enumerate(([], [4]))
    ]
    (group,) = groups_of(workers, tmp_path, "dot_general", *cases)
    assert (group.path, group.count) == ("jax2tf-nonnative", 2)
    assert group.signature.outcome == "error"
    assert "bool" in group.signature.why
    assert (group.elements, group.finished) == (2, True)
    assert rerun(group).outcome == "error"


def test_integer_convolutions_with_a_floating_result_are_one_group(workers, tmp_path):
    """The non-native path reads the sums as the bits of floats: small negative ones are NaN."""
    draw = {"dtype": "int32", "draw": "integers", "low": -4, "high": 4}
    attributes = {"window_strides": [1], "padding": "SAME", "preferred_element_type": "float32"}
    cases = [
        {
            "operands": {"lhs": {"shape": [n, 2, 7], **draw}, "rhs": {"shape": [3, 2, 3], **draw}},
            "attributes": attributes,
        }
        for n in (1, 2)
    ]
    (group,) = groups_of(workers, tmp_path, "conv_general_dilated", *cases)
    assert (group.path, group.count) == ("jax2tf-nonnative", 2)
    assert group.signature.what == "mismatched"
    assert "bits of an int" in group.signature.why
    assert group.elements <= 4
    row = rerun(group)
    assert row.grade == "mismatched"
    assert "NaN" in row.detail


def _is_steady(group):
    """Whether the next process gives the same: on jax2tf-native bits of int4 results may change."""
    may_change = group.path == "jax2tf-native" and "int4" in group.file.read_text()
    return group.signature.why != UNSTEADY and not may_change


@pytest.mark.parametrize("op", ops.names())
def test_half_a_minute(workers, tmp_path, op):
    """What is found in so short a time depends on the machine; that each of it is true does not."""
    found = fuzz(workers, op, PATHS, tmp_path, seconds=15, seed=1)
    assert found.cases > 0
    assert found.refused <= found.cases
    steady = {one.file.stem: one for one in found.groups if _is_steady(one)}
    seen = {of.case.name: of.rows for of in parity.run(tmp_path).cases} if steady else {}
    for name, group in steady.items():
        row = next(row for row in seen[name] if row.path == group.path)
        assert row.outcome == group.signature.outcome
        assert row.outcome != "ok" or row.grade == group.signature.what


@pytest.mark.full
@pytest.mark.parametrize(
    ("op", "why"),
    [("conv_general_dilated", "bits of an int"), ("dot_general", "bool")],
)
def test_ten_minutes(workers, tmp_path, op, why):
    found = fuzz(workers, op, PATHS, tmp_path, seconds=600)
    for group in found.groups:
        print(group.path, group.signature, group.count, group.elements, group.finished)
    print(found.cases, "cases", found.refused, "refused", found.invalid, "invalid")
    known = [g for g in found.groups if g.path == "jax2tf-nonnative" and why in g.signature.why]
    assert known
    assert min(g.elements for g in known) <= 4


@pytest.mark.parametrize("op", ops.names())
def test_most_of_what_is_made_is_a_valid_case(op, tmp_path):
    outcome = []

    def made(fields):
        whole = {"name": "case", "about": "random", **fields}
        try:
            load(tmp_path / "case.yaml", text=text(whole))
        except parity.errors.CaseFileError as error:
            outcome.append(str(error))
        else:
            outcome.append("")

    _generate(made, ops.cases(op), 200, 0)
    assert outcome.count("") > 0.9 * len(outcome), [one for one in outcome if one][:5]


def test_a_seed_gives_the_same_cases(op_cases):
    first, again, other = op_cases(3), op_cases(3), op_cases(4)
    assert first == again
    assert first != other


def test_ctrl_c_leaves_what_was_found(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    execute = Workers.execute

    def interrupted(self, *arguments, **options):
        if (tmp_path / "found").is_dir() and any((tmp_path / "found").iterdir()):
            raise KeyboardInterrupt
        return execute(self, *arguments, **options)

    with monkeypatch.context() as patched:
        patched.setattr(Workers, "execute", interrupted)
        assert invoke(["fuzz", "--op", "dot_general", "--budget", "1m", "--out", "found"]) == 130
    out, err = capsys.readouterr()
    assert out.splitlines()[-1].startswith("interrupted: 1 group")
    (file,) = (tmp_path / "found").iterdir()
    assert f"found/{file.name}" in err
    assert parity.run(file).verdict == "ok"


def test_a_fault_of_parity_is_raised_as_it_is(workers, tmp_path, monkeypatch):
    calls = []

    def fails(*_arguments, **_options):
        calls.append(1)
        raise ValueError("a fault")

    monkeypatch.setattr(Workers, "execute", fails)
    with pytest.raises(ValueError, match="a fault"):
        fuzz(workers, "dot_general", PATHS, tmp_path, seconds=60)
    assert len(calls) == 1


def test_what_another_run_does_not_repeat_is_one_group(workers, tmp_path, monkeypatch):
    """A path whose bits come and go: neither reduced nor told apart by what it gave last."""
    kept, asked = campaign.signature, iter(range(100))

    def changing(*arguments):
        told = kept(*arguments)
        return replace(told, why=f"{told.why} {next(asked)}")

    monkeypatch.setattr(campaign, "signature", changing)
    draw = {"dtype": "bool", "draw": "integers", "low": 0, "high": 1}
    cases = [
        {
            "operands": {"lhs": {"shape": [n, 3], **draw}, "rhs": {"shape": [3], **draw}},
            "attributes": {"dimension_numbers": [[[1], [0]], [[], []]]},
        }
        for n in (1, 2)
    ]
    (group,) = groups_of(workers, tmp_path, "dot_general", *cases)
    assert (group.signature.why, group.count) == (UNSTEADY, 2)
    assert "expect" not in group.file.read_text()
    load(group.file)


def test_a_campaign_that_is_over_leaves_what_it_found(workers, tmp_path):
    found = fuzz(workers, "dot_general", PATHS, tmp_path, seconds=0.001)
    assert (found.groups, found.cases) == ([], 0)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--op", "dot_generall"], "did you mean 'dot_general'?"),
        (["--op", "dot_general", "--paths", "eager"], "allowed two or more"),
        (["--op", "dot_general", "--paths", "eager,jitt"], "did you mean 'jit'?"),
        (["--op", "dot_general", "--budget", "ten"], "such as 30s or 10m"),
        (["--op", "dot_general", "-o", "."], "exists already"),
    ],
)
def test_mistakes(arguments, said, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert invoke(["fuzz", *arguments]) == 2
    assert said in capsys.readouterr().err


def test_without_hypothesis(capsys, monkeypatch):
    monkeypatch.setattr("parity.commands.fuzz.find_spec", lambda name: None)
    assert invoke(["fuzz", "--op", "dot_general"]) == 2
    err = capsys.readouterr().err
    assert "fuzzing needs Hypothesis" in err
    assert "pip install 'parity-harness[fuzz]'" in err


def test_the_command(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code = invoke(["fuzz", "--op", "dot_general", "--budget", "10s", "--format", "json"])
    flat = json.loads(capsys.readouterr().out)
    assert code == (1 if flat["groups"] else 0)
    files = {group["file"] for group in flat["groups"]}
    folder = tmp_path / "fuzz-dot_general-0"
    assert files == {f"fuzz-dot_general-0/{one.name}" for one in folder.glob("*")}
    assert flat["format"] == "parity-fuzz/1"
