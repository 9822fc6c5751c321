"""Plain words: one line for each path that does not give the baseline's bits.

Every statement is read off the numbers: a path "keeps the product in float32" only if each of its
elements lies inside the interval of a reference that does, and not all inside that of `strict`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from parity import paths as registry
from parity.casefile.case import Case
from parity.compare.delivered import SLACK
from parity.compare.elementwise import same_bits
from parity.compare.message import first_line
from parity.compare.metrics import Metrics, comparable, measure
from parity.compare.quantity import metric
from parity.compare.rows import Row
from parity.dtypes import DTYPES
from parity.program.spec import strings
from parity.worker.protocol import PathOutcome, References

_CONTRACTIONS = ("conv_general_dilated", "dot_general", "einsum")


def words(
    case: Case,
    rows: Sequence[Row],
    outcomes: Sequence[PathOutcome],
    references: References,
) -> tuple[str, ...]:
    """One line for each row that is not identical, for each setting that changed nothing, and for
    the collectives of what was compiled.

    Args:
        case: whose rows they are.
        rows: its rows.
        outcomes: what its paths made of it, the baseline's among them if it ran.
        references: what the references say.
    """
    outputs = {outcome.path: outcome.outputs for outcome in outcomes}
    several = {row.path for row in rows if sum(r.path == row.path for r in rows) > 1}
    lines = []
    for row in rows:
        if row.grade == "identical" or (row.outcome == "ok" and row.grade is None):
            continue
        who = f"{row.path} ({row.output})" if row.path in several else row.path
        if row.replicas:
            lines.append(f"{who}: {row.replicas}")
            has_more = row.grade != "divergent" if row.path == case.baseline else row.differing
            if not has_more:
                continue
        if row.outcome != "ok":
            lines.append(f"{who}: {_failure(row)}")
        elif row.path == case.baseline or row.grade == "mismatched" or row.tolerance_refused:
            detail = row.detail.removeprefix(row.replicas).removeprefix("; ")
            lines.append(f"{who}: {row.grade}: {detail}")
        elif row.output in outputs.get(case.baseline, {}):
            lines.append(f"{who} {_sentence(case, row, rows, outputs, references)}")
        else:
            lines.append(f"{who}: {row.detail}")
    idle = {row.path: row.evidence["no_effect"] for row in rows if "no_effect" in row.evidence}
    lines += [f"{path}: {what}" for path, what in idle.items()]
    moved = {r.path: r.evidence["collectives"] for r in rows if "collectives" in r.evidence}
    lines += [f"{path}: compiled with {what}" for path, what in moved.items()]
    lines += _beside_strict(case, rows)
    lines += _gradient_dtypes(case, rows)
    lines += [f"{path}: dots {dots}" for path, dots in _mixed(rows).items()]
    return (*lines, *filter(None, map(_precision, rows)))


def _beside_strict(case: Case, rows: Sequence[Row]) -> list[str]:
    """How the outputs of paths that are references stand to `strict`, where bits differ."""
    lines = []
    for row in rows:
        variant = case.variants.get(row.path)
        path = variant.path if variant else row.path
        if path in registry.references() and row.strict is not None and row.strict.differing:
            count = f"{row.strict.differing} of {row.count} elements"
            inside = "inside" if row.faithful else "outside"
            output = f" ({row.output})" if row.output != "out" else ""
            lines.append(
                f"{row.path}{output}: a reference of its own; other bits than strict in {count}, "
                f"{inside} its interval"
            )
    return lines


def _gradient_dtypes(case: Case, rows: Sequence[Row]) -> list[str]:
    """The gradients that have another dtype than their operand."""
    declared = {f"vjp.{operand.name}": operand.dtype for operand in case.program.operands}
    return [
        f"{row.path}: {row.output} is {row.dtype}, its operand {declared[row.output]}"
        for row in rows
        if row.dtype is not None
        and row.output in declared
        and row.dtype != _held(declared[row.output], x64=case.program.x64)
    ]


def _held(dtype: str, *, x64: bool) -> str:
    """The dtype in which JAX holds an operand."""
    return dtype if x64 else {"float64": "float32", "complex128": "complex64"}.get(dtype, dtype)


def _mixed(rows: Sequence[Row]) -> dict[str, str]:
    """By path, the dots of a program some of which mix dtypes."""
    found = {row.path: row.evidence.get("dots", "") for row in rows}
    return {path: dots for path, dots in found.items() if "(mixed)" in dots}


def _precision(row: Row) -> str:
    """The bits that a dot delivered, if it asked for an algorithm by name."""
    if row.delivered is None or row.named is None:
        return ""
    text = f"{row.path}: delivers {row.delivered:.1f} mantissa bits, its name says {row.named}"
    return text + (": less than its name" if row.delivered < row.named - SLACK else "")


def _failure(row: Row) -> str:
    said = first_line(row.message)
    if row.outcome == "unsupported":
        return ": ".join(filter(None, ("unsupported", said)))
    what = f"{row.outcome} at {row.stage}" if row.stage else row.outcome
    return ": ".join(filter(None, (what, row.error_type, said)))


def _sentence(
    case: Case,
    row: Row,
    rows: Sequence[Row],
    outputs: Mapping[str, Mapping[str, np.ndarray]],
    references: References,
) -> str:
    """How a path's output differs from the baseline's."""
    got, baseline = outputs[row.path][row.output], outputs[case.baseline][row.output]
    other = _ideal(rows, case, baseline, row.output, references)
    inexact = row.dtype is not None and DTYPES[row.dtype].is_inexact
    nearer = _nearer(row.f64, other, case.baseline) if inexact else ""
    model = _model(row)
    if row.faithful and row.grade == "equivalent":
        how = f"as {row.licences} allows" if row.licences else "as another correct evaluation may"
        return f"{_distance(row, case.baseline)}, {how}"
    if model is None:
        apart = any(r.replicas for r in rows if r.output == row.output)
        declared = "" if apart else _declared(got, baseline, row.output, references, case.baseline)
        return "; ".join(filter(None, (_distance(row, case.baseline), nearer, declared)))
    declares = f"not what {_narrowest(case) or 'the program'} declares"
    if not nearer:
        return f"{_HABITS[model](case)}: {declares}"
    link = ", but" if nearer.startswith("closer") else ", and"
    return f"{_HABITS[model](case)}: {nearer}{link} {declares}"


def _model(row: Row) -> str | None:
    """The named model that holds every element where what was declared does not."""
    return row.model if row.model in _HABITS else None


def _excess_precision(case: Case) -> str:
    program = case.program
    if program.op in _CONTRACTIONS and program.transform in ("forward", "vmap"):
        return "keeps the product in float32"
    return "keeps intermediate results in float32"


def _wide(case: Case) -> str:
    to = f"to {_narrowest(case)} " if _narrowest(case) else ""
    return f"drops the casts {to}and computes in float32 throughout"


def _flush(case: Case) -> str:
    return "takes subnormal values for zero"


_TELLING = 0.01
"""Share by which two errors must differ before one of them is called closer."""

_HABITS = {"excess-precision": _excess_precision, "wide": _wide, "flush-subnormals": _flush}


def _narrowest(case: Case) -> str | None:
    """The narrowest floating dtype that the program declares, None where only its code says."""
    program = case.program
    names = [operand.dtype for operand in program.inputs()]
    names += [name for name in (program.compute_dtype, program.output_dtype) if name]
    names += [name for name in strings(program.attributes) if name in DTYPES]
    floating = [DTYPES[name] for name in names if DTYPES[name].is_inexact]
    narrowest = min(floating, key=lambda d: d.bits, default=DTYPES[names[0]])
    has_code = program.op in ("callable", "flax")  # which may cast to a narrower one
    return None if has_code and narrowest.bits >= 32 else narrowest.name


def _distance(row: Row, baseline: str) -> str:
    metrics = row.baseline
    assert metrics is not None
    assert row.dtype is not None
    text = f"differs from {baseline} in {metrics.differing} of {metrics.count} elements"
    if metrics.max_ulp is None:
        return text
    if metrics.max_ulp == 0:
        return f"{text}, in the sign of zeros only"
    if DTYPES[row.dtype].is_integer:
        return f"{text}, by at most {metrics.max_abs}"
    return f"{text}, by at most {metric(metrics.max_ulp)} ulp of {row.dtype}"


def _declared(
    got: np.ndarray, baseline: np.ndarray, output: str, references: References, name: str
) -> str:
    """Which of the two, if any, is what the program declares."""
    strict, exclude = references.strict.get(output), references.unspecified.get(output)
    if strict is None:
        return ""
    if same_bits(got, strict.point, exclude=exclude):
        return f"it is what the program declares, {name} is not"
    if same_bits(baseline, strict.point, exclude=exclude):
        return f"{name} is what the program declares"
    return ""


def _ideal(
    rows: Sequence[Row], case: Case, baseline: np.ndarray, output: str, references: References
) -> Metrics | None:
    """The baseline's metrics against `f64`: of its row, or measured where that is not shown."""
    for row in rows:
        if (row.path, row.output) == (case.baseline, output):
            return row.f64
    want = references.f64.get(output)
    if want is None or not comparable(baseline, want.point):
        return None
    return measure(baseline, want.point, exclude=references.unspecified.get(output))


def _nearer(own: Metrics | None, other: Metrics | None, baseline: str) -> str:
    """Which of two outputs is closer to float64, in rms and at worst; "" if that is not known."""
    if own is None or other is None or own.rms_rel is None:
        return ""
    signs = []
    for name in ("rms_rel", "max_abs"):
        a, b = getattr(own, name), getattr(other, name)
        if a is None or b is None or a != a or b != b:
            return ""
        apart = abs(a - b) > _TELLING * max(a, b)
        signs.append(((a > b) - (a < b)) * apart)
    if signs == [0, 0]:
        return f"about as far from float64 as {baseline}"
    if min(signs) >= 0:
        return f"farther from float64 than {baseline}"
    if max(signs) <= 0:
        return f"closer to float64 than {baseline}"
    rms, worst = ("closer", "farther") if signs[0] < 0 else ("farther", "closer")
    return f"{rms} to float64 than {baseline} on the whole, {worst} at worst".replace(
        "farther to", "farther from"
    )
