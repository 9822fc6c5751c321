"""README and help texts against the code."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from parity.casefile.load import load
from parity.cli import commands
from parity.config import KEYS
from parity.program.spec import PROGRAMS

README = Path(__file__).parents[1] / "README.md"


def fenced(text: str) -> Iterator[tuple[str, list[str]]]:
    """Language and lines of each fenced block."""
    for language, body in re.findall(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        yield language, body.splitlines()


def command_lines(text: str) -> list[list[str]]:
    """The words after `parity` of every command in the fenced blocks, $ prompts or not."""
    found = []
    for language, lines in fenced(text):
        if language not in ("", "sh", "bash", "console", "shell"):
            continue
        for line in lines:
            for part in re.split(r"&&|\|\||[;|]", line.removeprefix("$ ")):
                try:
                    words = shlex.split(part, comments=True)
                except ValueError:
                    continue
                if words and Path(words[0]).name == "parity":
                    found.append(words[1:])
    return found


def help_text(*command: str) -> str:
    return CliRunner().invoke(commands, [*command, "--help"]).output


def options(command: click.Command) -> set[str]:
    flags = {flag for p in command.params if isinstance(p, click.Option) for flag in p.opts}
    return flags | {"--help", "-h"}


def problems(words: list[str]) -> list[str]:
    """What is wrong with a command line of the README."""
    if not words or words[0].startswith("-"):
        return [word for word in words if word not in {"--help", "-h", "--version"}]
    command = commands.commands.get(words[0])
    if command is None:
        return [words[0]]
    if isinstance(command, click.Group):
        command = command.commands.get(words[1] if len(words) > 1 else "")
        if command is None:
            return words[:2]
    flags = [word.partition("=")[0] for word in words[1:] if re.match(r"-{1,2}[a-z]", word)]
    return [flag for flag in flags if flag not in options(command)]


def test_the_check_sees_mistakes() -> None:
    text = "```console\n$ parity rnu x\n$ .venv/bin/parity run --fromat json && parity list\n```\n"
    assert command_lines(text) == [["rnu", "x"], ["run", "--fromat", "json"], ["list"]]
    assert [problems(words) for words in command_lines(text)] == [["rnu"], ["--fromat"], []]


def test_every_command_in_the_readme_exists() -> None:
    lines = command_lines(README.read_text(encoding="utf-8"))
    assert lines, "the README shows no command"
    assert {" ".join(words): problems(words) for words in lines if problems(words)} == {}


def test_the_case_files_of_the_readme_load(tmp_path: Path) -> None:
    (tmp_path / "training.py").write_text("def step(x, momentum): ...\n")
    shown = [lines for language, lines in fenced(README.read_text("utf-8")) if language == "yaml"]
    files = [lines for lines in shown if any(line.startswith("operands:") for line in lines)]
    found = []
    for lines in files:
        text = "\n".join(lines) + "\n"
        found += [case.program.op for case in load(tmp_path / "case.yaml", text=text).cases]
    assert set(found) == {"dot_general", *PROGRAMS}


def test_every_key_of_the_configuration_is_documented() -> None:
    text = README.read_text(encoding="utf-8") + help_text()
    assert [key for key in KEYS if not re.search(rf"\b{key}\b", text)] == []


@pytest.mark.parametrize("name", commands.commands)
def test_every_option_has_a_help_text(name: str) -> None:
    command = commands.commands[name]
    silent = [p.name for p in command.params if isinstance(p, click.Option) and not p.help]
    assert silent == []
    assert command.help


def test_every_command_has_a_whole_summary() -> None:
    assert "..." not in help_text().partition("Commands:")[2]


def test_defaults_in_help_texts_are_the_defaults() -> None:
    from parity.config import Config

    shown = " ".join(help_text("run").split())
    defaults = Config(root=Path())
    assert f"Seconds that a path may take [{defaults.timeout:g}]" in shown
    assert f"The mildest grade that is a finding [{defaults.fail_on}]" in shown
