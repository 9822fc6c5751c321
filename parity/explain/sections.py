"""An explanation as titled sections of sentences, tables, programs and a plot, for every format."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from parity.explain.attribution import STRICT, Attribution
from parity.explain.barriers import BarrierSearch
from parity.explain.controls import NO_EFFECT, UNKNOWN, ControlRun, Controls
from parity.explain.explanation import Explanation
from parity.explain.growth import localisation
from parity.explain.section import Section
from parity.report.numbers import metric, plural

NAMED = 2
"""Barriers that are named where all is said in one sentence."""

RIVALS = 6
"""Models that are named beside the answer."""


def headline(found: Explanation) -> str:
    """What was found in one sentence."""
    lacking = next((row for row in found.own if row.outcome == "unsupported"), None)
    if lacking is not None:
        return f"{found.path}: unsupported: {lacking.detail}"
    if not found.differs:
        same = "is" if found.path == found.against else "gives the bits of"
        rest = " the path it would be compared with" if found.path == found.against else ""
        return f"{found.path} {same} {found.against}{rest}: nothing differs"
    parts = [_cause(found), *_remedies(found)]
    return "; ".join(filter(None, parts))


def _cause(found: Explanation) -> str:
    failed = next((row for row in found.own if row.outcome != "ok"), None)
    if failed is not None:
        where = f" at {failed.stage}" if failed.stage else ""
        return f"{found.path}: {failed.outcome}{where}: {failed.detail or failed.error_type}"
    told = found.at_first or found.attributions
    names = dict.fromkeys(one.name for one in told if one.model != STRICT)
    named = [name for name in names if name]
    if named:
        return f"{found.path}: {' and '.join(named)}"
    if any(one.model == STRICT for one in found.attributions):
        return f"{found.path} gives what is declared; {found.against} does not"
    return f"{found.path} differs, and no model explains how"


def _remedies(found: Explanation) -> Iterator[str]:
    restoring = found.controls.restoring if found.controls is not None else ()
    if restoring:
        yield f"{restoring[0].how} restores parity"
    if found.barriers is not None and found.barriers.barriers:
        places = [one.place for one in found.barriers.barriers]
        what = "a barrier" if len(places) == 1 else f"{len(places)} barriers"
        after = f" after {', '.join(places)}" if len(places) <= NAMED else ""
        does = "restores" if len(places) == 1 else "restore"
        yield f"{what}{after} {does} {'it, too' if restoring else 'parity'}"


def sections(found: Explanation) -> tuple[Section, ...]:
    """All parts of an explanation, in the order in which they are read."""
    parts = [
        _attribution(found.attributions, "Attribution"),
        _attribution(found.at_first, "Attribution where it first leaves what is declared"),
        _controls(found.controls),
        _barriers(found.barriers),
        None if found.localisation is None else localisation(found.localisation),
        _evidence(found),
        _rest(found),
    ]
    return tuple(part for part in parts if part is not None)


def _attribution(found: Sequence[Attribution], title: str) -> Section | None:
    if not found:
        return None
    lines = [line for one in found for line in _attributed(one, named=len(found) > 1)]
    cells = [
        (one.output, standing.name, standing.refutes or "explains it as well")
        for one in found
        for standing in one.rivals[:RIVALS]
    ]
    several = len(found) > 1
    head = ("output", "model", "ruled out by") if several else ("model", "ruled out by")
    if not several:
        cells = [cell[1:] for cell in cells]  # type: ignore[misc]
    return Section(title, tuple(lines), head if cells else (), tuple(cells))


def _attributed(one: Attribution, *, named: bool) -> Iterator[str]:
    """What is said of one output."""
    who = f"{one.output}: " if named else ""
    if one.missing:
        yield f"{who}not attributed ({one.missing})"
    elif one.name:
        source = f" ({one.source})" if one.source else ""
        yield f"{who}{one.name}. {one.meaning}{source}"
    else:
        yield f"{who}{one.meaning}"
    if one.certainty:
        counted = plural(one.certainty, "element")
        yield f"{who}the nearest other model is ruled out in {counted}"
    vacuous = [standing.name for standing in one.standings if standing.vacuous and standing.holds]
    if vacuous:
        yield f"{who}vacuous here, and so no answer: {', '.join(vacuous)}"
    if one.alike:
        yield f"{who}on every operand tried {', '.join(one.alike)} explains it as well"
    if one.wider:
        yield f"{who}{', '.join(one.wider)} allows all of this and more"
    for told in one.distinctions:
        refuted = f"rules out {', '.join(told.refuted)}" if told.refuted else "rules nothing out"
        yield f"{who}on generated operands ({told.how}) the path {refuted}"
    for hypothesis in one.structure:
        share = "" if hypothesis.covers == 1 else f" of {metric(100 * hypothesis.covers)}%"
        left = f"what remains{share}: {metric(hypothesis.residual)} relative rms"
        yield f"{who}{hypothesis.name}: {hypothesis.meaning} ({left})"
    if one.no_effect:
        yield f"{who}{one.no_effect}"


def _controls(found: Controls | None) -> Section | None:
    if found is None:
        return None
    lines = _missing(found.missing)
    if found.runs and not found.restoring:
        lines.append("no switch restores parity")
    if found.left_out:
        lines.append(f"not tried for want of time: {', '.join(found.left_out)}")
    for verdict, what in ((NO_EFFECT, "without any effect"), (UNKNOWN, "not known here")):
        if idle := [run.how for run in found.runs if run.verdict == verdict]:
            lines.append(f"{what}: {', '.join(idle)}")
    told = [run for run in found.runs if run.verdict not in (NO_EFFECT, UNKNOWN)]
    cells = tuple(
        (run.how, run.verdict, _time(run), run.message or run.switch.meaning) for run in told
    )
    head = ("one switch flipped", "verdict", "a warm call", "what it does")
    return Section("Control runs", tuple(lines), head if cells else (), cells)


def _time(run: ControlRun) -> str:
    """What a flip costs: the time of a warm call over that without it."""
    if run.cost is None:
        return ""
    return f"takes {run.cost:.2f}x"


def _missing(why: str) -> list[str]:
    return [why] if why else []


def _barriers(found: BarrierSearch | None) -> Section | None:
    if found is None:
        return None
    lines = _missing(found.missing)
    if found.barriers:
        several = len(found.barriers) > 1
        count = f"{len(found.barriers)} barriers restore" if several else "one barrier restores"
        reached = ", ".join(f"{name} {grade}" for name, grade in found.outputs.items())
        fewest = {
            "": "whether fewer do is not known" if several else "",
            "each is needed": "each is needed" if several else "",
        }.get(found.fewest, found.fewest)
        checked = {None: "", True: "a fresh process agrees", False: "a fresh process disagrees"}
        told = filter(None, (reached, fewest, checked[found.verified]))
        lines.append(f"{count} parity ({'; '.join(told)})")
    if found.unrestored:
        lines.append(f"no barrier restores {', '.join(found.unrestored)}")
    if found.runs:
        considered = plural(found.candidates, "candidate")
        lines.append(f"{plural(found.runs, 'run')} over {considered}")
    cells = tuple((one.place, one.edit) for one in found.barriers)
    head = ("after", "keep the result x by")
    return Section("Barrier search", tuple(lines), head if cells else (), cells)


def _evidence(found: Explanation) -> Section | None:
    """What the two compiled, and what a flip that restores parity made of it."""
    every = [(f"from {found.against} to {found.path}", one) for one in found.evidence]
    restoring = found.controls.restoring if found.controls is not None else ()
    for run in restoring[:1]:
        every += [(f"with {run.how}", one) for one in run.programs]
    lines, code = [], []
    for what, one in every:
        if one.missing:
            lines.append(f"{one.name} {what}: {one.missing}")
        elif not one.lines:
            lines.append(f"{one.name} {what}: the same")
        else:
            more = f"\n… {plural(one.more, 'line')} more" if one.more else ""
            code.append((f"{one.name} {what}", "\n".join(one.lines) + more))
    return Section("What was compiled", tuple(lines), code=tuple(code)) if every else None


def _rest(found: Explanation) -> Section | None:
    if not found.left_out:
        return None
    return Section("Left out", (f"no time was left for: {', '.join(found.left_out)}",))
