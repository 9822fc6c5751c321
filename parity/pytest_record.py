"""One record that all processes of a pytest session write into, and the report made of it."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from parity import __version__
from parity.record.result import open_record
from parity.record.store import Store

if TYPE_CHECKING:
    from parity.engine.task import Done


class SharedRecord:
    """A record in a folder of its own, which vanishes with the session that made it.

    Args:
        facts: how the run is done, the same in every process.
        file: that another process made, None to make one.

    Raises:
        UserError: it cannot be written.
    """

    def __init__(self, facts: Mapping[str, Any], file: Path | None = None) -> None:
        self._facts = facts
        self._folder = None if file is not None else Path(tempfile.mkdtemp(prefix="parity-"))
        if self._folder is not None:
            made = Store(self._folder, version=__version__, options=facts, keep="none")
            made.close()
            file = made.file
        assert file is not None
        self.file = file
        self._store: Store | None = None

    def add(self, done: Done, *, position: int, wanted: int) -> None:
        """Keep what became of a case.

        Args:
            done: that.
            position: of the case among all that are asked for.
            wanted: how many those are.
        """
        if self._store is None:
            self._store = Store.resume(
                self.file, version=__version__, options=self._facts, wanted=wanted
            )
        self._store.environment(done.result.environment, done.found)
        self._store.add(done.result, done.outputs, position=position)

    def close(self) -> None:
        """Let go of the file."""
        if self._store is not None:
            self._store.close()
            self._store = None

    def write_page(self, page: Path, *, interrupted: bool) -> bool:
        """Write the HTML report of what was kept; whether there was anything.

        Raises:
            UserError: the report cannot be written.
        """
        from parity.report.html.run import write_run

        self.close()
        result = replace(open_record(self.file), interrupted=interrupted, record=None)
        if not result.cases:
            return False
        write_run(result, page)
        return True

    def remove(self) -> None:
        """Remove the record, if this is the process that made it."""
        self.close()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
