"""How a case file is changed, and what is asked and refused before."""

from __future__ import annotations

import datetime
import io
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .case import FILE, HEAD

Invoke = Callable[..., tuple[int, str, str]]
Run = Callable[..., str]
Gives = Any


class TestTheFile:
    def test_every_other_byte_stays_and_so_does_the_mode(
        self, invoke: Invoke, run: Run, gives: Gives
    ) -> None:
        gives("jit", 11.25)
        raw = b"\xef\xbb\xbf" + (HEAD + "# of the end").replace("\n", "\r\n").encode()
        (Path("cases") / "real").mkdir()
        real = Path("cases/real/d.txt")
        real.write_bytes(raw)
        real.chmod(0o640)
        FILE.symlink_to("real/d.txt")
        record = run()
        arguments = ["accept", record, "--case", "*", "--path", "jit", "--reason", "x", "--yes"]
        assert invoke(*arguments)[0] == 0
        assert real.read_bytes() == raw + (
            b"\r\nexpect:\r\n  - path: jit\r\n    grade: divergent\r\n    because: x"
        )
        assert FILE.is_symlink()
        assert real.stat().st_mode & 0o777 == 0o640
        assert sorted(os.listdir("cases/real")) == ["d.txt"]
        assert invoke("run", "--no-cache")[0] == 0

    def test_one_whose_cases_have_changed_is_refused(
        self, invoke: Invoke, run: Run, gives: Gives
    ) -> None:
        gives("jit", 11.25)
        record = run(HEAD)
        arguments = ["accept", record, "--case", "*", "--path", "jit", "--reason", "x", "--yes"]
        FILE.write_text(HEAD.replace("[3, 4]", "[3, 5]"))
        assert invoke(*arguments) == (
            2,
            "",
            "cases/d.yaml: cases/d.yaml::d has another operands since the record was written\n"
            "hint: parity run cases/d.yaml\n",
        )
        FILE.write_text(HEAD + "sweep: {seed: [1, 2]}\n")
        assert invoke(*arguments)[2].startswith(
            "cases/d.yaml: cases/d.yaml::d is gone since the record was written\n"
        )
        FILE.write_text(HEAD.replace("A case", "Another case") + "timeout: 3\n")
        assert invoke(*arguments)[0] == 0

    def test_where_no_splice_is_possible_it_says_what_to_write(
        self, invoke: Invoke, run: Run, gives: Gives
    ) -> None:
        gives("jit", 12)
        text = HEAD + "expect:\n  - &e {path: jit, grade: divergent, because: x}\n  - *e\n"
        record = run(text)
        code, _, err = invoke(
            "accept", record, "--case", "*", "--path", "jit", "--reason", "anew", "--yes"
        )
        assert (code, FILE.read_text()) == (2, text)
        assert err == (
            "cases/d.yaml:9:5: expect cannot be edited without changing more than that\n"
            "hint: write by hand as expect[0]: - {path: jit, grade: inaccurate, because: anew}\n"
        )


