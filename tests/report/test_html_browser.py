"""The report of a run in headless chromium: what people do with it, and what must not happen."""

import os
import re
import shutil
from dataclasses import asdict, replace
from urllib.parse import quote

import ml_dtypes
import numpy as np
import pytest
from playwright.sync_api import expect, sync_playwright

from parity.explain.section import Plot, Section
from parity.report import numbers
from parity.report.html.run import write_run
from parity.worker.protocol import Failure

CHROMIUM = shutil.which("chromium")
OFFLINE = (
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
MARKUP = "</script><script>alert(1)</script><img src=x onerror=alert(1)>\"'<!-- "
HOSTILE = f"{MARKUP}\u202eevil\u2066\x00\x1b[31m"
NAMED = f"{MARKUP}U+202EevilU+2066U+0000U+001B[31m"
CONV = "cases/conv.yaml::conv:compute_dtype=bfloat16"


@pytest.fixture(scope="module")
def browser():
    if CHROMIUM is None:
        if os.environ.get("CI"):
            pytest.fail("chromium is not installed: apt-get install chromium")
        pytest.skip("chromium is not installed")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=list(OFFLINE))
        yield chromium
        chromium.close()


@pytest.fixture
def opened(browser, tmp_path):
    """`opened(run, fragment, **context)`: the report of a run in a page; all must stay quiet."""
    noise, contexts = [], []

    def open_(run, fragment="", *, wait=True, **how):
        file = tmp_path / "report.html"
        write_run(run, file)
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}} | how)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(8000)
        page.on("console", lambda message: noise.append(message.text))
        page.on("pageerror", lambda error: noise.append(str(error)))
        page.on("dialog", lambda dialog: noise.append(f"dialog {dialog.message}"))
        page.on(
            "request",
            lambda request: (
                noise.append(request.url) if not request.url.startswith("file:") else None
            ),
        )
        page.goto(file.as_uri() + fragment)
        if wait:
            page.wait_for_selector("html.ready", state="attached")
        return page

    yield open_
    for context in contexts:
        context.close()
    assert noise == []


def column(page, name):
    """The texts of a column of the table of rows."""
    at = page.locator("table.rows thead th").all_inner_texts()
    number = next(i for i, text in enumerate(at) if re.sub(r"\W+$", "", text) == name)
    return page.locator(f"#table tbody tr td:nth-child({number + 1})").all_inner_texts()


def test_the_header_says_it_all(opened, hundred):
    page = opened(hundred)
    assert page.locator("h1").inner_text() == "✗ findings"
    assert page.locator(".sentence").inner_text() == "5 rows in 5 cases fail the run."
    assert "100 cases, 200 rows: 194 identical, 3 divergent, 2 error at trace, 1 unsupported." in (
        page.locator(".counts").inner_text().replace("\n", " ")
    )
    assert page.locator(".findings li").count() == 2
    assert "parity run cases/dot.yaml" in page.locator("[data-copy]").inner_text()


def test_columns_sort_by_number(opened, hundred):
    page = opened(hundred)
    assert column(page, "status")[:6] == ["finding"] * 5 + ["ok"]
    page.get_by_role("button", name="max ulp").click()
    assert page.locator("th[data-key=max_ulp]").get_attribute("aria-sort") == "descending"
    falling = [float(text) for text in column(page, "max ulp") if text]
    assert falling == sorted(falling, reverse=True)
    assert falling[0] > 1000
    page.get_by_role("button", name="max ulp").click()
    assert page.locator("th[data-key=max_ulp]").get_attribute("aria-sort") == "ascending"
    rising = column(page, "max ulp")
    assert float(rising[0]) == 0
    page.get_by_role("button", name="ulp f64").click()
    page.get_by_role("button", name="show all").click() if page.locator(
        ".rest:visible"
    ).count() else None
    assert column(page, "ulp f64")[-3:] == ["", "", ""]


