"""Text from records in markdown that GitHub shows: nothing in it is markup, a link or a mention.

Source: GitHub Flavored Markdown, sections 2.4 (backslash escapes), 4.10 (tables), 6.2 (entities),
6.3 (code spans). What GitHub reads beyond it (mentions, references to issues, emoji, mathematics)
it reads only where the characters follow each other, and never in code.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from parity.report.html.characters import spelled

LONGEST = 300
"""Characters of a text that are shown."""

_SPACE = "&#8203;"  # zero-width
_ESCAPES = re.compile(
    r"(?P<mark>[\\`*_\[\]|~])"
    r"|(?P<entity>[<&$])"
    r"|(?P<name>@|#(?=\d)|\b[Gg][Hh]-(?=\d))"
    r"|(?P<colon>:(?=//|[\w+-]+:))"
    r"|(?<=www)(?P<dot>\.)"
    r"|^(?P<start>[-+>#=]|\d+(?=[.)]))"
)


def escaped(text: object) -> str:
    """A text on one line, that reads as it is wherever text stands, also in a table."""
    return _ESCAPES.sub(_escape, cut(text))


def code(text: object, *, table: bool = False) -> str:
    """A text as a code span on one line; nothing for nothing.

    Args:
        text: any.
        table: whether it stands in a table, where pipes are escaped even in code.
    """
    line = cut(text)
    if not line:
        return ""
    ticks = "`" * (max(map(len, re.findall("`+", line)), default=0) + 1)
    inner = line.replace("|", "\\|") if table else line
    pad = " " if inner.startswith("`") or inner.endswith("`") else ""
    return f"{ticks}{pad}{inner}{pad}{ticks}"


def link(text: object, address: str | None) -> str:
    """A text that leads to an address, if that is one of the web."""
    if address is None:
        return escaped(text)
    if not re.fullmatch(r"https?://[!-~]+", address):
        return f"{escaped(text)} ({escaped(address)})"
    target = re.sub(r"[\\<>()`|*_\[\]\"]", lambda match: f"%{ord(match[0]):02X}", address)
    return f"[{escaped(text)}]({target})"


def table_line(cells: Sequence[str]) -> str:
    """A line of a table, of cells that are escaped."""
    return f"| {' | '.join(cells)} |\n"


def cut(text: object, longest: int = LONGEST) -> str:
    """A text on one line, invisible characters by name; where it is long, how much is left out."""
    one = spelled(" ".join(str(text).split()))
    if len(one) <= longest:
        return one
    return f"{one[:longest]}… ({len(one) - longest} more characters)"


def _escape(match: re.Match[str]) -> str:
    found = match[0]
    if match["entity"] or match["colon"] or match["dot"]:
        return {"<": "&lt;", "&": "&amp;"}.get(found, f"&#{ord(found)};")
    if match["name"]:
        return found + _SPACE
    if found.isdigit():
        return f"{found}\\"
    return f"\\{found}"
