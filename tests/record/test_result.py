from __future__ import annotations

import math
import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from parity.casefile.case import Case
from parity.compare.result import CaseResult
from parity.compare.rows import as_dict
from parity.errors import NothingSelected, UserError
from parity.record.result import Rows, RunResult, open_record
from parity.record.store import Outputs, Store

MakeResult = Callable[..., tuple[CaseResult, Outputs]]


@pytest.fixture
def some(make_result: MakeResult) -> list[tuple[CaseResult, Outputs]]:
    return [
        make_result("a"),
        make_result("b", other=(1.0, np.inf), status="finding"),
        make_result("b", "new", base=(np.nan, 1.0), other=(np.nan, 2.0), status="expected"),
    ]


@pytest.fixture
def file(store: Store, some: list[tuple[CaseResult, Outputs]]) -> Path:
    store.environment("default", {"jax": "0.7.1"})
    store.environment("new", {"jax": "0.10.2"})
    for made in some:
        store.add(*made)
    store.finish("findings")
    assert store.file is not None
    return store.file


class TestRunResult:
    def run(self, *cases: CaseResult, **more: Any) -> RunResult:
        return RunResult({"a": {"jax": "1"}, "b": {}}, cases, 2, **more)

    def test_rows_are_those_of_the_cases(self, some: list[tuple[CaseResult, Outputs]]) -> None:
        cases = [result for result, _ in some]
        wanted = [row for case in cases for row in case.rows]
        rows = self.run(*cases).rows
        assert repr(list(rows)) == repr(list(rows)) == repr(wanted)
        assert len(rows) == 6
        assert repr([rows[0], rows[-1], *rows[2:4]]) == repr([wanted[0], wanted[5], *wanted[2:4]])
        with pytest.raises(IndexError):
            rows[6]
        with pytest.raises(IndexError):
            rows[-7]

    @pytest.mark.parametrize(
        ("status", "interrupted", "verdict", "code"),
        [
            ("ok", False, "ok", 0),
            ("expected", False, "ok", 0),
            ("finding", False, "findings", 1),
            ("stale", False, "findings", 1),
            ("finding", True, "interrupted", 130),
            ("ok", True, "interrupted", 130),
        ],
    )
    def test_verdict_in_memory_and_in_a_record(
        self,
        store: Store,
        make_result: MakeResult,
        status: str,
        interrupted: bool,
        verdict: str,
        code: int,
    ) -> None:
        made = make_result(status=status)
        store.add(*made)
        for cases in ((made[0],), store.results()):
            result = RunResult({}, cases, 1, interrupted)
            assert (result.verdict, result.exit_code) == (verdict, code)

    def test_of_several_environments_the_first(self) -> None:
        assert self.run().environment == {"jax": "1"}
        assert RunResult({}, (), 0).environment == {}

    def test_a_table_has_a_line_for_each_row(self, some: list[tuple[CaseResult, Outputs]]) -> None:
        table = self.run(*(result for result, _ in some)).table()
        assert list(table.environment) == ["default"] * 4 + ["new"] * 2
        assert list(table.columns) == list(as_dict(some[0][0].rows[0]))


