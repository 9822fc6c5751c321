"""A case file as pieces of its text, so that one of them can be changed and no other.

The parser's events say where each begins and ends. Its nodes do not do: the node of an alias is
that of its anchor, marks and all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ruamel.yaml import YAML
from ruamel.yaml.events import (
    AliasEvent,
    CollectionEndEvent,
    DocumentEndEvent,
    Event,
    MappingStartEvent,
    NodeEvent,
    ScalarEvent,
    SequenceStartEvent,
)

BREAK = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True)
class Piece:
    """A value in the text.

    Attributes:
        kind: scalar, alias, list or mapping.
        start: where it begins, its anchor included.
        end: where it ends; line breaks and comments after it are not part of it.
        column: of its beginning; 0-based, as the others.
        flow: whether it is a list in brackets or a mapping in braces.
        quoted: whether it is a scalar in double quotes.
        value: of a scalar, as text.
        items: of a list.
        fields: of a mapping, keys and values.
    """

    kind: str
    start: int
    end: int
    column: int
    flow: bool = False
    quoted: bool = False
    value: str = ""
    items: tuple[Piece, ...] = ()
    fields: tuple[tuple[Piece, Piece], ...] = ()

    def field(self, name: str) -> tuple[Piece, Piece] | None:
        """Key and value of a mapping's field."""
        return next((one for one in self.fields if one[0].value == name), None)


class Page:
    """The text of a case file with its pieces.

    Args:
        text: of a file that `document.parse` has read.

    Attributes:
        text: itself.
        root: the mapping that it is.
        newline: how it ends its lines.
        end: where its last line with anything on it ends.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        first = BREAK.search(text)
        self.newline = first[0] if first else "\n"
        events = YAML(typ="safe", pure=True).parse(text)
        next(events), next(events)  # the beginnings of stream and document
        self.root = self._piece(next(events), events)
        end = next(events)
        marked = isinstance(end, DocumentEndEvent) and end.explicit
        content = text[: end.start_mark.index] if marked else text
        self.end = self.line_end(len(content.rstrip()))

    def line_start(self, at: int) -> int:
        """Where the line of a position begins."""
        return max(self.text.rfind("\n", 0, at), self.text.rfind("\r", 0, at)) + 1

    def line_before(self, start: int) -> int:
        """Where the line before the one that begins at `start` begins."""
        crlf = self.text[:start].endswith("\r\n")
        return self.line_start(start - 2 if crlf else start - 1)

    def line_end(self, at: int) -> int:
        """Where the line of a position ends, before its line break."""
        found = BREAK.search(self.text, at)
        return found.start() if found else len(self.text)

    def after_break(self, at: int) -> int:
        """Where the line after a line's end begins; the end itself where there is no more."""
        found = BREAK.match(self.text, at)
        return found.end() if found else at

    def dash(self, of: Piece, item: Piece) -> int:
        """Where the dash of an item of a block list stands."""
        start = self.line_start(item.start)
        while not re.match(rf" {{{of.column}}}-(\s|$)", self.text[start : self.line_end(start)]):
            start = self.line_before(start)
        return start + of.column

    def _piece(self, event: Event, events: Iterator[Event]) -> Piece:
        start, end = event.start_mark.index, event.end_mark.index
        column = event.start_mark.column
        if isinstance(event, AliasEvent):
            return Piece("alias", start, end, column)
        if isinstance(event, ScalarEvent):
            end = start + len(self.text[start:end].rstrip("\r\n"))
            return Piece("scalar", start, end, column, quoted=event.style == '"', value=event.value)
        flow = isinstance(event, MappingStartEvent | SequenceStartEvent) and bool(event.flow_style)
        is_list = isinstance(event, SequenceStartEvent)
        items: list[Piece] = []
        while isinstance(child := next(events), NodeEvent):
            items.append(self._piece(child, events))
            end = items[-1].end
        assert isinstance(child, CollectionEndEvent)
        if flow:
            end = child.end_mark.index
        if is_list:
            return Piece("list", start, end, column, flow, items=tuple(items))
        fields = tuple(zip(items[::2], map(self._value, items[::2], items[1::2]), strict=True))
        end = end if flow or not fields else fields[-1][1].end
        return Piece("mapping", start, end, column, flow, fields=fields)

    def _value(self, key: Piece, value: Piece) -> Piece:
        """A value; one that is empty stands behind its key, not where the next thing begins."""
        if value.start < value.end:
            return value
        found = re.compile(r"[ \t]*:").match(self.text, key.end)
        at = found.end() if found else key.end
        return Piece("scalar", at, at, value.column)
