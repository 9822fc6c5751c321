"""The page of a comparison in headless chromium: what people do, and what must not happen."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, Page, expect

from parity.report.diff.compare import diff
from parity.report.html.diff import diff_page
from parity.report.html.page import write

A = "cases/a.yaml::a[jit]"
Opened = Callable[..., Page]


@pytest.fixture(scope="module")
def spread(found: Any) -> Any:
    """One finding whose rows are some ulps apart, infinitely far, or NaN."""
    finding = found.findings[0]
    far = [20.0, 8.0, float("nan"), 100.0, float("inf"), 1.0]

    def moved(change: Any, ulp: float) -> Any:
        metrics = replace(change.distance.metrics, max_ulp=ulp)
        return replace(change, distance=replace(change.distance, metrics=metrics))

    changes = tuple(moved(*one) for one in zip(finding.changes, far, strict=True))
    return replace(found, changes=changes, findings=(replace(finding, changes=changes),))


def linked(**state: str) -> str:
    return "#" + "&".join(f"{name}={quote(value, safe='')}" for name, value in state.items())


def column(page: Page, key: str) -> list[str]:
    """The texts of a column in the first finding that is open."""
    table = page.locator(".finding[open]:visible table.rows").first
    keys = table.locator("thead th").evaluate_all("all => all.map(e => e.dataset.key)")
    return table.locator(f"tbody td:nth-child({keys.index(key) + 1})").all_inner_texts()


def test_few_findings_are_open_and_many_rows_are_folded(opened: Opened, found: Any) -> None:
    page = opened(found)
    folds = page.locator(".finding")
    assert folds.evaluate_all("all => all.map(e => e.open)") == [True, True, True]
    first = folds.first
    expect(first.locator("h4")).to_have_text("worse newly divergent: dot_general on jit")
    expect(first.locator("summary").first).to_contain_text("6 rows in 6 cases, up to 1048576 ulp")
    expect(first.locator(".example")).to_contain_text("A to B: 1 of 2 elements differ")
    assert first.locator("table.rows").count() == 0  # six rows are more than are unfolded
    first.get_by_text("Its 6 rows").click()
    expect(first.locator("table.rows tbody tr")).to_have_count(6)


def test_columns_sort_by_number_with_nan_beyond_infinity(opened: Opened, spread: Any) -> None:
    page = opened(spread)
    page.locator(".every:not([open]) > summary").first.click()
    button = page.get_by_role("button", name="ulp, A to B").first
    heading = page.locator("th[data-key=ulp]").first
    button.click()
    assert heading.get_attribute("aria-sort") == "descending"
    assert column(page, "ulp") == ["nan", "inf", "100", "20", "8", "1"]
    button.click()
    assert heading.get_attribute("aria-sort") == "ascending"
    assert column(page, "ulp") == ["1", "8", "20", "100", "inf", "nan"]
    assert page.url.endswith("#sort=ulp")


FILTERS = (
    ("direction:newly-divergent", 6),
    ('direction:"newly divergent"', 6),
    ("direction:newly-*", 7),
    ("cause:compiler-changed", 6),
    ("cause:compiler*", 7),
    ("is:worse", 7),
    ("is:expected", 1),
    ("-is:worse", 1),
    ("path:jit", 6),
    ("path:native,nonnative", 2),
    ("op:dot_general dtype:f32", 8),
    ("grade:identical", 7),
    ("a:divergent", 1),
    ("b:unsupported", 1),
    ("case:*::a", 1),
    ("case:cases/a.yaml", 1),
    ("ulp:>600000", 6),
    ("ulp:none", 1),
    ("because:excess*", 1),
    ("removed", 1),
    ("nowhere", 0),
)
TYPOS = (
    ("dirction:fixed", "no such key (got dirction; allowed is, direction, cause, path,"),
    ("direction:newly-divergnt", "did you mean newly-divergent?"),
    ("path:jitt", "no such path (got jitt; allowed jit, nonnative, native); did you mean jit?"),
    ("ulp:>x", "ulp: not a number (got >x; allowed a number with >"),
)


def test_filters(opened: Opened, found: Any) -> None:
    page = opened(found)
    address = page.url
    for query, rows in FILTERS:
        page.goto(address + linked(q=query))
        expect(page.locator("#q")).to_have_value(query)
        said = page.locator("#said").inner_text()
        assert (query, said.split(" row")[0].removeprefix("all ")) == (query, str(rows))
        assert page.locator("#none").is_visible() is (rows == 0)
        sizes = page.locator(".finding:visible .size").all_inner_texts()
        assert sum(int(size.split()[0]) for size in sizes) == rows


def test_a_typo_says_what_is_allowed(opened: Opened, found: Any) -> None:
    page = opened(found)
    for query, said in TYPOS:
        page.fill("#q", query)
        expect(page.locator("#said")).to_contain_text(said)
        assert page.locator("#q").get_attribute("aria-invalid") == "true"


def test_the_tally_filters(opened: Opened, found: Any) -> None:
    page = opened(found)
    page.get_by_role("button", name="expected").click()
    expect(page.locator("#said")).to_have_text("1 row of 8 in 1 finding")
    assert page.input_value("#q") == "is:expected"
    expect(page.locator(".finding:visible table.rows tbody tr")).to_have_count(1)
    page.get_by_role("button", name="expected").click()
    expect(page.locator("#said")).to_have_text("all 8 rows in 3 findings")


def test_a_copied_link_restores_filter_sort_and_row(opened: Opened, found: Any) -> None:
    page = opened(found)
    page.fill("#q", "path:jit")
    expect(page.locator("#said")).to_contain_text("6 rows of 8")
    page.get_by_role("button", name="case").first.click()
    page.get_by_role("button", name="case").first.click()
    page.locator(".finding table.rows tbody tr").first.click()
    expect(page.locator("#change-title")).to_be_focused()
    title, url = page.locator("#change-title").inner_text(), page.url
    assert title.startswith("cases/f.yaml::f[jit]")
    expect(page.locator("nav.case")).to_contain_text("of 6, the worst first")

    again = opened(found, "#" + url.partition("#")[2])
    expect(again.locator("#change-title")).to_have_text(title)
    again.get_by_role("button", name="← overview").click()
    expect(again.locator("#said")).to_contain_text("6 rows of 8")
    assert again.locator("th[data-key=case]").first.get_attribute("aria-sort") == "descending"
    again.go_back()
    expect(again.locator("#change-title")).to_have_text(title)


def test_all_of_it_can_be_done_with_the_keyboard(opened: Opened, found: Any) -> None:
    page = opened(found)
    page.keyboard.press("Tab")
    expect(page.locator(".skip")).to_be_focused()
    page.keyboard.press("/")
    expect(page.locator("#q")).to_be_focused()
    page.keyboard.type("path:jit")
    expect(page.locator("#said")).to_contain_text("6 rows of 8")
    page.keyboard.press("Escape")
    expect(page.locator("#said")).to_contain_text("all 8 rows")
    rows = page.locator(".finding").first.locator("table.rows tbody tr")
    page.keyboard.press("j")
    page.keyboard.press("j")
    expect(rows.nth(1)).to_be_focused()
    page.keyboard.press("ArrowUp")
    expect(rows.nth(0)).to_be_focused()
    assert rows.nth(0).evaluate("e => getComputedStyle(e).outlineStyle") == "solid"
    for _ in range(6):
        page.keyboard.press("j")
    expect(page.locator(".finding").nth(1).locator("table.rows tbody tr")).to_be_focused()
    page.keyboard.press("k")
    expect(rows.nth(5)).to_be_focused()
    page.keyboard.press("Enter")
    title = page.locator("#change-title")
    expect(title).to_be_focused()
    first = title.inner_text()
    page.keyboard.press("j")
    expect(title).not_to_have_text(first)
    page.keyboard.press("k")
    expect(title).to_have_text(first)
    page.keyboard.press("Escape")
    expect(rows.nth(5)).to_be_focused()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("Keys and filter")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_dark_mode(opened: Opened, found: Any, scheme: str) -> None:
    page = opened(found, linked(row=A), color_scheme=scheme)
    back = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert back == {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 23, 26)"}[scheme]
    removed = page.locator(".program .removed").evaluate("e => getComputedStyle(e).color")
    assert removed == {"light": "rgb(168, 60, 0)", "dark": "rgb(255, 157, 107)"}[scheme]


def test_on_paper_every_row_stands_there(opened: Opened, found: Any) -> None:
    page = opened(found)
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator(".finding table.rows tbody tr:visible").count() == len(found.changes)
    assert page.locator("header .tag:visible").count() == 2
    assert not page.locator("#q").is_visible()
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    folds = page.locator(".finding .every")
    assert folds.evaluate_all("all => all.map(e => e.open)") == [False, True, True]


def test_a_narrow_screen_does_not_scroll_sideways(opened: Opened, found: Any) -> None:
    page = opened(found, viewport={"width": 360, "height": 740})
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    page.goto(page.url + linked(row=A))
    expect(page.locator("#change-title")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") == 360


def test_without_a_script_all_rows_are_there(opened: Opened, found: Any) -> None:
    page = opened(found, wait=False, java_script_enabled=False)
    assert page.locator("h1").inner_text() == "✗ worse"
    for fold in page.locator(".finding:not([open]) > summary").all():
        fold.click()
    for fold in page.locator(".every:not([open]) > summary").all():
        fold.click()
    for finding, fold in zip(found.findings, page.locator(".finding").all(), strict=True):
        rows = fold.locator("noscript table.rows tr:has(td)")
        assert rows.locator("td:first-child").all_inner_texts() == [
            change.case for change in finding.changes
        ]
        assert rows.first.is_visible()
    assert page.locator("#apart").is_visible()
    assert page.locator("#q").count() == 0


def test_nothing_changed_is_a_page_too(
    opened: Opened, pair: tuple[str, str], tmp_path: Path
) -> None:
    page = opened(diff(pair[0], shutil.copy(pair[0], tmp_path)))
    assert page.locator("h1").inner_text() == "✓ ok"
    assert page.locator(".finding").count() == 0
    page.keyboard.press("j")
    page.keyboard.press("/")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("Keys and filter")


def test_a_large_comparison_is_ready_soon(browser: Browser, tmp_path: Path, found: Any) -> None:
    finding = found.findings[0]
    many = tuple(replace(finding.worst, case=f"cases/d.yaml::d:shape={n}x64") for n in range(4000))
    large = replace(found, changes=many, findings=(replace(finding, changes=many),))
    file = tmp_path / "large.html"
    write(diff_page(large), file)
    assert file.stat().st_size < 4 * 2**20
    page = browser.new_page()
    page.goto(file.as_uri())
    page.wait_for_selector("html.ready", state="attached")
    assert page.evaluate("performance.now()") < 1500
    page.close()
