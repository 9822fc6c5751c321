"""Causes are read from evidence and from nothing else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from parity.report.diff.causes import CAUSES, cause_of


def test_what_was_expected_of_a_failure_that_is_over_is_its_cause(maker: Any) -> None:
    known = {"status": "expected", "because": "no kernel"}
    a, b = (maker.row("jit", made) for made in (maker.failed(said="cannot"), maker.gave([1])))
    assert cause_of(a, b, same=False).why == "E: cannot"
    assert cause_of(replace(a, **known), b, same=False).why == "expected in A, because no kernel"
    assert cause_of(b, replace(a, **known), same=False).why == "E: cannot"


def test_the_node_of_a_graph_is_no_cause(maker: Any) -> None:
    failed = maker.failed(said="{{function_node __wrapped__X_device_/job:localhost}} no kernel")
    a, b = (maker.row("jit", made) for made in (maker.gave([1]), failed))
    assert cause_of(a, b, same=False).why == "E: no kernel"


def cause(maker: Any, a: dict[str, str], b: dict[str, str]) -> tuple[str, str]:
    rows = [
        maker.row("jit", maker.gave([value], evidence=maker.evidence(**of)))
        for value, of in ((1, a), (2, b))
    ]
    found = cause_of(*rows, same=False)
    assert found.cause in CAUSES
    return found.cause, found.why


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ({"stablehlo": "s", "hlo": "h"}, {"stablehlo": "t", "hlo": "i"}, "lowering changed"),
        ({"stablehlo": "s", "hlo": "h"}, {"stablehlo": "t", "hlo": "h"}, "lowering changed"),
        ({"stablehlo": "s"}, {"stablehlo": "t", "hlo": "h"}, "lowering changed"),
        ({"graph": "g"}, {"graph": "h"}, "lowering changed"),
        ({"stablehlo": "s", "hlo": "h"}, {"stablehlo": "s", "hlo": "i"}, "compiler changed"),
        (
            {"stablehlo": "s", "hlo": "h"},
            {"stablehlo": "s", "hlo": "h"},
            "runtime, kernel or host changed",
        ),
    ],
)
def test_evidence_of_both_sides(
    maker: Any, a: dict[str, str], b: dict[str, str], expected: str
) -> None:
    assert cause(maker, a, b) == (expected, "")


@pytest.mark.parametrize(
    ("a", "b", "expected", "why"),
    [
        (
            {"stablehlo": "s"},
            {"stablehlo": "s"},
            "compiler or runtime changed",
            "no optimized HLO to compare",
        ),
        (
            {"stablehlo": "s"},
            {"stablehlo": "s", "hlo": "h"},
            "compiler or runtime changed",
            "no optimized HLO to compare in A",
        ),
        (
            {"graph": "g"},
            {"graph": "g"},
            "compiler or runtime changed",
            "no optimized HLO to compare",
        ),
        ({}, {}, "cause not known", "no StableHLO or TensorFlow operations to compare"),
        (
            {"stablehlo": "s", "hlo": "h"},
            {},
            "cause not known",
            "no StableHLO or TensorFlow operations to compare in B",
        ),
        (
            {"hlo": "h"},
            {"hlo": "h"},
            "cause not known",
            "no StableHLO or TensorFlow operations to compare",
        ),
        (
            {"stablehlo": "s"},
            {"graph": "g"},
            "cause not known",
            "A and B have evidence of different kinds (StableHLO or TensorFlow operations)",
        ),
    ],
)
def test_missing_evidence_is_said(
    maker: Any, a: dict[str, str], b: dict[str, str], expected: str, why: str
) -> None:
    assert cause(maker, a, b) == (expected, why)


def test_of_the_same_bits_there_is_nothing_to_read(maker: Any) -> None:
    a, b = (maker.row("jit", maker.gave([1], evidence=maker.evidence(stablehlo=s))) for s in "st")
    assert cause_of(a, b, same=True).cause == "same bits"


def test_a_failure_says_why_itself(maker: Any) -> None:
    value = maker.row("jit", maker.gave([1]))
    error = maker.row("jit", maker.failed("error", type="TypeError", said="no\nmore"))
    missing = maker.row("jit", maker.failed("unsupported", type="Unsupported", said="removed"))
    assert cause_of(value, error, same=False).why == "TypeError: no"
    assert cause_of(value, missing, same=False).why == "removed"
    assert cause_of(error, value, same=False).why == "TypeError: no"  # what it was before
    assert cause_of(error, missing, same=True).why == "removed"
    assert cause_of(value, error, same=False).cause == "outcome changed"


def test_bits_that_change_from_run_to_run_are_no_evidence(maker: Any) -> None:
    same = maker.evidence(stablehlo="s", hlo="h")
    a = maker.row("jit", maker.gave([1], evidence=same))
    b = maker.row("jit", maker.gave([2], evidence=same, nondeterministic=True))
    found = cause_of(a, b, same=False)
    assert (found.cause, found.why) == ("bits change from run to run", "in B")


def test_rows_of_one_side(maker: Any) -> None:
    row = maker.row("jit", maker.gave([1]))
    assert cause_of(row, None, same=False).cause == "on one side only"
    assert cause_of(None, row, same=False).cause == "on one side only"
