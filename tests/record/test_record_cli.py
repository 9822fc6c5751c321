"""`parity show` and `parity cache`."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from parity import cli
from parity.compare.result import CaseResult
from parity.record.cache import Cache
from parity.record.store import Outputs, Store

MakeResult = Callable[..., tuple[CaseResult, Outputs]]
Invoke = Callable[..., tuple[int, str, str]]


@pytest.fixture
def invoke(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Invoke:
    monkeypatch.delenv("COLUMNS", raising=False)

    def call(*arguments: str) -> tuple[int, str, str]:
        code = cli.invoke(arguments)
        out, err = capsys.readouterr()
        return code, out, err

    return call


@pytest.fixture
def record(store: Store, make_result: MakeResult) -> str:
    store.environment("default", {"jax": "0.7.1"})
    store.add(*make_result("a"))
    store.add(*make_result("b", other=(1.0, np.nan), status="finding"))
    store.finish("findings")
    return str(store.file)


class TestShow:
    def test_a_past_run_as_tables(self, invoke: Invoke, record: str) -> None:
        code, out, err = invoke("show", record)
        assert (code, err) == (0, "")
        assert "cases/a.yaml::a:k=2  float32[2]\n" in out
        assert "cases/b.yaml::b:k=2  float32[2]\n" in out
        assert out.splitlines()[-1] == (
            f"findings: 1 row in 1 case | record: {record} | "
            f"look further: parity show {record} --case cases/b.yaml::b:k=2"
        )

    def test_one_case_and_path(self, invoke: Invoke, record: str) -> None:
        code, out, _ = invoke("show", record, "--case", "*::b*", "--path", "jit")
        assert code == 0
        assert "cases/a.yaml" not in out
        assert [line.split()[0] for line in out.splitlines() if "identical" in line] == []
        assert "  jit" in out
        assert "  eager" not in out

    def test_other_formats(self, invoke: Invoke, record: str) -> None:
        found = json.loads(invoke("show", record, "--format", "json")[1])
        assert found["environment"] == {"jax": "0.7.1"}
        assert [row["path"] for row in found["rows"]] == ["eager", "jit"] * 2
        assert found["rows"][3]["max_abs_baseline"] == "NaN"
        table = list(csv.DictReader(io.StringIO(invoke("show", record, "--format", "csv")[1])))
        assert [row["case"] for row in table] == ["cases/a.yaml::a:k=2"] * 2 + [
            "cases/b.yaml::b:k=2"
        ] * 2
        assert "### `cases/b.yaml::b:k=2`" in invoke("show", record, "--format", "markdown")[1]

    def test_verbose_shows_every_table(
        self, invoke: Invoke, store: Store, make_result: MakeResult
    ) -> None:
        for number in range(13):
            store.add(*make_result(f"c{number}"))
        assert invoke("show", str(store.file))[1].count("float32[2]") == 0
        assert invoke("show", str(store.file), "-v")[1].count("float32[2]") == 13

    @pytest.mark.parametrize(
        ("arguments", "code", "message"),
        [
            (["{record}", "--case", "z*"], 5, "error: {record}: has no row in 'z*'\n"),
            (
                ["{record}", "--path", "jti"],
                5,
                "error: {record}: has no row of jti\nhint: did you mean 'jit'?\n",
            ),
            (
                ["nowhere"],
                2,
                "error: nowhere: no such record\nhint: parity run --out DIR writes one\n",
            ),
            (
                [__file__],
                2,
                f"error: {__file__}: is not a record (file is not a database)\n"
                "hint: records are the .sqlite files that `parity run --out DIR` writes\n",
            ),
            (
                [],
                2,
                "error: Missing argument 'RECORD'\nhint: see parity show --help\n",
            ),
        ],
    )
    def test_mistakes(
        self, invoke: Invoke, record: str, arguments: list[str], code: int, message: str
    ) -> None:
        given = [argument.format(record=record) for argument in arguments]
        assert invoke("show", *given) == (code, "", message.format(record=record))


class TestCache:
    @pytest.fixture
    def here(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        monkeypatch.chdir(tmp_path)
        Path("pyproject.toml").write_text("[tool.parity]\nreports = 'kept'\n")
        return tmp_path

    def test_info_and_clear(self, invoke: Invoke, here: Path, make_result: MakeResult) -> None:
        result, outputs = make_result()
        with Cache(here / "kept") as cache:
            for number in range(3):
                cache.put(f"k{number}", result, {"jax": "0.7.1"}, outputs)
        assert invoke("cache", "info") == (
            0,
            f"3 results, 0.0 MiB in {here}/kept/cache.sqlite\n",
            "",
        )
        assert invoke("cache", "clear", "--out", "kept") == (
            0,
            "3 results removed from kept/cache.sqlite\n",
            "",
        )
        assert invoke("cache", "info") == (
            0,
            f"0 results, 0.0 MiB in {here}/kept/cache.sqlite\n",
            "",
        )

    def test_without_a_cache_there_is_none(self, invoke: Invoke, here: Path) -> None:
        assert invoke("cache", "info")[0] == 0
        assert invoke("cache", "clear")[0] == 0
        assert not (here / "kept").exists()

    def test_mistakes(self, invoke: Invoke, here: Path) -> None:
        Path("pyproject.toml").write_text("")
        assert invoke("cache", "info") == (
            2,
            "",
            "error: no folder for records is configured\n"
            "hint: --out DIR names it, or reports in [tool.parity] of pyproject.toml\n",
        )
        assert invoke("cache", "ifno") == (
            2,
            "",
            "error: unknown command (got ifno; allowed info, clear)\nhint: did you mean 'info'?\n",
        )
