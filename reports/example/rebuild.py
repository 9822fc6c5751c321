"""Rebuilds the example: its two pages from its record; with two interpreters the record, too.

    python reports/example/rebuild.py [FOLDER]
    python reports/example/rebuild.py OLD_PYTHON NEW_PYTHON

FOLDER takes the pages instead of this one. The record is of four case files in JAX 0.4.38 with
TensorFlow 2.17.1 and in JAX 0.7.1 with TensorFlow 2.20.0.
"""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
CASES = ("conv_bf16", "conv_preferred_vjp", "bf16_long_sum", "fp8_dot")


def parity(*arguments: str | Path) -> None:
    """Run a parity command in the project; a finding is no failure."""
    command = [sys.executable, "-m", "parity", *map(str, arguments)]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL)
    if done.returncode not in (0, 1):
        sys.exit(done.returncode)


def record(old: str, new: str) -> None:
    """Run the cases; the record knows no folder of this machine."""
    files = [f"cases/{name}.yaml" for name in CASES]
    environments = ("--env", f"old={old}", "--env", f"new={new}")
    with tempfile.TemporaryDirectory() as folder:
        parity("run", *files, *environments, "--no-cache", "--out", folder)
        (made,) = Path(folder).glob("*.sqlite")
        with closing(sqlite3.connect(made)) as db:
            db.execute("UPDATE cases SET file = replace(file, ?, '/project')", (str(ROOT),))
            for name, python in (("old", old), ("new", new)):
                there = f"/opt/{name}/bin/python"
                forget = "UPDATE run SET value = replace(value, ?, ?) WHERE key = 'arguments'"
                db.execute(forget, (str(Path(python).absolute()), there))
            db.commit()
            db.execute("VACUUM")
        made.replace(HERE / "record.sqlite")


def pages(folder: Path) -> None:
    """Write both pages into a folder."""
    name = "reports/example/record.sqlite"
    parity("report", name, "-o", folder / "run.html")
    parity("diff", name, "--html", folder / "diff.html")


if __name__ == "__main__":
    if len(sys.argv) == 3:
        record(*sys.argv[1:])
    pages(Path(sys.argv[1]).absolute() if len(sys.argv) == 2 else HERE)
