"""The page of a comparison, as far as it needs no browser."""

from __future__ import annotations

import base64
import gzip
import json
import re
import shutil
import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from parity import cli
from parity.report.diff import causes, directions, wording
from parity.report.diff.compare import diff
from parity.report.html import glossary
from parity.report.html.changes import Changes, allotted
from parity.report.html.diff import diff_page
from parity.report.html.page import render


def chunk(page: str, name: str) -> Any:
    """What a script reads of the page."""
    found = re.search(rf'<script type="[^"]*" id="{name}">([^<]*)</script>', page)
    assert found
    raw = gzip.decompress(base64.b64decode(found[1]))
    (size,) = struct.unpack_from("<I", raw)
    return json.loads(raw[8 : 8 + size])


@pytest.fixture(scope="module")
def page(found: Any) -> str:
    return render(diff_page(found))


class TestHeader:
    def test_the_verdict_says_what_it_means(self, page: str) -> None:
        assert "</span> worse</h1>" in page
        assert "7 rows in 7 cases got worse; 1 row got worse as expected." in page
        assert "exit code 1: what got worse and is not expected fails" in page
        rows = re.findall(r'data-tag="(\w+)".*?<td class="right">(.*?)</td>.*?<td>(.*?)</td>', page)
        assert rows == [
            ("worse", "7 rows", "6 newly divergent, 1 newly unsupported"),
            ("expected", "1 row", "1 farther from f64"),
        ]

    def test_every_direction_to_fail_on_is_said(self, pair: tuple[str, str]) -> None:
        any_ = render(diff_page(diff(*pair, fail_on="any")))
        assert "exit code 1: any change that is not expected fails" in any_
        none = render(diff_page(diff(*pair, fail_on="none")))
        assert "exit code 0: nothing fails" in none
        assert "Nothing is asked for (--fail-on none)." in none
        one = render(diff_page(diff(*pair, fail_on="gone,new-error")))
        assert "exit code 0: what is new error or gone and not expected fails" in one
        assert "No change is new error or gone." in one

    def test_the_same_bits_are_ok(self, pair: tuple[str, str], tmp_path: Path) -> None:
        same = render(diff_page(diff(pair[0], shutil.copy(pair[0], tmp_path))))
        assert "</span> ok</h1>" in same
        assert "Nothing got worse." in same
        assert "Nothing changed in what both sides have." in same
        assert "The environments are the same on both sides." in same


class TestStatic:
    def test_what_changed_in_the_environments_is_marked(self, page: str) -> None:
        table = page[page.index('class="environments') : page.index("The same on both")]
        assert "<ins>+fma</ins>" in table
        assert "<del>" not in table
        assert re.search(r'class="differs"><th scope="row">jax <', table)
        assert "x86_64" not in table

    def test_findings_stand_worst_first(self, page: str, found: Any) -> None:
        heads = re.findall(r"<h4><span[^>]*>(\w+)</span> (.*?)</h4>", page)
        said = [f"{f.direction}: {f.op} on {f.path}" for f in found.findings]
        assert heads == list(zip(["worse", "worse", "expected"], said, strict=True))

    def test_every_row_stands_there_without_a_script(self, page: str, found: Any) -> None:
        tables = re.findall(r"<noscript>(.*?)</noscript>", page, re.DOTALL)
        rows = [re.findall(r"<tr><td>([^<]*)<", table) for table in tables]
        assert rows == [[change.case for change in f.changes] for f in found.findings]

    def test_what_is_not_comparable_stands_apart(self, page: str, found: Any) -> None:
        apart = page[page.index('<section id="apart"') :]
        (reason,) = {one.reason for one in found.not_comparable}
        assert "tolerance" in reason
        assert "<b>case changed</b>: tolerance" in apart
        assert "cases/other.yaml::other" in apart
        assert apart.index("Only in A") < apart.index("dropped") < apart.index("Only in B")
        assert apart.index("Only in B") < apart.index("added")

    def test_an_expectation_is_said_with_its_link(self, page: str) -> None:
        assert "<q>excess-precision</q> " in page
        assert 'href="https://x.org/1"' in page


