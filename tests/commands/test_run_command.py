from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from parity.casefile.case import Case
from parity.engine.environment import Environment
from parity.engine.workers import Execution, Workers

from .project import BAD, Invoke

HEADLINE = "**findings**: 1 of 4 rows fails, in 1 of 2 cases\n"


class TestRun:
    def test_a_fine_run_is_0(self, here: Path, invoke: Invoke, engine: list[Any]) -> None:
        code, out, err = invoke("run", "cases/fine.yaml")
        assert code == 0
        assert engine == [("cases/fine.yaml::fine", ("eager", "jit"))]
        assert out.splitlines()[-1] == (
            "ok | record: none (--out DIR keeps one) | "
            "look further: parity run cases/fine.yaml::fine --format json"
        )
        assert err.startswith("[1/1] ok     cases/fine.yaml::fine  ")

    def test_a_finding_is_1(self, here: Path, invoke: Invoke, engine: list[Any]) -> None:
        code, out, _ = invoke("run")
        assert code == 1
        assert "finding: jit divergent, 1 (1048576 ulp) from the baseline; " in out
        assert "findings: 1 row in 1 case" in out.splitlines()[-1]

    def test_fail_on_moves_the_line(self, here: Path, invoke: Invoke, engine: list[Any]) -> None:
        assert invoke("run", "--fail-on", "inaccurate")[0] == 0
        Path("pyproject.toml").write_text("[tool.parity]\nfail_on = 'inaccurate'\n")
        assert invoke("run")[0] == 0
        assert invoke("run", "--fail-on", "divergent")[0] == 1

    def test_the_rest_runs_beside_a_broken_file_and_the_code_is_2(
        self, here: Path, invoke: Invoke, engine: list[Any]
    ) -> None:
        Path("cases/b.yaml").write_text(BAD)
        code, out, err = invoke("run", "--format", "json")
        assert code == 2
        assert {row["case"] for row in json.loads(out)["rows"]} == {
            "cases/differs.yaml::differs",
            "cases/fine.yaml::fine",
        }
        assert "cases/b.yaml:1:1: unknown key 'abuot'" in err

    def test_only_broken_files_run_nothing(
        self, here: Path, invoke: Invoke, engine: list[Any]
    ) -> None:
        Path("cases/b.yaml").write_text(BAD)
        code, out, err = invoke("run", "cases/b.yaml", "-k", "b")
        assert (code, out, engine) == (2, "", [])
        assert err.startswith("cases/b.yaml:1:1: ")

    def test_selected_paths_alone_make_rows(
        self, here: Path, invoke: Invoke, engine: list[Any]
    ) -> None:
        code, out, _ = invoke("run", "cases/differs.yaml::differs[jit]", "--format", "json")
        assert code == 1
        assert [row["path"] for row in json.loads(out)["rows"]] == ["jit"]

    def test_the_formats_are_data_alone(
        self, here: Path, invoke: Invoke, engine: list[Any]
    ) -> None:
        assert json.loads(invoke("run", "--format", "json")[1])["format"] == "parity-run/1"
        assert invoke("run", "--format", "csv")[1].startswith("case,path,output,outcome,grade,")
        assert invoke("run", "--format", "markdown")[1].startswith(HEADLINE)

    def test_github_has_annotations_and_a_step_summary(
        self,
        here: Path,
        invoke: Invoke,
        engine: list[Any],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        Path("cases/b.yaml").write_text(BAD)
        monkeypatch.setenv("GITHUB_WORKSPACE", str(here))
        monkeypatch.setenv("GITHUB_STEP_SUMMARY", "summary.md")
        code, out, err = invoke("run", "--format", "github")
        assert code == 2
        broken, _missing, finding, *_, last = out.splitlines()
        assert broken.startswith("::error file=cases/b.yaml,line=1,col=1,title=parity%3A case file")
        assert finding.startswith("::error file=cases/differs.yaml,line=1,title=parity%3A jit div")
        assert last.startswith("findings: 1 row in 1 case | record: none")
        assert Path("summary.md").read_text().startswith(HEADLINE)
        monkeypatch.setenv("GITHUB_STEP_SUMMARY", "no/summary.md")
        code, _, err = invoke("run", "cases/fine.yaml", "--format", "github")
        assert code == 0
        assert "no/summary.md: cannot be written" in err

    def test_a_record_is_kept_where_out_says(
        self, here: Path, invoke: Invoke, engine: list[Any]
    ) -> None:
        code, out, _ = invoke("run", "cases/fine.yaml", "--out", "deep/records")
        record = out.splitlines()[-1].split("record: ")[1].split(" |")[0]
        assert code == 0
        assert Path(record).parent == Path("deep/records")
        assert Path(record).read_bytes().startswith(b"SQLite format 3\0")

    def test_a_folder_that_cannot_be_written_is_2(
        self, here: Path, invoke: Invoke, engine: list[Any]
    ) -> None:
        code, out, err = invoke("run", "--out", "pyproject.toml/x")
        assert (code, out, engine) == (2, "", [])
        assert err == (
            "error: pyproject.toml/x: cannot write a record there: [Errno 20] Not a directory: "
            "'pyproject.toml/x'\n"
            "hint: --out takes a folder that can be written; so does `reports` in [tool.parity]\n"
        )

    def test_an_interpreter_that_cannot_start_is_2(self, here: Path, invoke: Invoke) -> None:
        code, out, err = invoke("run", "cases/fine.yaml", "--python", "no/such/python")
        assert (code, out) == (2, "")
        assert err.startswith("error: cannot start no/such/python: ")
        assert "Traceback" not in err

    def test_a_fault_of_ours_is_3_with_its_traceback(
        self, here: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def execute(
            self: Workers, case: Case, paths: Sequence[str], where: Environment, **more: object
        ) -> Execution:
            raise ZeroDivisionError("our own")

        monkeypatch.setattr(Workers, "execute", execute)
        code, out, err = invoke("run")
        assert (code, out) == (3, "")
        assert "Traceback (most recent call last)" in err
        assert "ZeroDivisionError: our own" in err
        assert err.endswith(
            "error: this is a fault of parity itself, not of your case; "
            "please report it with the lines above\n"
        )

    def test_an_interrupted_run_is_130_and_shows_what_is_done(
        self, here: Path, invoke: Invoke, engine: list[Any], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        Path("cases/b.yaml").write_text(BAD)
        execute = Workers.execute

        def interrupt(
            self: Workers, case: Case, paths: Sequence[str], where: Environment, **more: Any
        ) -> Execution:
            if case.name == "fine":
                raise KeyboardInterrupt
            return execute(self, case, paths, where, **more)

        monkeypatch.setattr(Workers, "execute", interrupt)
        code, out, _ = invoke("run", "-j", "1")
        assert code == 130
        assert "finding: jit divergent" in out
        assert out.splitlines()[-1].startswith("interrupted: 1 row in 1 case after 1 of 2 cases")

    def test_ctrl_c_before_the_run_is_130(
        self, here: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def select(*_: Any, **__: Any) -> Any:
            raise KeyboardInterrupt

        monkeypatch.setattr("parity.api.select", select)
        code, out, err = invoke("run")
        assert (code, out, err.strip()) == (130, "", "interrupted")
