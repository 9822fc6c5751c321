"""Entries of `expect` put into the text of a case file, changed and taken out.

Every character that is not the entry's stays as it is. What comes out is parsed again: it must say
what the text said before, but for `expect`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from parity.casefile import emit
from parity.casefile.document import parse
from parity.casefile.pieces import Page, Piece
from parity.casefile.problem import Location, Problem
from parity.errors import CaseFileError

_KEY = "expect"
_INDENT = 2

Edit = tuple[int, int, str]
"""What stands between two positions is replaced by a text."""


def with_entry(text: str, entry: Mapping[str, Any]) -> str:
    """The text with one more entry at the end of `expect`, in the style of those before it.

    Args:
        text: of a case file.
        entry: its fields in order, as plain data.

    Raises:
        Problem: the text has no place for it, such as where `expect` is an alias.
    """
    page, before = Page(text), _entries(text)
    entry = _plain(page, entry)
    found = page.root.field(_KEY)
    if found is None:
        edits = _new_key(page, entry)
    elif found[1].kind != "list":
        edits = []
    elif not found[1].flow:
        edits = _at_end_of_block(page, found[1], entry)
    elif _is_bare(page, found[1]):
        edits = _first_of_block(page, *found, entry)
    else:
        edits = _at_end_of_flow(page, found[1], found[1].items, _flow(page, entry))
    hint = f"write by hand, under expect: - {emit.flow(entry)}"
    return _checked(page, edits, [*before, entry], (_KEY,), hint)


def without_entries(text: str, indices: Collection[int]) -> str:
    """The text without some entries, and without `expect` where none is left.

    With an entry go the comments inside of it and those right above its dash.

    Args:
        text: of a case file.
        indices: of the entries, from 0.

    Raises:
        Problem: they cannot be cut out, such as one that has an anchor used elsewhere.
    """
    page, before = Page(text), _entries(text)
    key, value = _list(page)
    doomed = sorted(set(indices))
    left = [entry for index, entry in enumerate(before) if index not in doomed]
    if not left:
        edits = _without_key(page, key, value)
    elif value.flow:
        edits = _out_of_flow(page, value.items, doomed)
    else:
        edits = [_block_lines(page, key, value, index) for index in doomed]
    hint = f"take out by hand: {', '.join(f'expect[{index}]' for index in doomed)}"
    return _checked(page, edits, left, (_KEY, doomed[0]), hint)


def with_fields(text: str, index: int, fields: Mapping[str, Any]) -> str:
    """The text with some fields of one entry set; its other fields and comments stay.

    Args:
        text: of a case file.
        index: of the entry, from 0.
        fields: the new values; those that the entry lacks are added.

    Raises:
        Problem: they cannot be changed, such as where the entry is an alias.
    """
    page, after = Page(text), _entries(text)
    item = _list(page)[1].items[index]
    new = {n: of for n, of in _plain(page, fields).items() if after[index].get(n) != of}
    after[index] = {**after[index], **new}
    hint = f"write by hand as expect[{index}]: - {emit.flow(after[index])}"
    edits = [_set(page, item, name, of) for name, of in new.items()] if item.fields else []
    return _checked(page, edits, after, (_KEY, index), hint)


def _entries(text: str) -> list[Any]:
    return list(parse(text, Path()).data.get(_KEY) or [])


def _list(page: Page) -> tuple[Piece, Piece]:
    """The key `expect` and its entries."""
    found = page.root.field(_KEY)
    if found is None or found[1].kind != "list":
        hint = "write the list itself under expect"
        raise Problem("expect is no list that can be edited", (_KEY,), key=True, hint=hint)
    return found


def _checked(page: Page, edits: list[Edit], entries: list[Any], at: Location, hint: str) -> str:
    """The edited text, if it says what it said before but for `expect`."""
    new, done = "", 0
    for start, end, put in sorted(edits, key=lambda edit: edit[0]):
        new += page.text[done:start] + put
        done = max(done, end)
    new += page.text[done:]
    wanted = {**parse(page.text, Path()).data, _KEY: entries}
    try:
        got = parse(new, Path()).data
    except CaseFileError:
        got = {}
    if _canonical({_KEY: [], **got}) != _canonical(wanted):
        what = f"{_KEY} cannot be edited without changing more than that"
        raise Problem(what, at, key=len(at) == 1, hint=hint)
    return new


def _canonical(data: Any) -> str:
    """Text that tells 1 from 1.0 and true, and in which NaN equals itself."""
    return json.dumps(data, sort_keys=True, default=repr)


def _lines(entry: Mapping[str, Any], *, indent: int, offset: int, flow: bool) -> list[str]:
    """An entry of a block list; `offset` is from its dash to its keys."""
    dash = " " * indent + "-" + " " * (offset - 1)
    if flow:
        return [dash + emit.flow(entry)]
    first, *rest = (emit.field(name, of) for name, of in entry.items())
    return [dash + first, *(" " * (indent + offset) + line for line in rest)]


def _is_json(page: Page) -> bool:
    return page.root.flow and all(key.quoted for key, _ in page.root.fields)


def _plain(page: Page, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Fields as the file can say them: JSON has no days."""
    return json.loads(json.dumps(fields, default=str)) if _is_json(page) else dict(fields)


