from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from parity.casefile.load import load
from parity.compare.result import CaseResult
from parity.errors import CaseFileError, UserError
from parity.record.result import RunResult
from parity.report import github
from parity.report.github import (
    PER_STEP,
    SUMMARY,
    append_summary,
    command,
    mistakes,
    workflow_commands,
)
from parity.worker.protocol import Failure


def parsed(line: str) -> tuple[str, dict[str, str], str]:
    """What the runner reads in a line: name, properties, message.

    Source: ActionCommand.TryParseV2 of actions/runner: the first `::` after the start ends the
    properties, which commas and the first `=` part; %25 is unescaped last.
    """
    assert line.startswith("::")
    head, end, data = line[2:].rstrip("\n").partition("::")
    assert end
    name, _, rest = head.partition(" ")
    properties = dict(part.split("=", 1) for part in rest.split(",") if part)
    unescape = {"%0D": "\r", "%0A": "\n", "%3A": ":", "%2C": ",", "%25": "%"}
    for sign, of in unescape.items():
        properties = {key: value.replace(sign, of) for key, value in properties.items()}
        data = data if sign in ("%3A", "%2C") else data.replace(sign, of)
    return name, properties, data


def commands(run: RunResult) -> list[tuple[str, dict[str, str], str]]:
    return [parsed(line) for line in workflow_commands(run) if line.startswith("::")]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A repository as the current folder, with the project in a folder of it."""
    monkeypatch.delenv("GITHUB_WORKSPACE", raising=False)
    github._top_level.cache_clear()
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    project = tmp_path / "numerics"
    project.mkdir()
    (project / "pyproject.toml").write_text("[tool.parity]\n")
    (project / "cases").mkdir()
    monkeypatch.chdir(project)
    yield tmp_path
    github._top_level.cache_clear()


@pytest.mark.parametrize(
    ("message", "properties"),
    [
        ("a, b: c", {"file": "a,b:c.yaml", "title": "100%: x,y"}),
        ("50%\n::error::no\r\nend %0A", {"title": "two\nlines"}),
        ("::set-output name=x::y", {}),
    ],
)
def test_the_runner_reads_back_what_was_said(message: str, properties: dict[str, str]) -> None:
    line = command("error", message, **properties)
    assert line.count("\n") == 1
    name, read, said = parsed(line)
    assert (name, said) == ("error", "\n".join(message.splitlines()))
    assert read == {key: value.replace("\n", "⟨U+000A⟩") for key, value in properties.items()}


def test_a_long_message_fits_what_the_runner_forwards() -> None:
    _, _, said = parsed(command("error", "x" * 9_000))
    assert len(said) < 4_096
    assert said.endswith("… (5000 more characters)")


def test_findings_are_errors_by_cause_the_worst_first(hundred: RunResult) -> None:
    errors = [found for found in commands(hundred) if found[0] == "error"]
    assert [at["title"] for _, at, _ in errors] == [
        "parity: jit error at trace",
        "parity: jit divergent",
    ]
    assert errors[0][2] == (
        "jit error at trace in 2 cases: TypeError: cannot do 50 dots\n"
        "first: cases/dot.yaml::dot:k=50[jit]"
    )
    assert errors[1][1] == {
        "file": "cases/dot.yaml",
        "line": "2",
        "title": "parity: jit divergent",
    }
    assert list(workflow_commands(hundred))[-1].startswith(
        "findings: 5 rows in 5 cases | record: none"
    )


def test_what_is_expected_is_one_notice(maker: Any, founding: CaseResult) -> None:
    assert commands(maker.run(founding)) == [
        (
            "notice",
            {"title": "parity: as expected"},
            "jit, native divergent, because excess-precision (https://example.org/1)",
        )
    ]


def test_a_stale_expectation_is_shown_at_its_line(maker: Any) -> None:
    one = {"out": np.float32([1])}
    expect = [
        maker.expectation("native", "divergent", "why", line=20),
        maker.expectation("jit", "divergent", "why", line=21, when={"jax": ">=99"}),
        maker.expectation("jit", "divergent", "why", line=22),
    ]
    run = maker.run(
        maker.result(
            "cases/a.yaml::a",
            {"eager": one, "jit": one, "native": {"out": np.float32([5])}},
            f64={"out": np.float64([4])},
            expect=expect,
        )
    )
    (stale,) = [at for name, at, _ in commands(run) if at["title"].startswith("parity: stale")]
    assert (stale["line"], stale["title"]) == ("22", "parity: stale: jit identical")


def test_each_file_that_fails_has_an_annotation_of_its_own(maker: Any) -> None:
    one, off = {"out": np.float32([1])}, {"out": np.float32([3])}
    ids = [f"cases/{file}.yaml::{file}:k={k}" for file in "ab" for k in (1, 2)]
    run = maker.run(*(maker.result(id_, {"eager": one, "jit": off}) for id_ in ids))
    errors = [(at["file"], said) for name, at, said in commands(run) if name == "error"]
    assert [file for file, _ in errors] == ["cases/a.yaml", "cases/b.yaml"]
    for (_, said), id_ in zip(errors, (ids[0], ids[2]), strict=True):
        assert said.startswith("jit divergent in 2 cases, at worst 2 (1.258e+07 ulp)")
        assert said.endswith(f"\nworst: {id_}[jit]")


def test_of_many_findings_each_file_shows_one_first(maker: Any) -> None:
    one = {"out": np.float32([1])}
    many = [
        maker.result(f"cases/a.yaml::a:k={k}", {"eager": one, f"p{k}": {"out": np.float32([9])}})
        for k in range(20)
    ]
    mild = maker.result("cases/z.yaml::z", {"eager": one, "jit": {"out": np.float32([1.5])}})
    errors = [at for name, at, _ in commands(maker.run(*many, mild)) if name == "error"]
    assert len(errors) == 10
    assert [at["file"] for at in errors[:-1]] == [*["cases/a.yaml"] * 8, "cases/z.yaml"]
    assert errors[-1]["title"] == "parity: more"


def test_no_more_than_github_shows(maker: Any) -> None:
    one = {"out": np.float32([1])}
    results = [
        maker.result(
            f"cases/a.yaml::a:k={number}",
            {"eager": one, "jit": Failure("error", "run", f"E{'x' * number}", "no")},
        )
        for number in range(25)
    ]
    found = commands(maker.run(*results))
    assert len(found) == PER_STEP
    assert found[-1][2] == (
        "16 more findings, 16 rows: not shown here, since GitHub shows 10 errors of a step"
    )
    cut_short = commands(maker.run(*results, wanted=30, interrupted=True))
    assert len(cut_short) == PER_STEP
    assert cut_short[0][2] == "interrupted after 25 of 30 results"
    assert cut_short[-1][2].startswith("17 more findings")
    assert len(commands(maker.run(*results[:PER_STEP]))) == PER_STEP


def test_a_line_of_the_log_is_no_command(maker: Any) -> None:
    one = {"out": np.float32([1])}
    run = maker.run(maker.result("cases/##[error]a.yaml::a", {"eager": one}))
    assert "##[" not in "".join(workflow_commands(run))


class TestFile:
    CASE = (
        "about: x\nop: dot_general\noperands:\n"
        "  lhs: {shape: [2], dtype: float32, values: [1, 2]}\n"
        "  rhs: {shape: [2], dtype: float32, values: [3, 4]}\n"
        "attributes: {contracting: [[0], [0]]}\npaths: [eager, jit]\n"
    )

    def run(self, maker: Any, file: Path) -> RunResult:
        """A finding in the case of a file."""
        file.write_text(f"# a comment\n\n{self.CASE}")
        (case,) = load(file).cases
        made = {"eager": {"out": np.float32(1)}, "jit": {"out": np.float32(3)}}
        return maker.run(replace(maker.result(case.id, made), case=case))

    def test_is_named_from_the_root_of_the_repository(self, here: Path, maker: Any) -> None:
        run = self.run(maker, Path("cases/dot.yaml"))
        ((_, at, _),) = commands(run)
        assert (at["file"], at["line"]) == ("numerics/cases/dot.yaml", "3")

    def test_is_found_through_a_link(self, here: Path, maker: Any, tmp_path: Path) -> None:
        (tmp_path / "elsewhere").symlink_to(here / "numerics")
        run = self.run(maker, tmp_path / "elsewhere" / "cases" / "dot.yaml")
        assert commands(run)[0][1]["file"] == "numerics/cases/dot.yaml"

    def test_without_git_the_workspace_is_the_root(
        self, here: Path, maker: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("PATH", "")
        monkeypatch.setenv("GITHUB_WORKSPACE", str(here))
        run = self.run(maker, Path("cases/dot.yaml"))
        assert commands(run)[0][1]["file"] == "numerics/cases/dot.yaml"

    def test_without_both_it_is_named_as_in_ids(
        self, here: Path, maker: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("PATH", "")
        run = self.run(maker, Path("cases/dot.yaml"))
        assert commands(run)[0][1]["file"] == "cases/dot.yaml"

    def test_of_another_machine_is_looked_for_in_the_project(self, here: Path, maker: Any) -> None:
        run = self.run(maker, Path("cases/dot.yaml"))
        (one,) = run.cases
        moved = replace(one.case, file=Path("/nowhere/cases/dot.yaml"))
        run = maker.run(replace(one, case=moved))
        assert commands(run)[0][1]["file"] == "numerics/cases/dot.yaml"
        Path("cases/dot.yaml").unlink()
        github._top_level.cache_clear()
        assert commands(run)[0][1]["file"] == "numerics/cases/dot.yaml"


class TestMistakes:
    def test_a_broken_case_file_is_shown_at_its_line(self, here: Path) -> None:
        file = here / "numerics" / "cases" / "b.yaml"
        file.write_text("abuot: x\n")
        with pytest.raises(CaseFileError) as caught:
            load(file)
        (line, *_) = mistakes([caught.value])
        name, at, said = parsed(line)
        assert name == "error"
        assert (at["file"], at["line"], at["col"]) == ("numerics/cases/b.yaml", "1", "1")
        assert said.startswith("unknown key 'abuot'")
        assert "\nhint: did you mean 'about'?" in said

    def test_many_are_counted(self) -> None:
        errors = [UserError(f"wrong {number}") for number in range(14)]
        found = [parsed(line)[2] for line in mistakes(errors)]
        assert found == [*(f"wrong {n}" for n in range(9)), "5 more errors in case files"]


class TestSummary:
    def test_is_appended(self, hundred: RunResult, tmp_path: Path) -> None:
        file = tmp_path / "summary.md"
        file.write_text("before\n")
        append_summary(hundred, file)
        shown = file.read_text()
        assert shown.startswith("before\n**findings**: 5 of 200 rows fail, in 5 of 100 cases\n")
        assert len(re.findall("^### (?!Side by side)", shown, re.MULTILINE)) == 5

    @pytest.mark.parametrize("before", [0, SUMMARY // 2, SUMMARY - 9_000])
    def test_keeps_below_the_limit_in_bytes(self, maker: Any, tmp_path: Path, before: int) -> None:
        one = {"out": np.float32([1])}
        failure = Failure("error", "run", "E", "🙂" * 300)
        made = maker.result("cases/a.yaml::a", {"eager": one, "jit": failure})
        run = maker.run(*[made] * 600)
        file = tmp_path / "summary.md"
        file.write_bytes(b"x" * before)
        append_summary(run, file)
        assert before < file.stat().st_size <= SUMMARY
        assert file.stat().st_size > SUMMARY - 8_000
        assert "Left out to keep this short: " in file.read_text()

    def test_that_is_full_is_said(self, hundred: RunResult, tmp_path: Path) -> None:
        file = tmp_path / "summary.md"
        file.write_bytes(b"x" * (SUMMARY - 100))
        with pytest.raises(UserError, match="is full"):
            append_summary(hundred, file)
        assert file.stat().st_size == SUMMARY - 100

    def test_that_cannot_be_written_is_said(self, hundred: RunResult, tmp_path: Path) -> None:
        with pytest.raises(UserError, match=r"summary.md: cannot be written \(No such file"):
            append_summary(hundred, tmp_path / "none" / "summary.md")
