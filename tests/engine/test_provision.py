"""Environments by name."""

import sys
from pathlib import Path

import pytest

from parity.config import Config, EnvironmentConfig
from parity.engine import provision
from parity.engine.environment import Environment
from parity.engine.provision import resolve
from parity.errors import UserError


def config(tmp_path, **environments):
    return Config(root=tmp_path, environments=environments)


def test_default_is_this_interpreter(tmp_path):
    assert resolve("default", config(tmp_path)) == Environment("default", sys.executable)


def test_an_unknown_name_says_which_there_are(tmp_path):
    with pytest.raises(UserError) as caught:
        resolve("odl", config(tmp_path, old=EnvironmentConfig(python="x")))
    assert str(caught.value) == (
        "unknown environment (got odl; allowed default, old, or NAME=path/to/python)\n"
        "hint: define it in [tool.parity.environments.odl] of pyproject.toml"
    )


def test_an_interpreter_or_the_folder_of_an_environment_under_a_name(tmp_path):
    python = tmp_path / "env" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.symlink_to(sys.executable)
    expected = Environment("mine", str(python))
    assert resolve(f"mine={python}", config(tmp_path)) == expected
    assert resolve(f"mine={tmp_path / 'env'}", config(tmp_path)) == expected
    variables = {"XLA_FLAGS": "--xla_x=1"}
    named = config(tmp_path, mine=EnvironmentConfig(python="env", variables=variables))
    assert resolve("mine", named) == Environment("mine", str(python), variables)


def test_an_interpreter_that_is_not_there(tmp_path):
    with pytest.raises(UserError) as caught:
        resolve("mine=/no/python", config(tmp_path))
    assert caught.value.message == (
        "--env mine=/no/python: there is no interpreter (got /no/python)"
    )
    with pytest.raises(UserError, match=r"\[tool\.parity\.environments\.mine\]: there is no"):
        resolve("mine", config(tmp_path, mine=EnvironmentConfig(python="nothing")))


class TestRequirements:
    @pytest.fixture
    def calls(self, tmp_path, monkeypatch):
        """No pip: `refused` cannot be installed. The commands that were called."""
        monkeypatch.setattr(provision.platformdirs, "user_cache_dir", lambda name: str(tmp_path))
        found = []

        def call(command, name, say):
            found.append(command)
            if "venv" in command:
                python = Path(command[-1]) / "bin" / "python"
                python.parent.mkdir(parents=True)
                python.touch()
            if "refused" in command:
                raise UserError("refused")

        monkeypatch.setattr(provision, "_call", call)
        return found

    def test_a_virtual_environment_is_made_once(self, tmp_path, calls):
        said = []
        named = config(tmp_path, old=EnvironmentConfig(("jax==0.4.38", "numpy")))
        made = resolve("old", named, say=said.append)
        assert Path(made.python).is_relative_to(tmp_path / "environments")
        assert calls[0][1:3] == ["-m", "venv"]
        assert calls[1][0] == made.python
        assert calls[1][-2:] == ["jax==0.4.38", "numpy"]
        assert said == [f"environment old: making {Path(made.python).parents[1]}"]
        assert resolve("old", named) == made
        assert len(calls) == 2

    def test_other_requirements_are_another_one(self, tmp_path, calls):
        first = resolve("old", config(tmp_path, old=EnvironmentConfig(("jax==0.4.38",))))
        second = resolve("old", config(tmp_path, old=EnvironmentConfig(("jax==0.5.0",))))
        assert first.python != second.python

    def test_one_that_was_not_finished_is_made_again(self, tmp_path, calls):
        bad = config(tmp_path, old=EnvironmentConfig(("refused",)))
        for _ in range(2):
            with pytest.raises(UserError, match="refused"):
                resolve("old", bad)
        assert len(calls) == 4


def test_a_command_that_fails_shows_its_last_lines():
    with pytest.raises(UserError) as caught:
        provision._call(
            [sys.executable, "-c", "print('Collecting x'); raise SystemExit('no such package')"],
            "old",
            lambda line: None,
        )
    first, *tail = caught.value.message.splitlines()
    assert first.startswith("environment old cannot be made: ")
    assert sorted(tail) == ["Collecting x", "no such package"]


def test_a_command_tells_what_it_installs():
    said = []
    provision._call([sys.executable, "-c", "print('Collecting x\\nnoise')"], "old", said.append)
    assert said == ["environment old: Collecting x"]
