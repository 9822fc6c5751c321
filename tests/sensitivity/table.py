"""The verdicts of a campaign as text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from parity.casefile.case import GRADES

from .campaign import Verdict
from .contraction import SCHEMES
from .faults import FAULTS


def share(part: int, whole: int) -> str:
    return f"{part} of {whole} ({100 * part / whole:.4g}%)" if whole else "none of 0"


def rates(verdicts: Sequence[Verdict]) -> list[str]:
    """The rates that the suite is about."""
    planted = [v for v in verdicts if v.planted]
    visible = [v for v in planted if v.visible]
    changed = [v for v in planted if v.changed]
    honest = [v for v in verdicts if not v.planted]
    long = [v for v in visible if v.terms >= 1024 and v.kind in ("bf16 operands", "TF32 operands")]
    rows = {
        "visible faults caught": (visible, "caught"),
        "  bf16 and TF32 operands, K >= 1024": (long, "caught"),
        "honest evaluations condemned": (honest, "condemned"),
        "all planted faults caught": (planted, "caught"),
        "  of those that changed a bit": (changed, "caught"),
    }
    return [
        f"{name:36}{share(sum(getattr(v, what) for v in found), len(found))}"
        for name, (found, what) in rows.items()
    ]


def by_dtypes(verdicts: Sequence[Verdict]) -> list[str]:
    """Faults x dtypes: how many of the visible ones were caught, how many more were planted."""
    columns = [scheme.name for scheme in SCHEMES]
    lines = [f"{'caught/visible +invisible':26}" + "".join(f"{name:>13}" for name in columns)]
    for kind in FAULTS:
        cells = []
        for column in columns:
            found = [v for v in verdicts if v.planted and (v.kind, v.scheme) == (kind, column)]
            visible = [v for v in found if v.visible]
            cell = f"{sum(v.caught for v in visible)}/{len(visible)}"
            cell += f" +{len(found) - len(visible)}" if len(found) > len(visible) else ""
            cells.append(cell if found else "-")
        lines.append(f"{kind:26}" + "".join(f"{cell:>13}" for cell in cells))
    return lines


def by_grade(verdicts: Sequence[Verdict]) -> list[str]:
    """Faults x grades, of the visible ones and of the others."""
    lines = [f"{'visible (invisible)':26}" + "".join(f"{grade:>14}" for grade in reversed(GRADES))]
    for kind in FAULTS:
        found = [v for v in verdicts if v.planted and v.kind == kind]
        counts = Counter((v.grade, v.visible) for v in found)
        cells = [f"{counts[grade, True]} ({counts[grade, False]})" for grade in reversed(GRADES)]
        lines.append(f"{kind:26}" + "".join(f"{cell:>14}" for cell in cells))
    return lines


def report(verdicts: Sequence[Verdict]) -> str:
    """Everything, as it is printed."""
    contractions = len({(v.seed, v.contraction) for v in verdicts})
    lines = [f"{contractions} convs and dots", "", *rates(verdicts), ""]
    return "\n".join([*lines, *by_dtypes(verdicts), "", *by_grade(verdicts)])
