"""Values as YAML: what is written is read back, by another parser than ours."""

from __future__ import annotations

import datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from parity.casefile import emit

scalars = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=12),
    st.text("?:-#,[]{}&*!|>'\"%@` \n\tax1.", max_size=6),
    st.integers(),
    st.floats(allow_nan=False),
    st.booleans(),
    st.none(),
    st.dates(),
)


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("excess-precision", "excess-precision"),
        (">=2.18", '">=2.18"'),
        ("1", '"1"'),
        ("a: b", '"a: b"'),
        ('a: "b"', "'a: \"b\"'"),
        ("two\nlines", '"two\\U0000000alines"'),
        (r"\d+", r"\d+"),
        (datetime.date(2026, 1, 31), "2026-01-31"),
        ([1, ["a", None]], "[1, [a, null]]"),
        ({"k": [True, 1e-05]}, "{k: [true, 1e-05]}"),
    ],
)
def test_in_the_style_of_the_case_files(value: object, written: str) -> None:
    assert emit.field("k", value) == f"k: {written}"
    assert emit.flow({"k": value}) == f"{{k: {written}}}"


@settings(max_examples=200, deadline=None)
@given(scalars)
def test_what_is_written_is_read_back(value: object) -> None:
    for text, wanted in [
        (emit.field("k", value), {"k": value}),
        (emit.flow([value, {"k": value}]), [value, {"k": value}]),
    ]:
        assert len(text.splitlines()) == 1
        found = YAML(typ="safe", pure=True).load(text)
        assert found == wanted
        assert repr(found) == repr(wanted)
