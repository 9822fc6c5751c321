"""What the words of a comparison mean, for those who read the page and not the documentation."""

from __future__ import annotations

from parity.report.diff import causes, directions

TAGS = {
    "worse": "It got worse, and no expectation accepts what it became.",
    "expected": "An expectation of B's case file says that B's side is as it is; "
    "it fails no comparison.",
    "changed": "Neither worse nor better.",
    "better": "It got better, also where it still falls short as expected.",
}
"""What a finding amounts to, as findings are counted."""

DIRECTIONS = {
    directions.NEW_ERROR: "An error, a timeout, exhausted memory or a crash, where there was an "
    "output or a failure that does less harm.",
    directions.MISMATCHED: "Another shape or dtype, or another pattern of NaN and infinity.",
    directions.INACCURATE: "Now beyond the accuracy bound of f64.",
    directions.DIVERGENT: "Still accurate, and no longer what was declared: a rounding was added "
    "or dropped.",
    directions.UNSUPPORTED: "The path can no longer run this.",
    directions.FARTHER: "The same grade, other bits, and a larger error against f64.",
    directions.EQUIVALENT: "No longer the baseline's bits, and still what was declared.",
    directions.OTHER_FAILURE: "It failed and fails, in another way that does no more harm.",
    directions.OTHER_BITS: "Other bits that are neither closer to f64 nor farther from it, or both "
    "what was declared, where which is closer is chance.",
    directions.CLOSER: "The same grade, other bits, and a smaller error against f64.",
    directions.BETTER: "A better grade, and not yet fixed.",
    directions.FIXED: "Was divergent or worse, is equivalent or identical.",
    directions.RECOVERED: "A failure became an output.",
    directions.GONE: "Only A has the row.",
    directions.NEW: "Only B has the row.",
}

CAUSES = {
    causes.LOWERING: "Another StableHLO or, of a path that has none, other TensorFlow operations.",
    causes.COMPILER: "The same StableHLO, another optimized HLO.",
    causes.RUNTIME: "The same optimized HLO, other bits.",
    causes.COMPILER_OR_RUNTIME: "The same StableHLO or operations; the optimized HLO is not to be "
    "had on both sides.",
    causes.NOT_KNOWN: "What was compiled is not known of both sides.",
    causes.SAME_BITS: "The path's output is as it was; what it is compared with changed.",
    causes.CHANGES: "The bits change from run to run, so that one run's evidence says nothing.",
    causes.OUTCOME: "One side failed, and says why.",
    causes.ONE_SIDE: "The row is gone, or new.",
}
