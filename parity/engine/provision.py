"""Environments by name: an interpreter that is there, or a virtual environment made once."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import filelock
import platformdirs

from parity.config import Config, EnvironmentConfig
from parity.engine.environment import DEFAULT, Environment
from parity.errors import UserError

_COMPLETE = "parity-complete"
"""A file that is written last: a half-made environment has none and is made again."""


def resolve(
    name: str, config: Config, *, say: Callable[[str], None] = lambda line: None
) -> Environment:
    """The environment that `--env` names.

    Args:
        name: NAME from `[tool.parity.environments]`, or NAME=path/to/python.
        config: where names are defined.
        say: told what is being done while a virtual environment is made.

    Raises:
        UserError: no such environment or interpreter, or pip could not install what it needs.
    """
    name, separator, python = name.partition("=")
    if separator:
        interpreter = _interpreter(Path(python), f"--env {name}={python}")
        return Environment(name, interpreter, arguments=("--env", f"{name}={interpreter}"))
    if name == DEFAULT and name not in config.environments:
        return Environment(arguments=("--env", name))
    if name not in config.environments:
        known = ", ".join([DEFAULT, *config.environments])
        raise UserError(
            f"unknown environment (got {name}; allowed {known}, or NAME=path/to/python)",
            hint=f"define it in [tool.parity.environments.{name}] of pyproject.toml",
        )
    chosen = config.environments[name]
    if chosen.python is not None:
        where = f"[tool.parity.environments.{name}]"
        python = _interpreter(config.root / chosen.python, where)
    else:
        python = str(_made(name, chosen, say))
    return Environment(name, python, chosen.variables, ("--env", name))


def _interpreter(path: Path, where: str) -> str:
    if path.is_dir():
        path = path / "bin" / "python"
    if not os.access(path, os.X_OK):
        raise UserError(
            f"{where}: there is no interpreter (got {path})",
            hint="give the path of a Python, or of a virtual environment's folder",
        )
    return os.path.abspath(path)


def _made(name: str, chosen: EnvironmentConfig, say: Callable[[str], None]) -> Path:
    """The interpreter of a virtual environment with the requirements; made if it is not there."""
    text = "\n".join([sys.version, *chosen.requirements])
    short = hashlib.sha256(text.encode()).hexdigest()[:12]
    folder = Path(platformdirs.user_cache_dir("parity")) / "environments" / f"{name}-{short}"
    python = folder / "bin" / "python"
    if (folder / _COMPLETE).exists():
        return python
    folder.parent.mkdir(parents=True, exist_ok=True)
    with filelock.FileLock(folder.with_suffix(".lock")):
        if not (folder / _COMPLETE).exists():
            say(f"environment {name}: making {folder}")
            shutil.rmtree(folder, ignore_errors=True)
            _call([sys.executable, "-m", "venv", str(folder)], name, say)
            pip = [str(python), "-m", "pip", "install", "--disable-pip-version-check"]
            _call([*pip, *chosen.requirements], name, say)
            (folder / _COMPLETE).touch()
    return python


def _call(command: list[str], name: str, say: Callable[[str], None]) -> None:
    """Run a command and pass on what it says, a line at a time."""
    tail: list[str] = []
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            line = line.rstrip()
            tail = [*tail[-19:], line]
            if line.startswith(("Collecting", "Downloading", "Installing", "Successfully")):
                say(f"environment {name}: {line}")
    if process.returncode:
        raise UserError(
            f"environment {name} cannot be made: {' '.join(command[:4])} … failed\n"
            + "\n".join(tail),
            hint="check its requirements in pyproject.toml",
        )
