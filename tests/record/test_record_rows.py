"""Rows to JSON and back."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parity.compare.metrics import Element, Metrics
from parity.compare.rows import Row
from parity.compare.shards import ShardError
from parity.record.encoding import dumps, loads
from parity.record.rows import pack_rows, unpack_metrics, unpack_row

integers = st.integers(-(2**64), 2**64)
reals = st.floats() | integers
scalars = st.one_of(st.booleans(), reals, st.complex_numbers(allow_nan=True))
elements = st.builds(
    Element,
    index=st.lists(st.integers(0, 2**40), max_size=3).map(tuple),
    got=scalars,
    want=scalars,
    got_bits=st.sampled_from(["0x7fc0", "0x00000001 0x80000000"]),
    want_bits=st.just("0xffff"),
    ulp=st.none() | reals,
)
optional = st.none() | reals
indices = st.lists(st.integers(0, 2**40), max_size=3).map(tuple)
shards = st.builds(
    ShardError,
    device=st.integers(0, 7),
    start=indices,
    shape=indices,
    replica=st.integers(0, 7),
    differing=st.none() | st.integers(0, 9),
    max_abs=optional,
    max_ulp=optional,
    rms_rel=optional,
    apart=st.integers(0, 9),
    max_apart=optional,
)
metrics = st.builds(
    Metrics,
    **{
        field.name: st.integers(0, 2**40) if field.type == "int" else optional
        for field in dataclasses.fields(Metrics)
        if field.name not in ("histogram", "profile", "worst")
    },
    histogram=st.none() | st.lists(st.integers(0, 2**60), max_size=35).map(tuple),
    profile=st.none()
    | st.lists(
        st.tuples(st.floats(0), st.integers(1, 9), st.floats(0), st.floats(0)), max_size=2
    ).map(tuple),
    worst=st.lists(elements, max_size=2).map(tuple),
)
texts = st.text(max_size=8) | st.sampled_from(["NaN", "Infinity", "-Infinity"])
rows = st.builds(
    Row,
    case=texts,
    path=texts,
    output=texts,
    outcome=st.sampled_from(["ok", "error"]),
    grade=st.none() | st.just("divergent"),
    detail=texts,
    dtype=st.none() | st.just("complex64"),
    shape=st.none() | st.lists(st.integers(0, 9), max_size=3).map(tuple),
    count=st.none() | integers,
    faithful=st.none() | st.booleans(),
    licences=texts,
    bound_share=st.none() | st.floats(),
    vacuous=st.none() | st.floats(),
    own_error=st.none() | st.floats(),
    f64=st.none() | metrics,
    strict=st.none() | metrics,
    baseline=st.none() | metrics,
    message=texts,
    evidence=st.dictionaries(texts, texts, max_size=2),
    timings=st.dictionaries(texts, st.floats(0, 1e9), max_size=2),
    values=st.none() | st.lists(scalars, max_size=3).map(tuple),
    environment=texts,
    shards=st.just(()) | st.tuples(shards),
    replicas=texts,
    nondeterministic=st.booleans(),
    cached=st.booleans(),
)


def spelled(value: Any) -> Any:
    """Everything about a value, the sign of zero, the kind of number and NaN included."""
    if dataclasses.is_dataclass(value):
        return {f.name: spelled(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {key: spelled(of) for key, of in value.items()}
    if isinstance(value, tuple):
        return ("tuple", *map(spelled, value))
    if isinstance(value, complex):
        return ("complex", repr(value.real), repr(value.imag))
    return (type(value).__name__, repr(value))


def through_json(*given: Row) -> list[Row]:
    packed, metrics = pack_rows(given)
    unpacked = [unpack_metrics(loads(text)) for text in metrics]
    return [unpack_row(loads(dumps(row)), unpacked) for row in packed]


@given(rows)
def test_a_row_comes_back_from_json(row: Row) -> None:
    assert spelled(through_json(row)[0]) == spelled(row)


@settings(max_examples=20)
@given(st.lists(rows, max_size=3))
def test_rows_that_share_metrics_come_back(some: list[Row]) -> None:
    some += [dataclasses.replace(row, path="again") for row in some]
    assert list(map(spelled, through_json(*some))) == list(map(spelled, some))


def test_equal_metrics_stand_once() -> None:
    def made(number: int) -> Metrics:
        return Metrics(count=number, excluded=0, nonfinite_want=0, differing=0, pattern=0)

    row = Row(case="c", path="p", output="o", outcome="ok", f64=made(1), strict=made(2))
    other = dataclasses.replace(row, path="q", f64=made(1), baseline=made(2))
    packed, metrics = pack_rows([row, other])
    assert len(metrics) == 2
    assert [(r["f64"], r["strict"], r.get("baseline")) for r in packed] == [(0, 1, None), (0, 1, 1)]


def test_what_is_empty_is_not_written() -> None:
    row = Row(case="c", path="p", output="", outcome="ok")
    assert pack_rows([row]) == ([{"case": "c", "path": "p", "output": "", "outcome": "ok"}], [])


def test_a_message_that_spells_nan_stays_a_message() -> None:
    row = Row(case="c", path="p", output="", outcome="error", message="NaN", vacuous=math.nan)
    (found,) = through_json(row)
    assert found.message == "NaN"
    assert found.vacuous is not None
    assert math.isnan(found.vacuous)


def test_a_word_that_is_no_number_is_refused() -> None:
    with pytest.raises(ValueError, match="could not convert"):
        unpack_row({"values": ["nonsense"]}, [])
