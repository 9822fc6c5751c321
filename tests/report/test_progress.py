from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from parity.compare.result import CaseResult
from parity.report.progress import Progress


@pytest.fixture
def two(maker: Any) -> list[CaseResult]:
    good = {"out": np.float32([1])}
    off = {"out": np.float32([2])}
    return [
        maker.result("cases/a.yaml::a", {"eager": good, "jit": good}),
        maker.result("cases/a.yaml::b", {"eager": good, "jit": off}),
    ]


def test_off_a_terminal_each_case_is_a_line_on_stderr(
    two: list[CaseResult], capsys: pytest.CaptureFixture[str]
) -> None:
    with Progress(12) as progress:
        for result, seconds in zip(two, (1.25, None), strict=True):
            progress(result, seconds)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == [
        "[ 1/12] ok     cases/a.yaml::a  1.2 s",
        "[ 2/12] FAILED cases/a.yaml::b  cached",
    ]


def test_each_environment_counts_and_is_named(
    two: list[CaseResult], capsys: pytest.CaptureFixture[str]
) -> None:
    with Progress(2, 3) as progress:
        progress(replace(two[0], environment="old"), 0.5)
    assert capsys.readouterr().err == "[1/6] ok     cases/a.yaml::a  old  0.5 s\n"


_ON_A_TERMINAL = """
from types import SimpleNamespace as Fake
from parity.report.progress import Progress
with Progress(2) as progress:
    progress(Fake(rows=[Fake(is_finding=True)]), 1.0)
    progress(Fake(rows=[Fake(is_finding=False)]), 1.0)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals are POSIX")
def test_on_a_terminal_a_bar_counts_the_cases() -> None:
    import pty

    parent, child = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "80"}
    done = subprocess.run(
        [sys.executable, "-c", _ON_A_TERMINAL],
        stdout=subprocess.PIPE,
        stderr=child,
        env=environment,
        timeout=60,
        check=False,
    )
    os.close(child)
    shown = os.read(parent, 65536).decode()
    os.close(parent)
    assert (done.returncode, done.stdout) == (0, b"")
    assert "2/2 cases, 1 row failed" in shown
