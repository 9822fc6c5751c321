"""`parity accept` of a comparison: what got worse between two runs, or better."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from parity.worker.protocol import Failure

from .case import FILE, HEAD, SWEEP

Invoke = Callable[..., tuple[int, str, str]]
Run = Callable[..., str]
Gives = Any
Accepted = Callable[..., str]


class TestComparison:
    """What changed between two runs, as `parity diff --format json` says it."""

    def compared(self, invoke: Invoke, before: str, after: str) -> str:
        code, out, err = invoke("diff", before, after, "--format", "json")
        assert code in (0, 1), err
        Path("diff.json").write_text(out)
        return "diff.json"

    def test_only_what_got_worse_is_accepted(
        self, invoke: Invoke, run: Run, gives: Gives, accepted: Accepted
    ) -> None:
        gives("jit", 11.25, seed="1")
        before = run(HEAD + SWEEP)
        gives("jit", 11.25, seed="2")
        gives("jax2tf-native", 11.25)
        after = run()
        assert accepted(self.compared(invoke, before, after)) == (
            "expect:\n  - path: jit\n    where: {seed: 2}\n"
            "    grade: divergent\n    because: known\n"
        )

    def test_what_is_no_longer_supported_is_accepted_as_such(
        self, invoke: Invoke, run: Run, gives: Gives
    ) -> None:
        before = run(HEAD)
        gives("jit", Failure("unsupported", "lower", "Unsupported", "removed"))
        after = run()
        where = ("--case", "*", "--path", "jit", "--reason", "known", "--yes")
        assert invoke("accept", after, *where)[0] == 5  # the run alone finds no fault with it
        difference = self.compared(invoke, before, after)
        assert invoke("accept", difference, *where)[0] == 0
        assert "outcome: unsupported" in FILE.read_text()
        assert invoke("diff", before, run())[0] == 0

    def test_what_got_better_is_accepted_apart(
        self, invoke: Invoke, run: Run, gives: Gives
    ) -> None:
        gives("jit", 11.25)
        gives("jax2tf-native", 11.25)
        before = run(HEAD + "expect: [{path: jit, grade: divergent, because: x}]\n")
        gives("jit", 11)
        after = run()
        difference = self.compared(invoke, before, after)
        where = ("--case", "*", "--path", "jit", "--yes")
        assert invoke("accept", difference, *where, "--reason", "x")[0] == 5
        assert invoke("accept", difference, *where, "--better")[0] == 0
        assert FILE.read_text() == HEAD

    @pytest.mark.parametrize("text", ["", "{}", '{"format": "parity-run/1"}', "\udcff"])
    def test_another_file_is_refused(self, invoke: Invoke, text: str) -> None:
        Path("x.json").write_bytes(text.encode("utf-8", "surrogateescape"))
        code, _, err = invoke("accept", "x.json", "--case", "*", "--path", "jit", "--reason", "x")
        assert (code, err.splitlines()[0]) == (
            2,
            "error: x.json: is neither a record nor a comparison of two",
        )

    def test_a_record_that_is_gone_is_named(self, invoke: Invoke, run: Run, gives: Gives) -> None:
        before = run(HEAD)
        gives("jit", 11.25)
        after = run()
        difference = self.compared(invoke, before, after)
        Path(after).unlink()
        code, _, err = invoke("accept", difference, "--case", "*", "--path", "jit", "--reason", "x")
        assert (code, err.splitlines()[0]) == (
            2,
            f"error: diff.json: the record of side B is not there (got {after})",
        )
