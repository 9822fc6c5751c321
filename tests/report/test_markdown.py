"""Against markdown-it, another implementation of CommonMark and of GitHub's tables."""

from __future__ import annotations

import html
import re
from xml.etree import ElementTree

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from parity.report.html.characters import spelled
from parity.report.markdown import LONGEST, code, cut, escaped, link, table_line

HOSTILE = (
    "`code` ``more`` ```",
    "a | b \\| c \\\\| d",
    "<script>alert(1)</script> <!-- --> </details>",
    "*strong* _weak_ ~~gone~~ [a](https://example.org) ![i](x)",
    "&lt; &#64; &amp;",
    "trailing \\",
    "# title",
    "- item",
    "1. item",
    "1) item",
    "> quote",
    "+ item",
    "=== ",
    "$x$ and $$y$$",
    "first\n\nsecond\n| a |\n|---|\n",
    "http://example.org/a_b_c www.example.org",
)


def parser() -> MarkdownIt:
    return MarkdownIt("commonmark", {"html": True}).enable("table")


def rendered(text: str) -> ElementTree.Element:
    return ElementTree.fromstring(f"<root>{parser().render(text)}</root>")


def shown(element: ElementTree.Element) -> str:
    return "".join(element.itertext()).replace("\u200b", "").strip("\n")


def wanted(text: str) -> str:
    return spelled(" ".join(text.split()))


short = st.text(st.characters(codec="utf-8"), max_size=60) | st.text(
    st.sampled_from("`|\\<>&*_[]()~$@#:-+=.!1a/ \n"), max_size=30
)


def check_paragraph(text: str) -> None:
    (paragraph,) = rendered(f"{escaped(text)}\n") if wanted(text) else [ElementTree.Element("p")]
    assert (paragraph.tag, len(paragraph)) == ("p", 0)
    assert shown(paragraph) == wanted(text)


def check_cell(text: str, made: str, tags: set[str]) -> None:
    table = rendered(table_line(["h", "h"]) + table_line(["---"] * 2) + table_line([made, "end"]))
    cells = table.findall(".//td")
    assert [shown(cell) for cell in cells] == [wanted(text), "end"]
    assert {child.tag for child in cells[0].iter()} <= {"td"} | tags


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_is_shown_as_it_is(text: str) -> None:
    check_paragraph(text)
    check_cell(text, escaped(text), set())
    check_cell(text, code(text, table=True), {"code"})
    (paragraph,) = rendered(f"### {code(text)}\n")
    assert [child.tag for child in paragraph] == ["code"]
    assert shown(paragraph) == wanted(text)


@given(short)
@example("|")
@example("\\|")
def test_any_text_is_shown_as_it_is(text: str) -> None:
    check_paragraph(text)
    check_cell(text, escaped(text), set())
    check_cell(text, code(text, table=True), {"code"})


@pytest.mark.parametrize(
    ("text", "broken"),
    [
        ("ping @octocat and a@b", r"@(?!&)"),
        ("fixes #12, gh-7", "#12|gh-7"),
        ("see https://example.org/a", "://"),
        ("www.example.org", r"www\."),
        (":tada: a:b", ":tada:"),
        ("$x$", r"\$"),
    ],
)
def test_what_github_reads_beyond_markdown_is_broken_up(text: str, broken: str) -> None:
    """Mentions, references, links, emoji and mathematics; no parser of them is at hand."""
    assert re.search(broken, text)
    assert not re.search(broken, escaped(text))
    assert html.unescape(escaped(text)).replace("\u200b", "").replace("\\", "") == text


def test_invisible_characters_are_named() -> None:
    assert escaped("a\u202eb\x00\u200b") == "a⟨U+202E⟩b⟨U+0000⟩⟨U+200B⟩"
    assert code("a\u202eb") == "`a⟨U+202E⟩b`"


def test_a_long_text_is_cut_and_says_by_how_much() -> None:
    assert cut("x" * LONGEST) == "x" * LONGEST
    assert cut("x" * (LONGEST + 7)) == "x" * LONGEST + "… (7 more characters)"


@pytest.mark.parametrize(
    ("address", "href"),
    [
        ("https://example.org/a?b=c#d", "https://example.org/a?b=c#d"),
        ("https://example.org/a_(b)|c`", "https://example.org/a%5F%28b%29%7Cc%60"),
        ("javascript:alert(1)", None),
        ("https://example.org/ a", None),
        (None, None),
    ],
)
def test_only_addresses_of_the_web_are_links(address: str | None, href: str | None) -> None:
    (paragraph,) = rendered(link("*why*", address))
    anchor = paragraph.find("a")
    assert (None if anchor is None else anchor.get("href")) == href
    assert shown(paragraph) == ("*why*" if href or not address else f"*why* ({address})")


def test_nothing_is_no_code() -> None:
    assert code("") == code(" \n") == ""
