"""Errors of one kind say the same, whatever numbers, places and instructions they name."""

import numpy as np
import pytest

from parity.explain.signature import signature
from parity.worker.protocol import Failure, PathOutcome, References

from .campaign import case_of

ARRAYS = (np.ones((2, 2), np.float32),)


def said(message):
    baseline = PathOutcome("eager", {"out": ARRAYS[0]})
    failure = Failure("error", "run", "InvalidArgumentError", message)
    told = signature(case_of(ARRAYS), baseline, PathOutcome("jit", failure=failure), References())
    assert (told.outcome, told.what) == ("error", "run InvalidArgumentError")
    return told.why


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("no room for 12 of 34 bytes at 0x7f00", "no room for 5 of 6 bytes at 0x12ab"),
        ("{{node Conv_1}} no kernel", "no kernel"),
        ("shapes [2,3] and [4,5,6]", "shapes [7] and [8]"),
        ("not supported: %a.1 = f32[2] convert(%b)", "not supported: %c = s4[1,2] add(%d, %e)"),
        ("could not\nthe first", "could not\nthe second"),
        ("use 'a' if you're able to use 'b'", "use 'c' if you're able to use 'd'"),
    ],
)
def test_one_kind(one, other):
    assert said(one) == said(other)


def test_dtypes_are_kinds():
    texts = [f"{dtype} is not allowed" for dtype in ("int4", "int8", "float8_e5m2", "float8_e4m3")]
    assert len({said(text) for text in texts}) == 4
