"""Errors by device, for people: of outputs that lie on several devices and are not fine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from parity.report.columns import Column, layout
from parity.report.numbers import metric

if TYPE_CHECKING:
    from parity.compare.result import CaseResult
    from parity.compare.rows import Row
    from parity.compare.shards import ShardError


def device_lines(result: CaseResult, width: int | None, *, indent: int) -> list[Text]:
    """A table for each output that is beyond `equivalent` and lies on several devices.

    Args:
        result: of a case.
        width: terminal cells to a line, None for no limit.
        indent: spaces before each line.
    """
    lines: list[Text] = []
    for output, by_device in _telling(result).items():
        several = len(result.groups) > 1
        lines.append(Text(" " * indent + (f"by device, {output}:" if several else "by device:")))
        lines += layout(_columns(by_device), width, indent=indent + 2)
    return lines


def part(one: ShardError) -> str:
    """What a device holds: `[0:8, 4:8]`."""
    bounds = zip(one.start, one.shape, strict=True)
    return f"[{', '.join(f'{start}:{start + size}' for start, size in bounds)}]"


_ByDevice = list[tuple[str, tuple["ShardError", ...]]]


def _telling(result: CaseResult) -> dict[str, _ByDevice]:
    """By output, who has which errors; paths that have the same stand together."""
    found: dict[str, dict[tuple[ShardError, ...], list[str]]] = {}
    for row in result.rows:
        if row.shards and not _is_fine(row):
            alike = found.setdefault(row.output, {})
            alike.setdefault(row.shards, []).append(row.path)
    return {
        output: [(", ".join(dict.fromkeys(paths)), held) for held, paths in alike.items()]
        for output, alike in found.items()
    }


def _is_fine(row: Row) -> bool:
    return row.grade in ("identical", "equivalent") and row.status == "ok"


def _columns(by_device: _ByDevice) -> list[Column]:
    rows = [(who if at == 0 else "", one) for who, held in by_device for at, one in enumerate(held)]

    def cells(*texts: str) -> list[Text]:
        return [Text(text) for text in texts]

    def numbers(first: str, second: str, name: str) -> Column:
        values = (getattr(one, name) for _, one in rows)
        return Column((first, second), cells(*map(metric, values)), right=True)

    columns = [
        Column(("", "path"), cells(*(who for who, _ in rows))),
        numbers("", "device", "device"),
        Column(("", "part"), cells(*(part(one) for _, one in rows))),
        numbers("", "replica", "replica"),
        numbers("differ", "vs baseline", "differing"),
        numbers("max abs", "vs f64", "max_abs"),
        numbers("max ulp", "vs f64", "max_ulp"),
        numbers("rms rel", "vs f64", "rms_rel"),
        numbers("differ", "vs replica 0", "apart"),
        numbers("max abs", "vs replica 0", "max_apart"),
    ]
    return [column for column in columns if any(cell.plain for cell in column.cells)]
