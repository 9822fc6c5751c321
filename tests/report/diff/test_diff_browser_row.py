"""A row of a comparison in headless chromium, opened; and that hostile text stays text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import Page, expect

from parity.program.spec import OperandSpec, ProgramSpec
from parity.report import numbers
from parity.report.diff import wording
from parity.report.diff.compare import diff
from parity.report.html.changes import Changes

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(1)>\"'<!-- \u202eevil\x1b[31m"
SHOWN = "</script><script>alert(1)</script><img src=x onerror=alert(1)>\"'<!-- U+202EevilU+001B[31m"
A = "cases/a.yaml::a[jit]"
Opened = Callable[..., Page]


def linked(**state: str) -> str:
    return "#" + "&".join(f"{name}={quote(value, safe='')}" for name, value in state.items())


def test_a_row_shows_both_sides(opened: Opened, found: Any) -> None:
    page = opened(found, linked(row=A))
    change = next(c for c in found.changes if wording.row_id(c) == A)
    view = page.locator("#change")
    expect(page.locator("#change-title")).to_have_text(f"{A} float32[2]")
    lines = {
        cells[0]: cells[1:]
        for cells in view.locator("table.sides tbody tr").evaluate_all(
            "all => all.map(tr => [...tr.children].map(e => e.textContent.trim()))"
        )
    }
    assert lines["grade"] == ["= identical", "≠ divergent", "changed"]
    assert lines["faithful, as declared"] == ["yes", "no", "changed"]
    wanted = [numbers.metric(side.f64.max_ulp) for side in (change.a, change.b)]
    assert lines["max ulp, against f64"][:2] == wanted
    cells = view.locator("table.worst tbody td")
    assert cells.all_inner_texts()[:5] == ["[1]", "1048576", "4.0", "4.5", "4"]
    bits = view.locator("table.worst .bits")
    # 4 is 2^2 and 4.5 is 2^2 * 1.125
    assert bits.nth(0).locator("span").all_inner_texts() == ["0", "10000001", "0" * 23]
    assert bits.nth(1).locator("span").all_inner_texts() == ["0", "10000001", "001" + "0" * 20]
    assert bits.nth(1).locator("mark").all_inner_texts() == ["1"]
    assert view.locator("svg.chart").count() == 3
    about = view.locator("svg.chart desc").first.text_content()
    assert about is not None
    assert about.startswith("A: 2 at 0 ulp. B: 1 at 0 ulp")
    program = view.locator("pre.program")
    assert program.inner_text().splitlines()[1:] == [" add", "-mul a", "+mul b"]
    assert program.locator(".removed").inner_text().strip() == "-mul a"
    assert program.locator(".added").inner_text().strip() == "+mul b"
    evidence = view.locator("table.evidence tbody tr").all_inner_texts()
    assert [line.split("\t")[:2] for line in evidence] == [
        ["StableHLO", "the same"],
        ["optimized HLO", "differs"],
        ["bits of the output", "differs"],
    ]


def test_the_commands_are_quoted_for_the_shell(opened: Opened, pair: tuple[str, str]) -> None:
    found = diff(*pair)
    side = replace(found.b, environment="the new one")
    page = opened(
        replace(found, b=side),
        linked(row=A),
        permissions=["clipboard-read", "clipboard-write"],
    )
    codes = page.locator("#change .facts .wide code").all_inner_texts()
    assert codes[0] == f"parity run '{A}'"
    assert codes[1] == f"parity run '{A}' --env 'the new one'"
    assert codes[2].startswith(f"parity diff {pair[0]} {pair[1]} --a default --b 'the new one' ")
    assert codes[2].endswith("--case cases/a.yaml::a --path jit -v")
    page.locator("#change .facts .wide button").first.click()
    expect(page.get_by_role("button", name="copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == f"parity run '{A}'"


def test_an_expectation_and_a_failure_are_said(opened: Opened, found: Any) -> None:
    page = opened(found, linked(row="cases/known.yaml::known[native]"))
    words = page.locator("#change .words")
    expect(words).to_contain_text("expected in B, because excess-precision (https://x.org/1)")
    page = opened(found, linked(row="cases/lost.yaml::lost[nonnative]"))
    expect(page.locator("#change .words")).to_contain_text("B: unsupported: removed in JAX 0.7.2")


def test_a_row_that_is_not_there_is_said(opened: Opened, found: Any) -> None:
    page = opened(found, linked(row="cases/none.yaml::none[jit]"))
    expect(page.locator("#change-title")).to_have_text("No such row in this report")


def test_rows_without_details_say_how_to_get_them(
    opened: Opened, found: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    changes = Changes(found, whole=3)
    monkeypatch.setattr("parity.report.html.diff.Changes", lambda _: changes)
    page = opened(found, linked(row="cases/f.yaml::f[jit]"))
    view = page.locator("#change")
    expect(view).to_contain_text("of the worst rows of each finding alone are in this file")
    expect(view).to_contain_text("A to B: 1 of 2 elements differ, by at most 0.5 (1048576 ulp)")
    expect(view.locator("table.sides")).to_contain_text("identical")
    expect(view).to_contain_text("--case cases/f.yaml::f --path jit -v")


def test_hostile_text_is_text(opened: Opened, maker: Any) -> None:
    def results(new: bool) -> Any:
        op = ProgramSpec(f"op{HOSTILE}", (OperandSpec("lhs", (2,), "float32"),))
        case = maker.case(id=f"cases/{HOSTILE}.yaml::c", program=op, paths=("jit",))
        evidence = maker.evidence(stablehlo=str(int(new)))
        values = [3, 4.5] if new else [3, 4]
        known = {
            "status": "expected",
            "because": HOSTILE,
            "link": f"javascript:alert(1)//{HOSTILE}",
            "detail": HOSTILE,
        }
        gave = maker.gave(values, "divergent", output=HOSTILE, evidence=evidence, **known)
        texts = {str(int(new)): f"{HOSTILE}\n{'x' * 10_000}{new}"}
        failed = maker.failed("error", said=HOSTILE) if new else maker.gave([1], output="o")
        yield maker.result(case, {"jit": gave, HOSTILE: failed}, f64=[3.0, 4.0], texts=texts)

    runs = [
        maker.record(
            name, *results(new), facts={"default": {HOSTILE: HOSTILE * new, "cpu": "x" * new}}
        )
        for name, new in (("HA", False), ("HB", True))
    ]
    found = diff(*runs)
    page = opened(found)
    assert page.locator("img, iframe, a[href^='javascript']").count() == 0
    first, second = (page.locator(".finding").nth(n) for n in (0, 1))
    expect(first.locator("h4")).to_have_text(f"worse new error: op{SHOWN} on {SHOWN}")
    expect(second.locator("p").first).to_contain_text(f"({f'javascript:alert(1)//{SHOWN}'})")
    row = next(wording.row_id(c) for c in found.changes if c.direction != "new error")
    page = opened(found, linked(row=row))
    expect(page.locator("#change-title")).to_contain_text(f"cases/{SHOWN}.yaml::c[jit] {SHOWN}")
    program = page.locator("pre.program")
    expect(program).to_contain_text(SHOWN)
    expect(program).to_contain_text("characters more")
    expect(page.locator("#change .words")).to_contain_text(SHOWN)
    assert page.locator("img, iframe, a[href^='javascript']").count() == 0
    scripts = page.locator("script:not([type])")
    assert scripts.count() == 1
