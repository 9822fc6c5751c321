"""Cases in, judged rows out: executes, compares, judges and records."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from parity.casefile.case import Case
from parity.casefile.exactness import exact_until
from parity.compare.expect import judge
from parity.compare.rows import Row, compare_case, groups, reference_rows
from parity.compare.words import words
from parity.engine import session
from parity.engine.session import Execution
from parity.record.store import Store

if TYPE_CHECKING:
    import pandas as pd

Selected = tuple[Case, tuple[str, ...]]
"""A case and the paths of it that are asked for."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """How a run is done.

    Attributes:
        timeout: seconds a path may take.
        fail_on: the best grade that is a finding.
        python: interpreter of the environment under test, this one if None.
        out: folder for the record, None for no record.
    """

    timeout: float = 300.0
    fail_on: str = "divergent"
    python: str | None = None
    out: Path | None = None


@dataclass(frozen=True)
class CaseResult:
    """What became of one case.

    Attributes:
        case: which one.
        rows: judged, one per path and output.
        references: `f64` and `strict` in the same form.
        groups: by output, the paths that gave equal bits.
        words: one line for each path that is not identical.
        notes: what a reader must know of the references.
    """

    case: Case
    rows: tuple[Row, ...]
    references: tuple[Row, ...]
    groups: Mapping[str, tuple[tuple[str, ...], ...]]
    words: tuple[str, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class RunResult:
    """A whole run.

    Attributes:
        environment: what the paths ran in.
        cases: in the order in which they were asked for.
        wanted: how many cases were asked for; more than `cases` if it was interrupted.
        interrupted: by Ctrl-C.
        record: the file that keeps it, None if none does.
    """

    environment: Mapping[str, str]
    cases: tuple[CaseResult, ...]
    wanted: int
    interrupted: bool = False
    record: Path | None = None

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """Every row of every case."""
        return tuple(row for case in self.cases for row in case.rows)

    @property
    def verdict(self) -> str:
        """ "ok", "findings" or "interrupted"."""
        if self.interrupted:
            return "interrupted"
        return "findings" if any(row.is_finding for row in self.rows) else "ok"

    @property
    def exit_code(self) -> int:
        """0 fine, 1 a finding, 130 interrupted."""
        return {"ok": 0, "findings": 1, "interrupted": 130}[self.verdict]

    def table(self) -> pd.DataFrame:
        """One line per case, path and output, with every metric."""
        import pandas as pd

        from parity.compare.rows import as_dict

        return pd.DataFrame([as_dict(row) for row in self.rows])


class Session:
    """Runs cases one after the other in workers that stay: a context manager.

    Args:
        options: how.
    """

    def __init__(self, options: Options | None = None) -> None:
        self._options = options or Options()
        self._workers = session.Session(python=self._options.python, timeout=self._options.timeout)

    def __enter__(self) -> Session:
        self._workers.__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        self._workers.__exit__(*exc)

    @property
    def environment(self) -> Mapping[str, str]:
        """What the paths run in; empty before the first case."""
        return self._workers.environment

    def run(self, case: Case, paths: Sequence[str]) -> CaseResult:
        """Execute and compare one case."""
        return self.compare(case, paths, self.execute(case, paths))

    def execute(self, case: Case, paths: Sequence[str]) -> Execution:
        """Run the paths, and the baseline with them, since the others are compared with it."""
        return self._workers.execute(case, tuple(dict.fromkeys((*paths, case.baseline))))

    def compare(self, case: Case, paths: Sequence[str], execution: Execution) -> CaseResult:
        """Measure, grade and judge what was executed; rows for `paths` alone."""
        outcomes, references = execution.outcomes, execution.references
        compared = compare_case(case, outcomes, references)
        rows = judge(
            case,
            tuple(row for row in compared if row.path in paths),
            environment=self.environment,
            fail_on=self._options.fail_on,
        )
        outputs = dict.fromkeys(name for outcome in outcomes for name in outcome.outputs)
        return CaseResult(
            case,
            rows,
            reference_rows(case, references),
            {name: groups(outcomes, name) for name in outputs},
            words(case, rows, outcomes, references),
            (*references.notes, *filter(None, [exact_until(case)])),
        )


def run_cases(
    selected: Sequence[Selected],
    options: Options,
    *,
    progress: Callable[[CaseResult], None] = lambda result: None,
) -> RunResult:
    """Run cases in order; comparing one overlaps with executing the next.

    Args:
        selected: cases with the paths to run of each.
        options: how.
        progress: told of each case when it is done.

    Raises:
        WorkerStartError: the environment cannot execute anything.
        UserError: the record cannot be written, an array file cannot be read.
    """
    from parity import __version__

    store = None if options.out is None else Store(options.out, version=__version__)
    done: list[CaseResult] = []
    interrupted = False

    def keep(result: CaseResult) -> None:
        if store is not None:
            _record(store, result)
        done.append(result)
        progress(result)

    with Session(options) as running, ThreadPoolExecutor(1) as comparing:
        waiting: deque[Future[CaseResult]] = deque()
        try:
            for case, paths in selected:
                execution = running.execute(case, paths)
                if store is not None and not done and not waiting:
                    store.environment(running.environment)
                waiting.append(comparing.submit(running.compare, case, paths, execution))
                while waiting and (waiting[0].done() or len(waiting) > 2):
                    keep(waiting.popleft().result())
            while waiting:
                keep(waiting.popleft().result())
        except KeyboardInterrupt:
            interrupted = True
            for future in waiting:
                keep(future.result())
        result = RunResult(
            running.environment,
            tuple(done),
            len(selected),
            interrupted,
            None if store is None else store.file,
        )
        if store is not None:
            store.close(result.verdict)
    return result


def _record(store: Store, result: CaseResult) -> None:
    from parity.compare.rows import as_dict
    from parity.report.json import dumps

    store.add(
        result.case,
        [as_dict(row) for row in result.rows],
        [as_dict(row) for row in result.references],
        dumps,
    )