def _flow(page: Page, value: Any) -> str:
    """A value inside of brackets; as JSON where the file is JSON."""
    return json.dumps(value, ensure_ascii=False) if _is_json(page) else emit.flow(value)


def _new_key(page: Page, entry: Mapping[str, Any]) -> list[Edit]:
    """`expect`, as the last key of the file."""
    root = page.root
    if root.flow:
        pair = f"{_flow(page, _KEY)}: [{_flow(page, entry)}]"
        return _at_end_of_flow(page, root, _pairs(root), pair)
    column = root.fields[0][0].column
    indents = [v.column - k.column for k, v in root.fields if v.kind == "list" and not v.flow]
    put = _lines(entry, indent=column + (indents or [_INDENT])[-1], offset=_INDENT, flow=False)
    lines = [f"{' ' * column}{_KEY}:", *put]
    return [(page.end, page.end, "".join(page.newline + line for line in lines))]


def _is_bare(page: Page, value: Piece) -> bool:
    """Whether it is an empty list in brackets, in a file of lines, and nothing is lost with it."""
    return not (value.items or page.root.flow or "#" in page.text[value.start : value.end])


def _first_of_block(page: Page, key: Piece, value: Piece, entry: Mapping[str, Any]) -> list[Edit]:
    """In place of `[]`."""
    put = _lines(entry, indent=key.column + _INDENT, offset=_INDENT, flow=False)
    end = page.line_end(value.end)
    colon = page.text.rindex(":", key.end, value.start) + 1
    return [(colon, value.end, ""), (end, end, "".join(page.newline + line for line in put))]


def _at_end_of_block(page: Page, value: Piece, entry: Mapping[str, Any]) -> list[Edit]:
    last = value.items[-1]
    column = last.fields[0][0].column if last.fields and not last.flow else last.column
    flow = last.flow and last.kind == "mapping"
    put = _lines(entry, indent=value.column, offset=column - value.column, flow=flow)
    if len(value.items) > 1:
        between = page.text[value.items[-2].end : page.dash(value, last)]
        if re.search(r"(\r\n|\r|\n)[ \t]*\1", between):
            put.insert(0, "")
    at = _end_of_block(page, value, last)
    return [(at, at, "".join(page.newline + line for line in put))]


def _end_of_block(page: Page, value: Piece, item: Piece) -> int:
    """Where the lines of an item end, comments that are indented as its fields among them."""
    end = page.line_end(item.end)
    while (start := page.after_break(end)) != end:
        comment = re.match(r" *(?=#)", page.text[start : page.line_end(start)])
        if comment is None or comment.end() <= value.column:
            break
        end = page.line_end(start)
    return end


def _pairs(mapping: Piece) -> tuple[Piece, ...]:
    """The fields of a mapping, each with its key as one piece."""
    return tuple(Piece("field", k.start, v.end, k.column) for k, v in mapping.fields)


def _at_end_of_flow(page: Page, outer: Piece, inner: Sequence[Piece], put: str) -> list[Edit]:
    """One more value in brackets or braces, on a line of its own if the last one has one."""
    if not inner:
        return [(outer.end - 1, outer.end - 1, put)]
    last = inner[-1]
    comma = _comma(page, last.end)
    begin = page.line_start(last.start)
    indent = page.text[begin : last.start]
    of_its_own = not indent.strip() and begin > outer.start
    separator = page.newline + indent if of_its_own else " "
    end = page.line_end(last.end if comma is None else comma)
    if of_its_own and end < outer.end:  # comments behind the last one stay behind it
        if comma is None:
            return [(last.end, last.end, ","), (end, end, separator + put)]
        return [(end, end, separator + put + ",")]
    if comma is None:
        return [(last.end, last.end, "," + separator + put)]
    return [(comma + 1, comma + 1, separator + put + ",")]


