"""Explanations of the rows of a run, made while its workers are there."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from typing import Any

from parity.engine.task import Arrived, Done, Task, work
from parity.engine.workers import Workers
from parity.explain.explanation import Explanation, explain
from parity.explain.sections import headline, sections
from parity.record.encoding import dumps, loads


def explained(
    workers: Workers,
    task: Task,
    say: Callable[[Arrived | Done], None] = lambda arrived: None,
    *,
    seconds: float,
) -> Done:
    """Run a task, then explain each of its paths that has output and not the baseline's bits.

    Args:
        workers: which run it.
        task: which.
        say: told of each outcome as soon as it is there.
        seconds: that the explanation of a path may take.
    """
    begin = time.perf_counter()
    done = work(workers, task, say)
    found: dict[str, Explanation] = {}
    for path in dict.fromkeys(row.path for row in done.result.rows if _asks(row.grade)):
        if path != task.case.baseline:
            found[path] = explain(workers, task.case, path, task.environment, seconds=seconds)
    if not found:
        return done
    flat = {path: as_plain(one) for path, one in found.items()}
    rows = tuple(
        replace(row, explanation=flat[row.path]) if row.path in flat and _asks(row.grade) else row
        for row in done.result.rows
    )
    words = (f"explained: {of['headline']}" for of in flat.values())
    result = replace(done.result, rows=rows, words=(*done.result.words, *words))
    return replace(done, result=result, seconds=time.perf_counter() - begin)


def _asks(grade: str | None) -> bool:
    """Whether a row is to be explained."""
    return grade not in (None, "identical")


def as_plain(found: Explanation) -> Mapping[str, Any]:
    """An explanation as a row carries it, as JSON has it.

    Its keys: headline, against, models (by output), seconds, sections (`sections.Section`).
    """
    flat = {
        "headline": headline(found),
        "against": found.against,
        "models": {one.output: one.name for one in found.attributions},
        "seconds": found.seconds,
        "sections": [asdict(section) for section in sections(found)],
    }
    plain: dict[str, Any] = loads(dumps(flat))
    return plain
