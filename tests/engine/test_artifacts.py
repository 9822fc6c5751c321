"""What a path exports is executed elsewhere, kept with the record, and executed again later."""

import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

import parity
from parity import cli
from parity.engine.artifacts import Past
from parity.record.artifacts import SHA256, digest, pack, unpack
from parity.record.result import open_record

pytestmark = pytest.mark.usefixtures("fake_paths")

PATHS = ("eager", "fake-exported", "fake-exported-old")
CASE = """\
about: A case for tests.
op: dot_general
operands:
  lhs: {shape: [2], dtype: float32, values: [1, 2]}
  rhs: {shape: [2], dtype: float32, values: [3, 4]}
attributes: {contracting: [[0], [0]]}
paths: [eager, fake-exported, fake-exported-old]
expect:
  - {path: fake-exported-old, outcome: error, stage: load, because: it is meant to}
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("pyproject.toml").write_text("[tool.parity]\n")
    Path("dot.yaml").write_text(CASE)
    return tmp_path


@pytest.fixture
def saved(here):
    return parity.run("dot.yaml", out="a", save_artifacts=True).record


def rows(result):
    return {row.path: row for row in result.rows}


def artifacts(record):
    with closing(sqlite3.connect(record)) as db:
        return dict(db.execute("SELECT sha256, data FROM artifacts"))


@pytest.mark.parametrize(
    ("path", "outcome", "stage"),
    [
        ("fake-exported-crash", "crashed", "run"),
        ("fake-exported-old", "error", "load"),
        ("fake-exported-hang", "timeout", "run"),
    ],
)
def test_a_reader_that_fails_costs_its_own_row(here, path, outcome, stage):
    result = rows(parity.run("dot.yaml", paths=["eager", path, "fake-exported"], timeout=4))
    assert (result[path].outcome, result[path].stage) == (outcome, stage)
    assert result[path].evidence["stablehlo_sha256"]  # of the export, which went well
    assert result["fake-exported"].grade == "identical"


def test_what_is_exported_is_kept_also_if_it_cannot_be_executed(saved):
    kept = artifacts(saved)
    assert all(digest(data) == sha256 for sha256, data in kept.items())
    found = rows(open_record(saved))
    assert {found[path].evidence[SHA256] for path in PATHS[1:]} == set(kept)


def test_without_being_asked_nothing_is_kept(here):
    record = parity.run("dot.yaml", out="a").record
    assert artifacts(record) == {}
    with pytest.raises(parity.UserError, match="has no artifacts"):
        parity.run(artifacts_from=record)


def test_an_artifact_is_executed_again(saved):
    result = rows(parity.run(artifacts_from=saved, out="b"))
    before = rows(open_record(saved))
    for path in PATHS[1:]:
        for name in (SHA256, "stablehlo_sha256"):
            assert result[path].evidence[name] == before[path].evidence[name]
        assert result[path].evidence["artifact"].startswith("written by jax ")
    assert "save" not in result["fake-exported"].timings  # it was not exported anew
    assert result["fake-exported"].grade == "identical"
    assert (result["fake-exported-old"].outcome, result["fake-exported-old"].stage) == (
        "error",
        "load",
    )
    assert "artifact" not in result["eager"].evidence


def test_a_path_without_an_artifact_is_not_exported_anew(here):
    record = parity.run("dot.yaml", paths=PATHS[:2], out="a", save_artifacts=True).record
    result = rows(parity.run("dot.yaml", artifacts_from=record, out="b"))
    old = result["fake-exported-old"]
    assert old.outcome == "unsupported"
    assert old.message.startswith("it has no artifact among those written by jax ")


def test_a_run_that_would_execute_no_artifact_is_refused(here):
    record = parity.run("dot.yaml", paths=PATHS[:2], out="a", save_artifacts=True).record
    with pytest.raises(parity.UserError) as refused:
        parity.run(paths=["eager", "fake-exported-old"], artifacts_from=record, out="b")
    assert refused.value.message == (
        f"{record}: has artifacts of other paths "
        "(got eager, fake-exported-old; allowed fake-exported)"
    )
    assert refused.value.hint == "--paths fake-exported"
    Path("other.yaml").write_text(CASE)
    with pytest.raises(parity.UserError) as refused:
        parity.run("other.yaml", artifacts_from=record, out="b")
    assert refused.value.message == (
        f"{record}: has artifacts of other cases (got other.yaml::other; allowed dot.yaml::dot)"
    )
    assert not Path("b").exists()


def test_another_case_under_the_same_id_is_refused(saved):
    Path("dot.yaml").write_text(CASE.replace("values: [3, 4]", "values: [3, 5]"))
    with pytest.raises(parity.UserError, match=r"is another case than in .*: its operands"):
        parity.run("dot.yaml", artifacts_from=saved)
    Path("dot.yaml").write_text(CASE.replace("A case for tests.", "Another sentence."))
    assert rows(parity.run("dot.yaml", artifacts_from=saved))["fake-exported"].outcome == "ok"


def test_a_diff_says_whose_artifacts_were_executed(saved, capsys):
    again = parity.run(artifacts_from=saved, out="b").record
    assert cli.invoke(["diff", str(saved), str(again)]) == 0
    assert f"({saved.name})" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["--artifacts-from", "none.sqlite"], "none.sqlite: no such record"),
        (["--artifacts-env", "x"], "--artifacts-env needs --artifacts-from"),
        (
            ["--artifacts-from", "{record}", "--artifacts-env", "x"],
            "has no such environment (got x",
        ),
    ],
)
def test_a_mistake_is_told(saved, capsys, arguments, error):
    filled = [argument.format(record=saved) for argument in arguments]
    assert cli.invoke(["run", "dot.yaml", *filled]) == 2
    assert error in capsys.readouterr().err


def test_an_artifact_can_be_taken_out(saved, capsys):
    assert cli.invoke(["show", str(saved), "--path", "fake-exported", "--artifact", "got"]) == 0
    assert json.loads(Path("got/manifest.json").read_text())["path"] == "fake-exported"
    assert json.loads(Path("got/program/program.json").read_text())["op"] == "dot_general"
    assert cli.invoke(["show", str(saved), "--path", "fake-exported", "--artifact", "got"]) == 2
    assert cli.invoke(["show", str(saved), "--artifact", "more"]) == 2
    assert "needs a row that has one (got 2)" in capsys.readouterr().err


def test_the_same_folder_packs_to_the_same_bytes(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name / "sub").mkdir(parents=True)
        (tmp_path / name / "sub" / "file").write_bytes(b"\0\1")
    assert pack(tmp_path / "a") == pack(tmp_path / "b")
    unpack(pack(tmp_path / "a"), tmp_path / "c")
    assert (tmp_path / "c" / "sub" / "file").read_bytes() == b"\0\1"


def test_a_run_that_is_killed_keeps_the_artifacts_of_finished_paths(here):
    """The last path hangs; when the run is resumed without it, the others are not run again."""
    text = CASE.replace("fake-exported-old]", "fake-exported-old, fake-exported-hang]")
    Path("dot.yaml").write_text(text)
    command = [sys.executable, "-m", "parity", "run", "dot.yaml", "--save-artifacts", "--out", "a"]
    started = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        record = wait_for_arrivals(Path("a"), 3)
    finally:
        started.kill()
        started.communicate()
    command = ["--resume", str(record), "--save-artifacts", "--timeout", "300", "--paths"]
    assert cli.invoke(["run", "dot.yaml", *command, "eager,fake-exported,fake-exported-old"]) == 0
    found = rows(open_record(record))
    assert {found[path].evidence[SHA256] for path in PATHS[1:]} <= set(artifacts(record))


def wait_for_arrivals(folder, count):
    import time

    for _ in range(600):
        for record in folder.glob("*.sqlite"):
            with closing(sqlite3.connect(record)) as db:
                found = db.execute("SELECT count(*) FROM arrived").fetchone()[0]
            if found >= count:
                return record
        time.sleep(0.1)
    raise AssertionError("the run did not get that far")


def test_the_environment_of_several_is_named(here):
    both = [f"one={sys.executable}", f"two={sys.executable}"]
    record = parity.run("dot.yaml", env=both, out="a", save_artifacts=True).record
    with pytest.raises(parity.UserError, match=r"has several environments \(one, two\)"):
        Past(record)
    assert Past(record, "two").ids == ("dot.yaml::dot",)
