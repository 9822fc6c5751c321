"""The command that runs a case again is one that runs."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from parity.api import options
from parity.compare.result import CaseResult
from parity.config import load_config
from parity.record.encoding import dumps
from parity.record.result import RunResult
from parity.record.store import Store
from parity.report.html.run import run_page
from parity.report.rerun import arguments
from parity.report.summary import Tally, last_line

PROJECT = """\
[tool.parity.environments.named]
python = "venv/python"
"""


@pytest.mark.parametrize(
    ("given", "again"),
    [
        ({}, {"default": []}),
        ({"python": "venv/python"}, {"default": ["--python", "venv/python"]}),
        (
            {"env": ["new=venv/python", "named"]},
            {"new": ["--env", "new={here}/venv/python"], "named": ["--env", "named"]},
        ),
        ({"env": ["default", "named"]}, {"default": ["--env", "default"]}),
    ],
)
def test_an_environment_is_asked_for_as_it_was_given(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    given: dict[str, Any],
    again: dict[str, list[str]],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("pyproject.toml").write_text(PROJECT)
    Path("venv").mkdir()
    Path("venv/python").symlink_to(sys.executable)
    chosen = options(load_config(tmp_path), **given)
    facts = {"arguments": dumps({one.name: one.arguments for one in chosen.environments})}
    for name, wanted in again.items():
        assert arguments(facts, name) == [word.format(here=tmp_path) for word in wanted]


def test_of_an_older_record_the_name_is_all_that_is_known() -> None:
    assert arguments({}, "new") == ["--env", "new"]
    assert arguments({}, "default") == []


@pytest.fixture
def result(maker: Any) -> RunResult:
    store = Store(None, version="1.0", arguments={"default": ["--python", "/opt/a b/python"]})
    one: CaseResult = maker.result("cases/a.yaml::a", {"eager": {"out": np.float32([1])}})
    store.environment("default", {"jax": "0.7.1"})
    store.add(one, {})
    return RunResult(store.environments(), store.results(), 1)


def test_every_command_has_them(result: RunResult) -> None:
    page = run_page(result)
    wanted = ["--python", "/opt/a b/python"]
    assert shlex.split(page.context["command"])[3:] == wanted
    assert shlex.split(page.index["arguments"]["default"]) == wanted
    tally = Tally()
    tally.add(list(result.cases))
    said = last_line(result, tally, None).plain
    assert said.endswith(
        "look further: parity run cases/a.yaml::a --python '/opt/a b/python' --format json"
    )