class TestData:
    def test_the_index_holds_every_row(self, page: str, found: Any) -> None:
        (index,) = chunk(page, "index")
        columns, texts = index["columns"], index["texts"]
        said = [
            (texts[case], index["findings"][number]["path"], index["measures"][at])
            for case, number, at in zip(
                columns["case"], columns["finding"], columns["measured"], strict=True
            )
        ]
        changes = [change for f in found.findings for change in f.changes]
        assert [one[:2] for one in said] == [(c.case, c.path) for c in changes]
        far = index["measureNames"].index("ulp")
        known = [None if c.distance is None else c.distance.metrics.max_ulp for c in changes]
        assert [one[2][far] for one in said] == known

    def test_details_have_both_sides_and_the_program(self, page: str, found: Any) -> None:
        details = chunk(page, "details-0")
        one = details[0]
        change = found.findings[0].worst
        assert one["remarks"] == wording.remarks(change)
        assert [side["grade"] for side in one["sides"]] == ["identical", "divergent"]
        assert one["sides"][1]["f64"]["max_ulp"] == change.b.f64.max_ulp
        assert one["apart"]["differing"] == 1
        # 4 and 4.5 in float32, sign and exponent and mantissa by hand
        assert one["worst"] == [[[1], 2**20, "4.0", "4.5", "4", ["40800000"], ["40900000"]]]
        names = [name for name, *_ in one["evidence"]]
        assert names == ["StableHLO", "optimized HLO", "bits of the output"]
        program = details[len(found.changes) + one["program"]]
        assert program["name"] == "optimized HLO"
        assert program["lines"][1:] == [" add", "-mul a", "+mul b"]

    def test_one_program_is_stored_once(self, page: str, found: Any) -> None:
        details = chunk(page, "details-0")
        assert len(details) == len(found.changes) + 1
        numbers = [one["program"] for one in details[: len(found.changes)]]
        assert numbers == [0] * 6 + [None] * 2

    def test_of_many_the_worst_have_details(self, found: Any) -> None:
        made = Changes(found, whole=4)
        assert made.index()["columns"]["at"] == [0, 1, *[None] * 4, 2, 3]
        assert len(list(made.details())) == 5

    def test_integers_that_javascript_rounds_are_text(self, maker: Any) -> None:
        a, b = np.array([0], np.int64), np.array([2**53 + 1], np.int64)
        old, new = maker.pair(
            {"eager": maker.gave(a)}, {"eager": maker.gave(b)}, f64=np.array([0], np.int64)
        )
        page = render(diff_page(diff(old, new)))
        (index,) = chunk(page, "index")
        assert str(2**53 + 1) in index["measures"][0]
        (one,) = chunk(page, "details-0")
        assert one["apart"]["max_abs"] == str(2**53 + 1)


@pytest.mark.parametrize(
    ("sizes", "total", "taken"),
    [
        ([], 5, []),
        ([3, 4], 10, [3, 4]),
        ([100, 2, 100], 20, [9, 2, 9]),
        ([100, 100], 21, [10, 11]),
        ([5, 5, 5], 2, [1, 1, 1]),
    ],
)
def test_no_group_is_starved(sizes: list[int], total: int, taken: list[int]) -> None:
    assert allotted(sizes, total) == taken


def test_every_word_has_its_meaning() -> None:
    assert tuple(glossary.DIRECTIONS) == directions.DIRECTIONS
    assert tuple(glossary.CAUSES) == causes.CAUSES


def test_one_cause_in_many_cases_stays_small(found: Any) -> None:
    def size(count: int) -> int:
        worst = found.findings[0].worst
        many = tuple(replace(worst, case=f"cases/d.yaml::d:shape={n}x64") for n in range(count))
        finding = replace(found.findings[0], changes=many)
        text = render(diff_page(replace(found, changes=many, findings=(finding,))))
        assert text.count('<details class="fold finding') == 1
        return len(text)

    assert size(400) - size(1) < 400 * 300
    assert size(400) < 300_000


class TestCommand:
    def test_the_page_is_written_beside_the_text(
        self, pair: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        file = tmp_path / "diff.html"
        assert cli.invoke(["diff", *pair, "--html", str(file)]) == 1
        out, err = capsys.readouterr()
        assert "worse: 7 rows in 7 cases" in out
        assert err == f"wrote {file}\n"
        assert file.read_text(encoding="utf-8").startswith("<!doctype html>")

    def test_what_cannot_be_written_is_said(
        self, pair: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert cli.invoke(["diff", *pair, "--html", str(tmp_path / "none" / "x.html")]) == 2
        assert "no" in capsys.readouterr().err
