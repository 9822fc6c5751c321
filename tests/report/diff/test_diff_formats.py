"""A comparison as JSON, CSV and markdown, and what was compiled."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import numpy as np

from parity.report.diff.compare import diff
from parity.report.diff.markdown import LIMIT, diff_markdown
from parity.report.diff.programs import program_diff
from parity.report.diff.render import render

F64 = [3.0, 4.0]


class TestPrograms:
    def change(self, maker: Any, a: str, b: str, *, keep: str = "12") -> Any:
        texts = {"1": a, "2": b}
        results = [
            maker.result(
                maker.case(),
                {"jit": maker.gave([n], evidence=maker.evidence(stablehlo=str(n)))},
                texts={k: v for k, v in texts.items() if k in keep and k == str(n)},
            )
            for n in (1, 2)
        ]
        found = diff(maker.record("A", results[0]), maker.record("B", results[1]))
        return found.changes[0], found.a, found.b

    def test_long_diffs_are_cut_and_counted(self, maker: Any) -> None:
        a, b = ("\n".join(f"{name}{n}" for n in range(50)) for name in "ab")
        change = self.change(maker, a, b)
        short = program_diff(*change)
        assert short is not None
        assert (len(short.lines), short.more) == (40, 61)  # 50 + 50 lines and the @@ line
        assert short.name == "StableHLO"
        whole = program_diff(*change, limit=None)
        assert whole is not None
        assert (len(whole.lines), whole.more) == (101, 0)

    def test_long_lines_are_cut(self, maker: Any) -> None:
        short = program_diff(*self.change(maker, "a" * 1000, "b"))
        assert short is not None
        assert short.lines[1] == "-" + "a" * 399 + "… 601 characters more"

    def test_texts_that_were_not_kept(self, maker: Any) -> None:
        short = program_diff(*self.change(maker, "a", "b", keep="1"))
        assert short is not None
        assert (short.lines, short.missing) == ((), "not kept in B")

    def test_very_long_texts_are_not_compared(self, maker: Any) -> None:
        short = program_diff(*self.change(maker, "a\n" * 20_001, "b"))
        assert short is not None
        assert short.missing == "20001 and 1 lines are too many"


class TestJson:
    def test_one_change_to_a_line_with_the_documented_keys(self, pair: tuple[str, str]) -> None:
        found = diff(*pair)
        text = "".join(render(found, "json"))
        flat = json.loads(text)
        assert (flat["format"], flat["exit_code"], flat["cases"]) == ("parity-diff/1", 1, 9)
        assert flat["environment"][0] == {
            "name": "jax", "a": "0.7.1", "b": "0.10.2", "removed": [], "added": [],
        }  # fmt: skip
        assert [json.loads(line.rstrip(",")) for line in text.splitlines() if '"cause"' in line][
            -8:
        ] == flat["changes"]
        change = flat["changes"][0]
        assert {
            "case": "cases/a.yaml::a", "environment_a": "default", "environment_b": "default",
            "op": "dot_general", "path": "jit", "output": "out", "direction": "newly-divergent",
            "worse": True, "fails": True, "expected": False, "cause": "compiler changed",
            "grade_a": "identical", "grade_b": "divergent", "rms_rel_f64_b": 0.1,
            "max_abs_ab": 0.5, "hlo_sha256_a": "1" * 64,
        }.items() <= change.items()  # fmt: skip
        assert change["worst_ab"] == [{
            "index": [1], "a": 4.0, "b": 4.5, "a_bits": "0x40800000", "b_bits": "0x40900000",
            "ulp": 2**20, "f64": 4.0,
        }]  # fmt: skip
        assert flat["findings"][0]["cases"] == 6
        assert flat["not_comparable"][0]["kind"] == "case changed"
        assert (flat["only_a"], flat["only_b"]) == (
            ["cases/dropped.yaml::dropped"], ["cases/added.yaml::added"],
        )  # fmt: skip

    def test_what_is_not_finite_is_a_word(self, maker: Any) -> None:
        found = diff(
            *maker.pair({"eager": maker.gave([3, 4])}, {"eager": maker.gave([3, np.nan])}, f64=F64)
        )
        change = json.loads("".join(render(found, "json")))["changes"][0]
        assert (change["rms_rel_f64_b"], change["worst_ab"][0]["b"]) == ("NaN", "NaN")

    def test_complex_elements_are_pairs(self, maker: Any) -> None:
        made = ({"eager": maker.gave(np.complex64([v]))} for v in (1j, 2j))
        change = json.loads("".join(render(diff(*maker.pair(*made)), "json")))["changes"][0]
        assert change["worst_ab"][0]["b"] == [0.0, 2.0]

    def test_csv_has_the_same_keys(self, pair: tuple[str, str]) -> None:
        found = diff(*pair)
        table = list(csv.DictReader(io.StringIO("".join(render(found, "csv")))))
        keys = json.loads("".join(render(found, "json")))["changes"][0]
        assert (len(table), list(table[0])) == (8, list(keys))
        assert table[0]["direction"] == "newly-divergent"


class TestMarkdown:
    def test_a_comment(self, pair: tuple[str, str]) -> None:
        text = diff_markdown(diff(*pair))
        assert text.startswith("**worse**: 7 rows in 7 cases: 6 newly divergent")
        assert "| `jax` | `0.7.1` | `0.10.2` |\n" in text
        assert "#### worse: `newly divergent: dot_general on jit in 6 cases: compiler" in text
        assert "| rms rel vs f64 | 0 | 0\\.1 |  |\n" in text
        assert "also in `cases/b.yaml::b`, `cases/c.yaml::c`, `cases/d.yaml::d` and 2 more" in text
        assert text.endswith("unchanged: 6 rows of 9 cases\n")

    def test_a_long_one_is_cut_and_says_so(self, maker: Any) -> None:
        rows = {f"p{n}": maker.gave([3, 4]) for n in range(300)}
        worse = {path: maker.failed(said="x" * 500) for path in rows}
        found = diff(*maker.pair(rows, worse, f64=F64))
        text = diff_markdown(found)
        assert 50_000 < len(text) <= LIMIT
        shown = text.count("#### ")
        assert f"… and {300 - shown} findings more, {300 - shown} rows.\n" in text
