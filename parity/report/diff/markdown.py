"""A comparison of two runs as a comment on a pull request: short, and escaped."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from parity.report.diff import wording
from parity.report.diff.model import Diff, Finding
from parity.report.markdown import code, escaped, link, table_line
from parity.report.numbers import plural

LIMIT = 60_000
"""Characters; GitHub takes 65,536 in a comment."""

_FEW = 3


def diff_markdown(diff: Diff) -> str:
    """The whole comment, of at most `LIMIT` characters; what is left out is counted.

    What comes from a record is escaped, or stands in code spans.
    """
    head = "".join(_head(diff))
    tail = "".join(_tail(diff))
    room = LIMIT - len(head) - len(tail) - 200
    body, shown = "", 0
    for finding in diff.findings:
        section = "".join(_finding(finding))
        if len(body) + len(section) > room:
            break
        body, shown = body + section, shown + 1
    left = diff.findings[shown:]
    if left:
        rows = sum(len(finding.changes) for finding in left)
        body += f"\n… and {plural(len(left), 'finding')} more, {plural(rows, 'row')}.\n"
    return head + body + tail


def _head(diff: Diff) -> Iterator[str]:
    word, _, rest = wording.verdict(diff).partition(":")
    yield f"**{word}**:{rest}\n"
    yield "\n| | A | B |\n|---|---|---|\n"
    for name, a, b in (
        ("environment", diff.a.environment, diff.b.environment),
        ("record", diff.a.record or "none", diff.b.record or "none"),
        *((change.name, *wording.fact(change)) for change in diff.facts),
    ):
        yield table_line([code(text, table=True) for text in (name, a, b)])


def _finding(finding: Finding) -> Iterator[str]:
    worst = finding.worst
    yield f"\n#### {wording.tag(finding)}: {code(wording.headline(finding))}\n"
    if finding.because is not None:
        said = escaped(wording.expected(finding))
        yield f"\n{said}, because {link(finding.because, finding.link)}\n"
    yield f"\n{'worst ' if len(finding.changes) > 1 else ''}{code(wording.row_id(worst))}\n"
    yield "\n| | A | B | change |\n|---|---:|---:|---|\n"
    for row in wording.quantities(worst):
        yield table_line(list(map(escaped, row)))
    remarks = wording.remarks(worst)
    if remarks:
        yield "\n" + "".join(f"- {code(remark)}\n" for remark in remarks)
    if len(finding.cases) > 1:
        yield "\n" + _ids("also in", finding.cases[1:])


def _tail(diff: Diff) -> Iterator[str]:
    if diff.not_comparable:
        rows = sum(one.rows for one in diff.not_comparable)
        yield f"\n**not comparable**: {plural(rows, 'row')}\n\n"
        for one in diff.not_comparable[:_FEW]:
            yield f"- {code(one.case)}: {one.kind}: {code(one.reason)}\n"
        if len(diff.not_comparable) > _FEW:
            yield f"- and {len(diff.not_comparable) - _FEW} more\n"
    for name, ids in (("A", diff.only_a), ("B", diff.only_b)):
        if ids:
            yield f"\n{plural(len(ids), 'case')} " + _ids(f"only in {name}:", ids)
    yield f"\nunchanged: {plural(diff.unchanged, 'row')} of {plural(diff.cases, 'case')}\n"


def _ids(what: str, ids: Sequence[str]) -> str:
    shown = ids if len(ids) <= _FEW + 1 else ids[:_FEW]
    more = f" and {len(ids) - len(shown)} more" if len(shown) < len(ids) else ""
    return f"{what} {', '.join(map(code, shown))}{more}\n"
