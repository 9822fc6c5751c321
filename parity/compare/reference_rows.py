"""Rows of the references: what they say of each output, in the form of a path's."""

from __future__ import annotations

import numpy as np

from parity.casefile.case import Case
from parity.compare.metrics import Metrics, measure
from parity.compare.rows import Row, contents, failed
from parity.compare.ulp import parts
from parity.worker.protocol import Enclosure, References, digest


def reference_rows(case: Case, references: References) -> tuple[Row, ...]:
    """Rows for `f64` and `strict`, in the form of a path's and without a grade."""
    if references.failure is not None:
        return tuple(failed(case, path, references.failure) for path in ("f64", "strict"))
    sides = {"f64": references.f64, "strict": references.strict}
    return tuple(
        Row(
            case=case.id,
            path=path,
            output=name,
            outcome="ok",
            f64=_against_ideal(path, name, references),
            own_error=_own_error(case, references.f64[name]) if path == "f64" else None,
            sha256=digest(array),
            **contents(array),
        )
        for path, outputs in sides.items()
        for name, array in ((name, one.point) for name, one in outputs.items())
    )


def _against_ideal(path: str, name: str, references: References) -> Metrics | None:
    if path == "f64" or name not in references.f64:
        return None
    exclude = references.unspecified.get(name)
    return measure(references.strict[name].point, references.f64[name].point, exclude=exclude)


def _own_error(case: Case, truth: Enclosure) -> float:
    """A bound on the absolute error that the reference f64 makes itself, over all elements.

    Its accuracy bound is a sum of terms K (u + 2^-53) Σ|a||b|, of which K 2^-53 Σ|a||b| is what
    evaluating in float64 adds (DESIGN 3). So the own error is at most 2^-53 / (u + 2^-53) of the
    bound, with the smallest unit roundoff u that the program can have: 2^-24, in x64 2^-53.
    """
    if truth.exact:
        return 0.0
    u = 2.0**-53 if case.program.x64 else 2.0**-24
    with np.errstate(invalid="ignore", over="ignore"):
        width = np.stack([parts(truth.hi - truth.point), parts(truth.point - truth.lo)])
    finite = width[np.isfinite(width)]
    return float(finite.max(initial=0.0)) * 2.0**-53 / (u + 2.0**-53)
