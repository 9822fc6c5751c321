"""What a failure says in one line."""

from __future__ import annotations

import re

_NODE = re.compile(r"\{\{\w*node [^{}]*\}\}\s*")
"""Which node of a graph TensorFlow was at: it stands before what went wrong, and is long."""


def first_line(message: str) -> str:
    """The first line of a message that says something, "" if none does.

    TensorFlow's names of nodes, `{{function_node …}}`, are left out.
    """
    lines = (_NODE.sub("", line).strip() for line in message.splitlines())
    return next(filter(None, lines), "")
