from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from markdown_it import MarkdownIt

from parity.compare.result import CaseResult
from parity.record.result import RunResult
from parity.report.comment import LIMIT, run_markdown
from parity.worker.protocol import Failure

HOSTILE = "`x` | <script>alert(1)</script> @octocat #12 --> </details>\n\n# title\n- item \\"


def comment(result: RunResult, **how: Any) -> str:
    return "".join(run_markdown(result, **how))


class Page(HTMLParser):
    """The text of rendered markdown, and the tags in it."""

    def __init__(self, markdown: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.opened: list[str] = []
        self.text = ""
        self.feed(MarkdownIt("commonmark", {"html": True}).enable("table").render(markdown))
        assert self.opened == []

    def handle_starttag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.opened.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.opened.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data.replace("\u200b", "")


def failing(maker: Any, count: int, message: str = "cannot do it") -> RunResult:
    one = {"out": np.float32([1])}
    made = (
        {"eager": one, "jit": Failure("error", "run", f"Error{'x' * number}", message)}
        for number in range(count)
    )
    return maker.run(*(maker.result(f"cases/a.yaml::a:k={i}", each) for i, each in enumerate(made)))


def headings(text: str) -> list[str]:
    return re.findall(r"^### `(.*)`$", text, re.MULTILINE)


def test_only_what_is_not_identical_has_a_table(hundred: RunResult) -> None:
    shown = comment(hundred)
    assert shown.startswith("**findings**: 5 of 200 rows fail, in 5 of 100 cases\n")
    # 3 differ, 2 fail; what is unsupported makes no table
    assert {name.partition("k=")[2] for name in headings(shown)} == {"7", "40", "41", "50", "60"}
    assert "95 cases are identical on every path that could run." in shown
    assert "- **unsupported**: jit in 1 case: removed in JAX 0.7.2\n" in shown


def test_the_worst_is_first(hundred: RunResult) -> None:
    shown = comment(hundred)
    # errors, then by ulps: 40/4096, 7/4096 and 41/4096 of numbers of other sizes
    ulps = {
        row.case: row.baseline.max_ulp
        for row in hundred.rows
        if row.is_finding and row.baseline is not None
    }
    by_ulps = sorted(ulps, key=lambda case: -(ulps[case] or 0))
    assert headings(shown)[2:] == by_ulps
    assert re.findall(r"^- \*\*finding\*\*: jit (\w+)", shown, re.MULTILINE) == [
        "error",
        "divergent",
    ]


def test_what_does_not_fail_is_folded_away(maker: Any, founding: CaseResult) -> None:
    one, near = {"out": np.float32([1])}, {"out": np.float32([1 + 2**-23])}
    equivalent = maker.result("cases/e.yaml::e", {"eager": one, "jit": near}, f64=one, strict=None)
    rows = tuple(replace(row, grade="equivalent", status="ok") for row in equivalent.rows)
    shown = comment(maker.run(founding, replace(equivalent, rows=rows)))
    assert shown.startswith("**ok**: none of 6 rows fails, in 2 cases\n")
    assert "<details><summary>1 case that differs and does not fail</summary>\n\n### `" in shown
    assert "<details><summary>1 equivalent case</summary>\n\n### `cases/e.yaml::e`\n" in shown
    assert shown.count("<details>") == shown.count("</details>") == 2
    assert (
        "- **expected**: jit, native divergent, because "
        "[excess-precision](https://example.org/1)\n" in shown
    )


def test_a_fine_run_is_a_few_lines(maker: Any) -> None:
    one = {"out": np.float32([1])}
    run = maker.run(maker.result("cases/a.yaml::a", {"eager": one, "jit": one}))
    assert comment(run) == (
        "**ok**: none of 2 rows fails, in 1 case\n"
        "\n1 case, 2 rows: 2 identical. 1 case is identical on every path that could run.\n"
    )


def test_hostile_text_is_text(maker: Any) -> None:
    one = {"out": np.float32([1])}
    expect = [maker.expectation("native", "divergent", HOSTILE, link="javascript:alert(1)")]
    run = maker.run(
        maker.result(
            "cases/`a|<b>@c.yaml::a",
            {
                "eager": one,
                "jit": Failure("error", "run", "E", HOSTILE),
                "native": {"out": np.float32([3])},
                "nonnative": Failure("unsupported", "build", "Unsupported", HOSTILE),
            },
            f64={"out": np.float64([2])},
            expect=expect,
        )
    )
    page = Page(comment(run))
    assert page.tags <= {
        *("p", "strong", "ul", "li", "h3", "code", "table", "thead", "tbody", "tr", "th", "td")
    }
    # in the overview (cause, reason, expected), in the table, and in the notes
    assert page.text.count("`x` | <script>alert(1)</script> @octocat #12 -->") >= 5
    assert "cases/`a|<b>@c.yaml::a" in page.text
    assert not re.search(r"@(?!&#8203;)", re.sub(r"``.*?``", "", comment(run)))


@pytest.mark.parametrize(
    "message",
    ["cannot", "@" * 10_000, HOSTILE * 200, "🙂" * 5000],
    ids=["short", "mentions", "hostile", "wide"],
)
def test_the_length_is_bounded_and_what_is_left_out_is_counted(maker: Any, message: str) -> None:
    run = failing(maker, 300, message)
    run = RunResult(run.environments, run.cases, 300, record=Path("reports/x.sqlite"))
    shown = comment(run)
    assert LIMIT / 2 < len(shown) <= LIMIT
    left = re.search(r"Left out to keep this short: (\d+) cases that fail, (\d+) lines", shown)
    assert left is not None
    assert int(left[1]) + len(headings(shown)) == 300
    lines = re.findall(r"^- \*\*finding\*\*", shown, re.MULTILINE)
    assert int(left[2]) + len(lines) == 300  # each error of another type
    assert "`parity show reports/x.sqlite` shows all.\n" in shown
    assert shown.count("<details>") == shown.count("</details>") == 1
    assert Page(shown).tags >= {"table", "details"}


def test_bytes_may_be_what_counts(maker: Any) -> None:
    size: Callable[[str], int] = lambda text: len(text.encode())  # noqa: E731
    shown = comment(failing(maker, 100, "🙂" * 200), limit=20_000, size=size)
    assert 10_000 < size(shown) <= 20_000
    assert len(shown) < size(shown)


def test_a_case_of_many_rows_shows_the_worst(maker: Any) -> None:
    names = [f"o{number:02}" for number in range(60)]
    good = {name: np.float32([1]) for name in names}
    bad = good | {"o59": np.float32([5])}
    run = maker.run(maker.result("cases/a.yaml::a", {"eager": good, "jit": bad}))
    shown = comment(run)
    assert "| jit | o59 | finding |" in shown
    assert len(re.findall(r"^\| (eager|jit) ", shown, re.MULTILINE)) == 40
    assert "- 80 more rows: 80 identical\n" in shown


def test_environments_are_named_where_there_are_several(maker: Any) -> None:
    bad = {"eager": {"out": np.float32([1])}, "jit": {"out": np.float32([5])}}
    made = maker.result("cases/a.yaml::a", bad)
    old = replace(
        made, environment="old", rows=tuple(replace(row, environment="old") for row in made.rows)
    )
    run = RunResult({"default": {}, "old": {}}, [made, old], 2)
    shown = comment(run)
    assert shown.startswith("**findings**: 2 of 4 rows fail, in 1 of 1 case\n")
    assert "\n1 case in 2 environments (2 results), 4 rows: 2 identical, 2 divergent\n" in shown
    assert headings(shown) == []
    assert "### `cases/a.yaml::a` in default\n" in shown
    assert "### `cases/a.yaml::a` in old\n" in shown


def test_a_setting_without_effect_is_said_once_for_all_paths(maker: Any) -> None:
    one = {"out": np.float32([1])}
    result = maker.result("cases/a.yaml::a", {"eager": one, "jit": {"out": np.float32([2])}})
    idle = "precision X3: accepted, no effect here"
    said = comment(maker.run(replace(result, words=(f"eager: {idle}", f"jit: {idle}"))))
    assert f"eager, jit: {idle}" in Page(said).text