class TestAsking:
    @pytest.fixture
    def record(self, run: Run, gives: Gives) -> str:
        gives("jit", 11.25)
        return run(HEAD)

    def test_without_a_terminal_nothing_is_written(self, invoke: Invoke, record: str) -> None:
        code, out, err = invoke("accept", record, "--case", "*", "--path", "jit", "--reason", "x")
        assert (code, FILE.read_text()) == (2, HEAD)
        assert out.startswith("--- cases/d.yaml\n")
        assert err == (
            "accepts 1 row in 1 file\n"
            "error: nothing is written, because there is no terminal to ask on\n"
            "hint: --yes writes it, --dry-run shows it only\n"
        )

    @pytest.mark.parametrize(("answer", "written"), [("y", True), ("n", False), ("", False)])
    def test_on_a_terminal_it_asks(
        self,
        invoke: Invoke,
        record: str,
        monkeypatch: pytest.MonkeyPatch,
        answer: str,
        written: bool,
    ) -> None:
        class Terminal(io.StringIO):
            def isatty(self) -> bool:
                return True

        monkeypatch.setattr(sys, "stdin", Terminal(f"{answer}\n"))
        code, _, err = invoke("accept", record, "--case", "*", "--path", "jit", "--reason", "x")
        assert code == 0
        assert "Write it? [y/N]: " in err
        assert err.endswith("wrote cases/d.yaml\n" if written else "nothing is written\n")
        assert (FILE.read_text() != HEAD) is written

    def test_on_a_terminal_the_diff_has_colours(
        self, invoke: Invoke, record: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("parity.commands.accept.shape", lambda: (80, True))
        arguments = ["accept", record, "--case", "*", "--path", "jit", "--reason", "x"]
        out = invoke(*arguments, "--dry-run")[1]
        assert "\x1b[32m+    grade: divergent\n\x1b[0m" in out

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (
                [],
                "--case and --path are missing: both say what is accepted\n"
                "hint: --case '*' --path jit takes every case on one path\n",
            ),
            (
                ["--case", "*", "--path", "jit"],
                "an entry needs a reason\nhint: --reason 'why it is accepted'\n",
            ),
            (["--case", "*", "--path", "jit", "--reason", " "], "--reason is empty\n"),
            (
                ["--case", "*"],
                "--path is missing: both say what is accepted\nhint: --case '*' --path "
                "jit takes every case on one path\n",
            ),
            (
                ["--path", "jit"],
                "--case is missing: both say what is accepted\nhint: --case '*' "
                "--path jit takes every case on one path\n",
            ),
            (
                ["--case", "*", "--path", "jit", "--reason", "x", "--link", "foo"],
                "wrong --link (got foo; allowed an address, https://…)\n",
            ),
            (["--remove"], "--remove stands beside --stale only\n"),
            (
                ["--worse", "--better"],
                "--worse and --better exclude each other\nhint: accept one, then the other\n",
            ),
            (
                ["--case", "*", "--path", "jit", "--until", "31.1.2026"],
                "wrong --until (got 31.1.2026; allowed YYYY-MM-DD)\n",
            ),
            (
                ["--case", "*", "--path", "jit", "--until", "2020-01-31"],
                f"--until is past (got 2020-01-31; today is {datetime.date.today()})\n",
            ),
            (
                ["--case", "*", "--path", "jit", "--grade", "bad"],
                "unknown grade (got bad; allowed identical, equivalent, divergent, inaccurate, "
                "mismatched)\n",
            ),
            (
                ["--case", "*", "--path", "jit", "--when", "jaxx=>=0.7"],
                "--when: unknown key 'jaxx' in when (got jaxx; allowed jax, tensorflow, platform, "
                "cpu)\nhint: did you mean 'jax'?\n",
            ),
            (
                ["--case", "*", "--path", "jit", "--when", "jax"],
                "wrong --when (got jax; allowed NAME=SPEC, each name once)\n",
            ),
        ],
    )
    def test_mistakes(
        self, invoke: Invoke, record: str, arguments: list[str], message: str
    ) -> None:
        assert invoke("accept", record, *arguments) == (2, "", f"error: {message}")

    def test_selections_that_match_nothing(self, invoke: Invoke, record: str) -> None:
        rest = ["--reason", "x", "--yes"]
        for chosen in (["--case", "*e", "--path", "jit"], ["--case", "*", "--path", "jti"]):
            assert invoke("accept", record, *chosen, *rest)[0] == 5

    def test_never_in_ci(
        self, invoke: Invoke, record: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        arguments = ["accept", record, "--case", "*", "--path", "jit", "--reason", "x", "--yes"]
        monkeypatch.setenv("CI", "true")
        assert invoke(*arguments) == (
            2,
            "",
            "error: parity accept never runs in CI (got the environment variable CI=true)\n"
            "hint: run it where a person reads the diff, and commit that\n",
        )
        assert FILE.read_text() == HEAD
        monkeypatch.setenv("CI", "false")
        assert invoke(*arguments)[0] == 0


def test_there_is_no_way_to_accept_while_running(invoke: Invoke) -> None:
    code, _, err = invoke("run", "--update-expectations")
    assert (code, err.splitlines()[0]) == (
        2,
        "error: unknown option of parity run (got --update-expectations)",
    )