class TestOpenRecord:
    def test_cases_are_read_when_they_are_looked_at(
        self, file: Path, some: list[tuple[CaseResult, Outputs]]
    ) -> None:
        cases = open_record(file).cases
        assert len(cases) == 3
        assert repr(cases[1]) == repr(some[1][0])
        assert repr(cases[-1]) == repr(some[2][0])
        assert [case.case.name for case in cases[1:]] == ["b", "b"]
        assert [c.case.id for c in cases] == [c.case.id for c in cases]
        assert isinstance(iter(cases), Iterator)
        with pytest.raises(IndexError):
            cases[3]

    @pytest.mark.parametrize(
        ("selection", "names", "paths"),
        [
            ({}, ["a", "b", "b"], {"eager", "jit"}),
            ({"case": "cases/b.yaml::b:k=2"}, ["b", "b"], {"eager", "jit"}),
            ({"case": "cases/a.yaml"}, ["a"], {"eager", "jit"}),
            ({"case": "cases/a.yaml::a"}, ["a"], {"eager", "jit"}),
            ({"case": "*b.yaml::*"}, ["b", "b"], {"eager", "jit"}),
            ({"case": "cases/?.yaml*"}, ["a", "b", "b"], {"eager", "jit"}),
            ({"paths": ["jit"]}, ["a", "b", "b"], {"jit"}),
            ({"case": "*::b*", "paths": ["jit", "other"]}, ["b", "b"], {"jit"}),
        ],
    )
    def test_a_part_of_it(
        self, file: Path, selection: dict[str, Any], names: list[str], paths: set[str]
    ) -> None:
        result = open_record(file, **selection)
        assert [case.case.name for case in result.cases] == names
        assert {row.path for row in result.rows} == paths
        assert result.wanted == len(names)

    @pytest.mark.parametrize(
        ("selection", "message"),
        [
            ({"case": "[ab]"}, "has no row in '[ab]'"),
            ({"paths": ["ji"]}, "has no row of ji"),
            ({"case": "*b", "paths": ["x", "y"]}, "has no row of x or y in '*b'"),
        ],
    )
    def test_no_such_part(self, file: Path, selection: dict[str, Any], message: str) -> None:
        with pytest.raises(NothingSelected) as caught:
            open_record(file, **selection)
        assert caught.value.message == f"{file}: {message}"

    @pytest.mark.parametrize(
        ("selection", "hint"),
        [
            ({"paths": ["ji"]}, "did you mean 'jit'?"),
            ({"paths": ["x"]}, "its paths are eager, jit"),
            ({"case": "zzz"}, None),
        ],
    )
    def test_what_there_is_instead(
        self, file: Path, selection: dict[str, Any], hint: str | None
    ) -> None:
        with pytest.raises(NothingSelected) as caught:
            open_record(file, **selection)
        assert caught.value.hint == hint

    def test_words_are_of_the_paths_that_are_shown(self, file: Path) -> None:
        assert open_record(file, paths=["jit"]).cases[1].words == (
            "jit differs from eager in 1 of 2 elements",
        )
        assert open_record(file, paths=["eager"]).cases[1].words == ()

    def test_findings_of_a_part(self, file: Path) -> None:
        assert open_record(file).verdict == "findings"
        assert open_record(file, case="cases/a*").verdict == "ok"
        assert open_record(file, paths=["eager"]).verdict == "ok"

    def test_an_unfinished_record_counts_as_interrupted(
        self, store: Store, make_result: MakeResult
    ) -> None:
        store.add(*make_result())
        assert store.file is not None
        result = open_record(store.file)
        assert (result.verdict, len(result.cases), result.wanted) == ("interrupted", 1, 3)

    def test_environments_are_in_the_order_that_was_asked_for(self, tmp_path: Path) -> None:
        store = Store(tmp_path, version="1.0", options={"environments": ["old", "new", "third"]})
        for name in ("new", "other", "old"):  # as they happened to be ready
            store.environment(name, {"jax": name})
        assert [*store.environments()] == ["old", "new", "other"]
        store.finish("ok")
        assert store.file is not None
        assert [*open_record(store.file).environments] == ["old", "new", "other"]

    def test_a_missing_file(self, tmp_path: Path) -> None:
        with pytest.raises(UserError) as caught:
            open_record(tmp_path / "r.sqlite")
        assert str(caught.value) == (
            f"{tmp_path}/r.sqlite: no such record\nhint: parity run --out DIR writes one"
        )
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.skipif(sys.platform != "linux", reason="needs a file that even root cannot read")
    def test_a_file_that_cannot_be_read(self) -> None:
        with pytest.raises(UserError) as caught:
            open_record("/proc/self/mem")
        assert str(caught.value) == "/proc/self/mem: cannot be read (Input/output error)"

    def test_a_name_with_odd_characters(self, tmp_path: Path, make_result: MakeResult) -> None:
        store = Store(tmp_path / "a ?#%20ü", version="1.0")
        store.add(*make_result())
        assert store.file is not None
        assert len(open_record(store.file).cases) == 1


class TestPandas:
    def test_the_view_as_a_data_frame(
        self, file: Path, some: list[tuple[CaseResult, Outputs]]
    ) -> None:
        with closing(sqlite3.connect(file)) as db:
            table = pd.read_sql("SELECT * FROM rows WHERE kind = 'path'", db)
        assert list(table["case"]) == [row.case for made in some for row in made[0].rows]
        assert list(table.environment) == ["default"] * 4 + ["new"] * 2
        assert list(table.path) == ["eager", "jit"] * 3
        assert list(table.max_abs_baseline[:4]) == [0.0, 0.0, 0.0, math.inf]
        assert list(table.sqnr_db_baseline[:3]) == [math.inf] * 3
        assert list(table.pattern_baseline) == [0, 0, 0, 1, 0, 0]
        assert list(table.nan_got_baseline) == [0, 0, 0, 0, 1, 1]
        assert table.max_abs_f64.isna().all()
        assert table.nan_got_f64.isna().all(), "nothing was measured, which is not: no NaN"
        assert list(table.run) == [0.5] * 6
        assert table["compare"].isna().all()


def test_rows_take_no_memory_of_their_own(make_case: Callable[..., Case]) -> None:
    asked = []

    class Cases(list[CaseResult]):
        def __iter__(self) -> Iterator[CaseResult]:
            for number in range(3):
                asked.append(number)
                yield CaseResult(make_case(), "default", (), (), {}, ())

    rows = Rows(Cases())
    assert asked == []
    assert list(iter(rows)) == []
    assert asked == [0, 1, 2]