def test_nan_sorts_beyond_infinity_and_what_is_missing_last(opened, maker):
    results = [
        maker.result(f"cases/n.yaml::n:k={k}", {"eager": {"out": np.float32([1, 1])}, "jit": of})
        for k, of in enumerate(
            [
                {"out": np.float32([1, np.inf])},
                {"out": np.float32([1, 2])},
                {"out": np.float32([1, np.nan])},
                Failure("error", "run", "E", "no"),
            ]
        )
    ]
    page = opened(maker.run(*results), "#q=path%3Ajit&sort=-max_abs")
    assert column(page, "max abs") == ["nan", "inf", "1", ""]
    page.get_by_role("button", name="max abs").click()
    assert column(page, "max abs") == ["1", "inf", "nan", ""]


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("status:finding", 5),
        ("grade:divergent path:jit", 3),
        ("grade:divergent,error", 5),
        ("-grade:identical", 6),
        ("status:finding -grade:error", 3),
        ("ulp:>4", 3),
        ("ulp:none", 3),
        ("dtype:f32 path:eager", 100),
        ("path:ji?", 100),
        ("case:*k=7", 2),
        ("case:cases/dot.yaml", 200),
        ("op:dot_general env:default", 200),
        ("cached:true", 0),
        ("removed", 1),
        ('"cannot do 50"', 1),
        ("share:<0.5 -path:jit faithful:true", 100),
    ],
)
def test_filters(opened, hundred, query, rows):
    page = opened(hundred, f"#q={quote(query, safe='')}")
    assert page.input_value("#q") == query
    assert page.locator("#said").inner_text().split(" row")[0].removeprefix("all ") == str(rows)


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("pth:jit", "no such key (got pth; allowed grade, status, path,"),
        ("grade:divergnt", "did you mean divergent?"),
        ("path:jitt", "no such path (got jitt; allowed eager, jit); did you mean jit?"),
        ("ulp:>x", "ulp: not a number (got >x; allowed a number with >"),
        ("grade:", "grade: needs a value (allowed crashed,"),
    ],
)
def test_a_typo_says_what_is_allowed(opened, hundred, query, said):
    page = opened(hundred)
    page.fill("#q", query)
    expect(page.locator("#said")).to_contain_text(said)
    assert page.locator("#q").get_attribute("aria-invalid") == "true"


def test_a_copied_link_restores_filter_sort_and_case(opened, hundred):
    page = opened(hundred)
    page.fill("#q", "grade:divergent")
    expect(page.locator("#said")).to_contain_text("3 rows of 200")
    page.get_by_role("button", name="max ulp").click()
    page.locator("#table tbody tr").first.click()
    expect(page.locator("#case-title")).to_be_focused()
    title, url = page.locator("#case-title").inner_text(), page.url
    assert page.locator("nav.case").inner_text().count("of 3") == 1

    again = opened(hundred, "#" + url.partition("#")[2])
    expect(again.locator("#case-title")).to_have_text(title)
    again.get_by_role("button", name="← overview").click()
    expect(again.locator("#said")).to_contain_text("3 rows of 200")
    assert again.locator("th[data-key=max_ulp]").get_attribute("aria-sort") == "descending"
    again.go_back()
    expect(again.locator("#case-title")).to_have_text(title)


