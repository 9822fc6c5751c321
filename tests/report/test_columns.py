from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.text import Text

from parity.report.columns import Column, layout


def column(head: tuple[str, str], *cells: str, right: bool = False) -> Column:
    return Column(head, [Text(cell) for cell in cells], right=right)


TABLE = [
    column(("", "path"), "eager", "jit"),
    column(("", "grade"), "baseline", "divergent"),
    column(("max abs", "vs eager"), "", "0.5", right=True),
    column(("max ulp", "vs eager"), "", "3", right=True),
    column(("max abs", "vs f64"), "0.25", "0.75", right=True),
]


def plain(width: int | None, indent: int = 0) -> str:
    return "\n".join(line.plain for line in layout(TABLE, width, indent=indent))


def test_without_a_limit_all_stands_side_by_side() -> None:
    assert plain(None) == (
        "                   max abs   max ulp  max abs\n"
        "path   grade      vs eager  vs eager   vs f64\n"
        "eager  baseline                          0.25\n"
        "jit    divergent       0.5         3     0.75"
    )


def test_what_does_not_fit_continues_below_beside_the_first_column() -> None:
    assert plain(38) == (
        "                   max abs   max ulp\n"
        "path   grade      vs eager  vs eager\n"
        "eager  baseline\n"
        "jit    divergent       0.5         3\n"
        "\n"
        "       max abs\n"
        "path    vs f64\n"
        "eager     0.25\n"
        "jit       0.75"
    )


def test_columns_of_one_kind_stay_together() -> None:
    assert plain(35) == (
        "path   grade\n"
        "eager  baseline\n"
        "jit    divergent\n"
        "\n"
        "        max abs   max ulp  max abs\n"
        "path   vs eager  vs eager   vs f64\n"
        "eager                         0.25\n"
        "jit         0.5         3     0.75"
    )


def test_an_indent_counts_as_width() -> None:
    assert plain(37, indent=2).splitlines()[0] == "  path   grade"


@given(
    cells=st.lists(
        st.lists(st.text("abcäß漢字🙂x", min_size=1, max_size=8), min_size=3, max_size=3),
        min_size=2,
        max_size=8,
    ),
    width=st.integers(1, 60),
)
def test_nothing_is_lost_and_no_line_is_longer_than_it_must_be(
    cells: list[list[str]], width: int
) -> None:
    columns = [column((f"a{n}", f"b{n // 2}"), *of) for n, of in enumerate(cells)]
    lines = layout(columns, width)
    shown = sorted(word for line in lines for word in line.plain.split())
    wanted = sorted(word for of in cells[1:] for word in of)
    assert all(shown.count(word) >= wanted.count(word) for word in wanted)
    pair = max(columns[0].width + 2 + other.width for other in columns[1:])
    assert max(line.cell_len for line in lines) <= max(width, pair)


@pytest.mark.parametrize("width", [None, 20])
def test_styles_survive(width: int | None) -> None:
    columns = [column(("", "a"), "x"), Column(("", "b"), [Text("red", style="red")])]
    last = layout(columns, width)[-1]
    assert [(last.plain[s.start : s.end], str(s.style)) for s in last.spans] == [("red", "red")]
