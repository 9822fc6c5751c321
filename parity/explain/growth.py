"""A localisation as a section: where a path leaves what is declared, and how its error grows."""

from __future__ import annotations

from parity.explain.localisation import Localisation
from parity.explain.section import Plot, Section
from parity.explain.steps import Error, Step
from parity.report.numbers import metric, plural


def localisation(found: Localisation) -> Section:
    """Where a path leaves what is declared, and each result with its errors."""
    lines = [found.missing] if found.missing else []
    for total in found.totals:
        ours, theirs = _of(total.path), _of(total.against)
        apart = "" if total.apart is None else f"{metric(total.apart)} apart"
        parts = [f"{found.path} {ours}", f"{found.against} {theirs}", apart]
        lines.append(f"{total.output} (relative rms error): {', '.join(filter(None, parts))}")
    if found.steps:
        lines += _first(found)
    lines += _origin(found)
    if found.disturbed:
        places = ", ".join(dict.fromkeys(step.site.address for step in found.disturbed))
        lines.append(f"observing these equations changes the outputs: {places}")
    for address, why in (found.failures or {}).items():
        lines.append(f"{found.path} gives nothing where equation {address} is observed: {why}")
    if found.left_out:
        lines.append(f"not observed: equations {', '.join(found.left_out)}")
    cells = tuple(_step(step, found.first) for step in found.steps)
    head = (
        "equation", "result", f"{found.path}: outside", "error",
        f"{found.against}: outside", "error", "apart", "", "where",
    )  # fmt: skip
    return Section("Localisation", tuple(lines), head if cells else (), cells, plot=_growth(found))


def _of(error: Error) -> str:
    return "of unknown error" if error.rms_rel is None else metric(error.rms_rel)


def _first(found: Localisation) -> list[str]:
    first = found.first
    if first is None:
        both = [step for step in found.steps if step.path.faithful is False]
        if both:
            return [f"both leave what is declared, first at {both[0].place}"]
        return ["no result that was observed leaves what is declared"]
    line = f"leaves what is declared at {first.place} ({first.site.primitive} to {first.dtype})"
    return [f"{found.path} {line}"]


def _origin(found: Localisation) -> list[str]:
    """Which roundings, kept, bring back what leaves."""
    arises = found.origin
    if arises is None:
        return []
    what = "it" if found.first is not None else "the output"
    if not arises.roundings:
        return [arises.missing]
    places = ", ".join(dict.fromkeys(one.place for one in arises.roundings))
    return [f"keeping {plural(len(arises.roundings), 'rounding')} brings {what} back: {places}"]


def _step(step: Step, first: Step | None) -> tuple[str, ...]:
    mark = "first" if step is first else "disturbed" if step.disturbed else ""
    return (
        step.site.address,
        f"{step.site.primitive} {step.dtype}",
        _outside(step.path),
        _number(step.path.rms_rel),
        _outside(step.against),
        _number(step.against.rms_rel),
        _number(step.apart),
        mark,
        step.place,
    )


def _outside(error: Error) -> str:
    """Elements outside; `as a whole` where each is inside and all together are not."""
    if error.outside is None:
        return ""
    return "as a whole" if not error.outside and error.faithful is False else str(error.outside)


def _number(value: float | None) -> str:
    return "" if value is None else metric(value)


def _growth(found: Localisation) -> Plot | None:
    if len(found.steps) < 2:
        return None
    return Plot(
        "relative rms error against float64",
        tuple(f"{step.site.address} {step.site.primitive} {step.place}" for step in found.steps),
        {
            found.path: tuple(step.path.rms_rel for step in found.steps),
            found.against: tuple(step.against.rms_rel for step in found.steps),
            "apart": tuple(step.apart for step in found.steps),
        },
    )