def _comma(page: Page, at: int) -> int | None:
    """The comma behind a value inside of brackets, comments skipped."""
    found = re.compile(r"(?:\s|(?<=\s)#[^\r\n]*+)*+,").match(page.text, at)
    return found.end() - 1 if found else None


def _block_lines(page: Page, key: Piece, value: Piece, index: int) -> Edit:
    """The lines of an entry, with the comments right above it and the blank lines of its own."""
    items, text = value.items, page.text
    start = page.line_start(page.dash(value, items[index]))
    above = page.line_end(items[index - 1].end if index else key.end)
    while (before := page.line_before(start)) > above:
        if not re.match(rf" {{{value.column}}}#", text[before:start]):
            break
        start = before
    end = page.after_break(_end_of_block(page, value, items[index]))
    if index:
        while (before := page.line_before(start)) > above and not text[before:start].strip():
            start = before
    else:
        while (line := page.line_end(end)) < items[1].start and not text[end:line].strip():
            end = page.after_break(line)
    return _whole_lines(page, start, end)


def _whole_lines(page: Page, start: int, end: int) -> Edit:
    """Lines to cut out; without a line break at the file's end, the one before them goes."""
    if not page.text[start:end].endswith(("\n", "\r")):
        start = page.line_end(page.line_before(start))
    return start, end, ""


def _without_key(page: Page, key: Piece, value: Piece) -> list[Edit]:
    if page.root.flow:
        keys = [name for name, _ in page.root.fields]
        return _out_of_flow(page, _pairs(page.root), [keys.index(key)])
    end = page.line_end(value.end)
    if not value.flow:
        end = _end_of_block(page, value, value.items[-1])
    return [_whole_lines(page, page.line_start(key.start), page.after_break(end))]


def _out_of_flow(page: Page, inner: Sequence[Piece], doomed: list[int]) -> list[Edit]:
    """Values in brackets or braces to cut out; at least one stays."""
    return [edit for index in doomed for edit in _one_out_of_flow(page, inner, index, doomed)]


def _one_out_of_flow(
    page: Page, inner: Sequence[Piece], index: int, doomed: list[int]
) -> Iterator[Edit]:
    """A value with its comma and, if it has them for itself, its lines."""
    piece, comma = inner[index], _comma(page, inner[index].end)
    start, stop = page.line_start(piece.start), piece.end if comma is None else comma + 1
    rest = page.text[stop : page.line_end(stop)].strip()
    before = next((i for i in range(index - 1, -1, -1) if i not in doomed), None)
    is_last = all(i in doomed for i in range(index, len(inner)))
    if not page.text[start : piece.start].strip() and (not rest or rest.startswith("#")):
        yield start, page.after_break(page.line_end(stop)), ""
        if is_last and comma is None and before is not None:
            lost = _comma(page, inner[before].end)
            assert lost is not None  # it stands between two values
            yield lost, lost + 1, ""
        return
    start, end = inner[index - 1].end if is_last else piece.start, piece.end
    end = end if is_last else inner[index + 1].start
    if "#" in page.text[start : piece.start] + page.text[piece.end : end]:
        raise Problem("a comment stands in the way", (_KEY, index), hint="take it out by hand")
    yield start, end, ""


def _set(page: Page, item: Piece, name: str, value: Any) -> Edit:
    """One field of an entry, changed or added."""
    found = item.field(name)
    if found is None:
        after = item.field("path") if name in ("where", "output") else None
        previous = after or item.fields[-1]
        if item.flow:
            put = f", {_flow(page, name)}: {_flow(page, value)}"
            return previous[1].end, previous[1].end, put
        end = page.line_end(previous[1].end)
        return end, end, f"{page.newline}{' ' * previous[0].column}{emit.field(name, value)}"
    key, old = found
    if item.flow:
        return old.start, old.end, _flow(page, value)
    put = emit.field(name, value).removeprefix(f"{name}:")
    if old.kind in ("list", "mapping") and not old.flow:
        return page.text.index(":", key.end) + 1, old.end, put
    return old.start, old.end, put.removeprefix(" ")
