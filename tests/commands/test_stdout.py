from __future__ import annotations

import sys

import pytest

from parity.commands.stdout import shape


def test_color_and_width_follow_terminal_and_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("NO_COLOR", "COLUMNS"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("TERM", "xterm")

    def how(**environment: str) -> tuple[int | None, bool]:
        with monkeypatch.context() as patch:
            for name, value in environment.items():
                patch.setenv(name, value)
            return shape()

    assert how() == (None, False)
    assert how(COLUMNS="66") == (66, False)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    assert how(COLUMNS="66") == (66, True)
    assert how(COLUMNS="66", NO_COLOR="1") == (66, False)
    assert how(COLUMNS="66", TERM="dumb") == (66, False)