def test_all_of_it_can_be_done_with_the_keyboard(opened, hundred):
    page = opened(hundred)
    page.keyboard.press("Tab")
    expect(page.locator(".skip")).to_be_focused()
    page.keyboard.press("/")
    expect(page.locator("#q")).to_be_focused()
    page.keyboard.type("status:finding")
    expect(page.locator("#said")).to_contain_text("5 rows of 200")
    page.keyboard.press("Escape")
    expect(page.locator("#said")).to_contain_text("all 200 rows")
    page.keyboard.press("j")
    page.keyboard.press("j")
    expect(page.locator("#table tbody tr:nth-child(2)")).to_be_focused()
    page.keyboard.press("ArrowUp")
    expect(page.locator("#table tbody tr:nth-child(1)")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#case-title")).to_be_focused()
    first = page.locator("#case-title").inner_text()
    page.keyboard.press("j")
    expect(page.locator("#case-title")).not_to_have_text(first)
    page.keyboard.press("k")
    expect(page.locator("#case-title")).to_have_text(first)
    page.keyboard.press("Escape")
    expect(page.locator("#table tbody tr:nth-child(1)")).to_be_focused()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("Keys and filter")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_the_arrow_keys_walk_through_the_heatmap(opened, hundred):
    page = opened(hundred)
    assert page.locator(".grid [tabindex='0']").count() == 1
    page.locator(".grid button.fold").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    focused = page.locator(":focus")
    assert focused.get_attribute("aria-label").startswith("jit: identical, ")
    for _ in range(7):
        page.keyboard.press("ArrowDown")
    assert focused.get_attribute("aria-label").startswith("jit: divergent, finding, ")
    assert page.locator(".grid [tabindex='0']").count() == 1
    assert focused.evaluate("e => getComputedStyle(e).outlineStyle") == "solid"
    page.keyboard.press("Enter")
    expect(page.locator("#case-title")).to_have_text("cases/dot.yaml::dot:k=7")
    page.keyboard.press("Escape")
    page.locator(".grid button.fold").focus()
    page.keyboard.press("ArrowLeft")
    assert page.locator(".grid [data-case]").count() == 0
    assert page.locator(".grid button.fold").get_attribute("aria-expanded") == "false"


def test_a_case_shows_all_that_is_known(opened, maker, founding):
    page = opened(maker.run(founding), f"#case={quote(CONV, safe='')}")
    view = page.locator("#case")
    expect(page.locator("#case-title")).to_have_text(CONV)
    row = next(row for row in founding.rows if row.path == "jit")
    errors = page.locator("table.errors")
    for name, label in (("max_ulp", "max ulp"), ("rms_rel", "rms rel"), ("cosine", "cosine")):
        cells = errors.locator("tr", has=page.locator(f"th:text-is('{label}')")).locator("td")
        wanted = getattr(row.f64, name)
        titles = cells.evaluate_all("all => all.map(e => e.title)")
        assert any(title != "nothing to measure" and float(title) == wanted for title in titles)
        assert numbers.metric(wanted) in cells.all_inner_texts()
    worst = row.baseline.worst[0]
    bits = f"{int(worst.got_bits, 16):032b}"
    shown = view.locator("table.worst tbody tr").first.locator(".bits").first
    assert shown.locator("span").all_inner_texts() == [bits[0], bits[1:9], bits[9:]]
    want = f"{int(worst.want_bits, 16):032b}"
    marked = "".join(shown.locator("mark").all_inner_texts())
    assert marked == "".join(a for a, b in zip(bits, want, strict=True) if a != b)
    text = view.inner_text()
    assert "{eager, nonnative, strict}" in text
    assert "because excess-precision" in text
    assert "compute_dtype" in view.locator("pre.yaml").inner_text() or "op: dot_general" in text
    assert (
        view.locator("a[href='https://example.org/1']")
        .first.get_attribute("rel")
        .startswith("noreferrer")
    )
    assert view.locator("svg.chart").count() == 2
    assert "jit, native" in view.locator("svg.chart desc").first.text_content()
    assert view.locator("svg.chart .line-1").count() >= 1


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float8_e4m3fn", "float64"])
def test_elements_are_as_short_as_they_can_be(opened, maker, dtype):
    kind = np.dtype(getattr(ml_dtypes, dtype, None) or dtype)
    drawn = np.random.default_rng(0).standard_normal(12) * np.exp2(np.arange(-6.0, 6.0))
    values = np.array([*drawn, 0.0, 1.0, 0.25, 2.0], np.float64).astype(kind)
    result = maker.result("cases/v.yaml::v", {"eager": {"out": values}})
    page = opened(maker.run(result), "#case=" + quote("cases/v.yaml::v", safe=""))
    shown = page.locator(".values").first.inner_text().strip("[]").split(", ")
    back = np.array([float(text) for text in shown]).astype(kind)
    assert back.tobytes() == values.tobytes()
    longest = [len(numbers.element(float(v), dtype).strip("0")) for v in values]
    if dtype != "float64":
        assert all(len(a.strip("0")) <= n + 1 for a, n in zip(shown, longest, strict=True))


def test_failures_show_stage_message_and_stderr(opened, maker):
    stderr = "W0000 one\nFatal Python error: Segmentation fault"
    failure = Failure("crashed", "run", "SIGSEGV", "the worker died", stderr)
    result = maker.result("cases/c.yaml::c", {"eager": {"out": np.ones(2)}, "jit": failure})
    page = opened(maker.run(result), "#case=" + quote("cases/c.yaml::c", safe=""))
    shown = page.locator(".failure").inner_text()
    assert "jit: crashed at run: SIGSEGV" in shown
    assert stderr in shown


def test_the_command_is_quoted_for_the_shell(opened, maker):
    import shlex

    case = "cases/it's here.yaml::c"
    result = maker.result(case, {"eager": {"out": np.ones(2)}})
    page = opened(
        maker.run(result),
        f"#case={quote(case, safe='')}",
        permissions=["clipboard-read", "clipboard-write"],
    )
    page.get_by_role("button", name="copy command").click()
    expect(page.get_by_role("button", name="copied")).to_be_visible()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert shlex.split(copied) == ["parity", "run", f"{case}[eager]"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_dark_mode(opened, hundred, scheme):
    page = opened(hundred, color_scheme=scheme)
    back = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert back == {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 23, 26)"}[scheme]


def test_reduced_motion(opened, hundred):
    page = opened(hundred, reduced_motion="reduce")
    assert (
        page.evaluate("getComputedStyle(document.querySelector('button')).transitionDuration")
        == "0s"
    )


def test_print_shows_what_was_open_and_no_controls(opened, maker, founding):
    page = opened(maker.run(founding), f"#case={quote(CONV, safe='')}", color_scheme="dark")
    expect(page.locator("#case-title")).to_be_visible()
    page.emulate_media(media="print")
    assert page.locator("button:visible, nav:visible, .skip:visible, input:visible").count() == 0
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.locator("#case table.errors").is_visible()
    assert page.locator("#case pre.yaml").is_visible()
    assert page.pdf()[:5] == b"%PDF-"


def test_print_of_the_overview_has_headings_and_every_case(opened, hundred):
    page = opened(hundred)
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator(".grid [data-case]").count() == 100
    assert page.locator(".grid button.fold").is_visible()
    assert page.locator("th[data-key=max_ulp]").inner_text().strip() == "max ulp"
    assert page.locator("#q:visible, .copy:visible, .more:visible").count() == 0


def test_without_javascript_it_can_be_read(opened, hundred):
    page = opened(hundred, java_script_enabled=False, wait=False)
    assert page.locator("h1").inner_text() == "✗ findings"
    assert page.locator(".environments").inner_text().count("0.7.1") == 1
    static = page.locator("#rows table.rows")
    assert static.locator("tbody").count() == 6
    assert static.get_by_text("error at trace").count() == 2
    assert static.get_by_text("removed in JAX 0.7.2").count() == 1
    cells = page.locator("table.cells td")
    assert cells.count() == 200
    assert set(cells.all_inner_texts()) == {"=", "B", "E", "≠", "–"}


@pytest.mark.parametrize("width", [1280, 360])
def test_it_fits_and_nothing_shifts(opened, hundred, width):
    page = opened(hundred, viewport={"width": width, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    shifted = page.evaluate(
        "new Promise(done => new PerformanceObserver(list => done(list.getEntries()"
        ".reduce((sum, entry) => sum + entry.value, 0)))"
        ".observe({type: 'layout-shift', buffered: true})"
        " || setTimeout(() => done(0), 300))"
    )
    assert shifted < 0.01
    page.locator("#table tbody tr").first.click()
    expect(page.locator("#case-title")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.fixture
def hostile(maker):
    case = f"cases/{HOSTILE}.yaml::{HOSTILE}"
    failure = Failure("error", "run", HOSTILE, f"{HOSTILE}\n{'x' * 10_000}", f"{HOSTILE}\r\n\ttail")
    expectation = maker.expectation(HOSTILE, "divergent", HOSTILE, link="javascript:alert(1)")
    made = {
        "eager": {HOSTILE: np.float32([1, 2])},
        HOSTILE: {HOSTILE: np.float32([1, 3])},
        "jit": failure,
    }
    same = {HOSTILE: np.float64([1, 2])}
    strict = {HOSTILE: np.float32([1, 2])}
    result = maker.result(case, made, f64=same, strict=strict, expect=[expectation], about=HOSTILE)
    return maker.run(result)


@pytest.mark.parametrize("script", [True, False])
@pytest.mark.parametrize("width", [1280, 360])
def test_hostile_text_is_text(opened, hostile, script, width):
    case = hostile.cases[0].case.id
    page = opened(
        hostile,
        f"#case={quote(case, safe='')}" if script else "",
        wait=script,
        java_script_enabled=script,
        viewport={"width": width, "height": 900},
    )
    if script:
        expect(page.locator("#case-title")).to_have_text(f"cases/{NAMED}.yaml::{NAMED}")
        assert page.locator(".about").inner_text() == NAMED
        assert page.locator(".failure pre").first.inner_text() == f"{NAMED}\n{'x' * 10_000}"
        assert page.locator(".stderr").inner_text() == f"{NAMED}U+000D\n\ttail"
        page.keyboard.press("Escape")
        expect(page.locator("#overview")).to_be_visible()
    assert page.locator("body").inner_text().count(NAMED) > 5
    if script:
        raw = page.evaluate("document.body.innerText")
        assert re.findall("[\u202a-\u202e\u2066-\u2069\x00\x1b]", raw) == []
        assert page.locator("img").count() == 0
        assert (
            page.evaluate(
                "[...document.links].filter(a => !/^(https?|file):/.test(a.protocol)).length"
            )
            == 0
        )
        assert page.evaluate("document.documentElement.scrollWidth") <= width


LONG = "lhs.dtype=float8_e4m3fn,rhs.dtype=float8_e4m3fn,preferred_element_type=float32"


@pytest.fixture
def wide(maker):
    """A case with all columns: outputs of few elements, a model, an expectation with a link."""
    link = "https://example.org/issues/25873"
    expect = [maker.expectation("native", "divergent", "excess-precision", link=link)]
    one, off = {"out": np.float32([-1.3705847, -2.27708])}, {"out": np.float32([-1.371, -2.2845])}
    return maker.run(
        *(
            maker.result(
                f"cases/a.yaml::a:{LONG},k={k}",
                {"eager": one, "native": off},
                f64={"out": np.float64([-1.371, -2.284])},
                expect=expect,
            )
            for k in (1, 2)
        )
    )


@pytest.mark.parametrize("width", [1400, 600])
def test_a_command_to_run_again_is_in_sight(opened, wide, width):
    case = f"cases/a.yaml::a:{LONG},k=1"
    page = opened(wide, f"#case={quote(case, safe='')}", viewport={"width": width, "height": 900})
    buttons = page.get_by_role("button", name="copy command")
    assert buttons.count() == 2
    table = page.locator(".scroll:has(> table.paths)").bounding_box()
    for button in buttons.all():
        box = button.bounding_box()
        assert table["x"] <= box["x"]
        assert box["x"] + box["width"] <= min(width, table["x"] + table["width"])
    cards = page.locator("table.paths tbody tr").first.evaluate(
        "one => getComputedStyle(one).display"
    )
    assert cards == ("table-row" if width == 1400 else "block")


def test_long_names_in_the_heatmap_stay_apart_on_a_narrow_screen(opened, wide):
    page = opened(wide, viewport={"width": 600, "height": 900})
    cut = "one => one.scrollWidth > one.clientWidth || one.scrollHeight > one.clientHeight"
    names = page.locator(".grid [data-case] > .id")
    assert names.count() == 2
    assert [name.evaluate(cut) for name in names.all()] == [False, False]


def test_a_cached_row_is_no_warning(opened, maker):
    made = maker.result("cases/a.yaml::a", {"eager": {"out": np.ones(2)}})
    rows = tuple(replace(row, cached=True) for row in made.rows)
    page = opened(maker.run(replace(made, rows=rows)), "#case=cases%2Fa.yaml%3A%3Aa")
    expect(
        page.locator("table.paths").get_by_text("cached: taken from an earlier run")
    ).to_have_class("dim")


def test_what_each_device_holds_is_a_table(opened, maker, divided):
    page = opened(maker.run(divided), f"#case={quote(divided.case.id, safe='')}")
    tables = page.locator("table.devices")
    expect(tables).to_have_count(2)
    first = tables.nth(0).locator("tbody tr")
    assert first.nth(1).locator("td").all_inner_texts() == [
        "eager", "1", "[2:4]", "0", "0", "4", "1.258e+07", "1", "0", "–",
    ]  # fmt: skip
    assert tables.nth(1).locator("tbody tr").nth(1).locator("td").all_inner_texts()[-2:] == [
        "1",
        "0.5",
    ]


def test_an_explanation_has_its_sentences_its_table_and_its_plot(opened, maker, founding):
    plot = Plot("relative rms error", ("0 mul", "1 add", "2 tanh"), {"jit": (0.001, None, 0.1)})
    parts = [
        Section("Attribution", (HOSTILE,), ("model", "ruled out by"), (("wide", "2 of 2"),)),
        Section("Localisation", ("leaves at model.py:3",), plot=plot),
        Section("What was compiled", code=(("HLO", "-old\n+new"),)),
    ]
    why = {"headline": "jit: wide", "against": "eager", "sections": list(map(asdict, parts))}
    rows = tuple(
        replace(row, explanation=why) if row.path == "jit" else row for row in founding.rows
    )
    page = opened(maker.run(replace(founding, rows=rows)), f"#case={quote(CONV, safe='')}")
    section = page.locator("section", has=page.locator("h3", has_text="Why jit differs from eager"))
    expect(section).to_contain_text("jit: wide")
    expect(section.locator("li").first).to_have_text(NAMED)
    assert section.locator("table.explanation td").all_inner_texts() == ["wide", "2 of 2"]
    described = section.locator("svg.chart desc").text_content()
    assert described == "jit: 0.001 at 0 mul, 0.1 at 2 tanh"
    assert section.locator("svg.chart .marker").count() == 2
    section.locator("summary", has_text="What was compiled").click()
    expect(section.locator("pre")).to_have_text("-old\n+new")
