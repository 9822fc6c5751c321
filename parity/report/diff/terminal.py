"""A comparison of two runs for people: environments, verdict, findings, the worst first."""

from __future__ import annotations

import shlex
from collections.abc import Hashable, Iterator, Sequence

from rich.text import Text

from parity.report.diff import wording
from parity.report.diff.detail import change_lines
from parity.report.diff.model import Diff, Finding, NotComparable
from parity.report.numbers import plural
from parity.report.table import STYLES, folded

FEW = 3
"""So many ids of a list are shown unless all are asked for."""

_STYLES = {
    "worse": STYLES["finding"],
    "expected": STYLES["expected"],
    "changed": "bold",
    "better": STYLES["ok"],
}


def diff_lines(diff: Diff, width: int | None, *, verbose: bool = False) -> Iterator[Text]:
    """A comparison, a line at a time.

    Args:
        diff: what changed.
        width: terminal cells to a line, None for no limit.
        verbose: every change with its table, all ids.
    """
    return map(_visible, _lines(diff, width, verbose=verbose))


def _visible(line: Text) -> Text:
    """A line in which nothing is invisible or controls the terminal: such characters by name."""
    if line.plain.isprintable():
        return line
    from parity.report.html.characters import spelled

    return Text(spelled(line.plain))


def _lines(diff: Diff, width: int | None, *, verbose: bool) -> Iterator[Text]:
    yield from folded(Text(wording.side("A", diff.a)), width, indent=0)
    yield from folded(Text(wording.side("B", diff.b)), width, indent=0)
    yield Text()
    yield from _environment(diff, width)
    yield Text()
    yield from folded(_verdict(diff), width, indent=0)
    for finding in diff.findings:
        yield Text()
        yield from _finding(diff, finding, width, verbose=verbose)
    if diff.not_comparable:
        yield Text()
        yield from _not_comparable(diff.not_comparable, width, verbose=verbose)
    if diff.only_a or diff.only_b or diff.unchanged:
        yield Text()
    for name, ids in (("A", diff.only_a), ("B", diff.only_b)):
        if ids:
            yield Text(f"only in {name}: {plural(len(ids), 'case')}")
            yield from _ids(ids, verbose=verbose)
    if diff.unchanged:
        yield Text(f"unchanged: {plural(diff.unchanged, 'row')} of {plural(diff.cases, 'case')}")
    if diff.findings and diff.a.record and diff.b.record:
        yield Text(f"look further: {_command(diff)}")


def _environment(diff: Diff, width: int | None) -> Iterator[Text]:
    """What differs, a fact to a line; long values continue below."""
    if not diff.facts:
        yield Text("environment: the same on both sides")
        return
    rows = [(change.name, *wording.fact(change)) for change in diff.facts]
    first = max(len(name) for name, *_ in (("environment",), *rows))
    second = max((len(a) for _, a, _ in rows if len(a) <= 24), default=1)
    yield Text(f"{'environment':<{first + 4}}{'A':<{second + 2}}B", style="bold")
    for name, a, b in rows:
        line = Text(f"  {name:<{first + 2}}{a:<{second}}  {b}".rstrip())
        if width is None or line.cell_len <= width:
            yield line
            continue
        yield Text(f"  {name}")
        for label, value in (("A", a), ("B", b)):
            if value:
                yield from folded(Text(f"{label}  {value}"), width, indent=4, hanging=3)


def _verdict(diff: Diff) -> Text:
    word, _, rest = wording.verdict(diff).partition(":")
    style = STYLES["ok"] if word == "ok" else STYLES["finding"]
    return Text.assemble((word, style), f":{rest}")


def _finding(diff: Diff, finding: Finding, width: int | None, *, verbose: bool) -> Iterator[Text]:
    tag = wording.tag(finding)
    line = Text.assemble((f"{tag}: ", _STYLES[tag]), wording.headline(finding))
    yield from folded(line, width, indent=0)
    if said := wording.because(finding):
        yield from folded(Text(said), width)
    shown = finding.changes if verbose else finding.changes[:1]
    for change in shown:
        title = Text("  worst " if len(shown) < len(finding.changes) else "  ")
        title.append(wording.row_id(change), "bold").append(f"  {wording.form(change)}", "dim")
        title.rstrip()
        yield title
        yield from change_lines(change, diff.a, diff.b, width, verbose=verbose)
    if not verbose and len(finding.cases) > 1:
        yield Text("  also in")
        yield from _ids(finding.cases[1:], verbose=False)


def _not_comparable(
    found: Sequence[NotComparable], width: int | None, *, verbose: bool
) -> Iterator[Text]:
    alike: dict[Hashable, list[NotComparable]] = {}
    for one in found:
        alike.setdefault((one.kind, one.reason), []).append(one)
    rows, cases = sum(one.rows for one in found), len({one.case for one in found})
    head = f": {plural(rows, 'row')} of {plural(cases, 'case')}"
    yield Text.assemble(("not comparable", STYLES["expected"]), head)
    for several in alike.values():
        first = several[0]
        output = f" of {first.output}" if first.output not in ("", "out") else ""
        yield from folded(Text(f"{first.kind}{output}: {first.reason}"), width)
        yield from _ids(list(dict.fromkeys(one.case for one in several)), verbose=verbose)


def _ids(ids: Sequence[str], *, verbose: bool) -> Iterator[Text]:
    shown = ids if verbose or len(ids) <= FEW + 1 else ids[:FEW]
    yield from (Text(f"    {id_}") for id_ in shown)
    if len(shown) < len(ids):
        yield Text(f"    and {len(ids) - len(shown)} more; -v lists them")


def _command(diff: Diff) -> str:
    """How to see all that is known of the worst change."""
    worst = diff.findings[0].worst
    records = dict.fromkeys(filter(None, (diff.a.record, diff.b.record)))
    command = ["parity", "diff", *records]
    command += ["--a", diff.a.environment, "--b", diff.b.environment]
    return shlex.join([*command, "--case", worst.case, "--path", worst.path, "-v"])
