"""A folder with a case file in it, as the working directory."""

import datetime

import pytest

from parity.casefile.load import load
from parity.errors import CaseFileError

DOT = """\
name: dot
about: A matrix product.
op: dot_general
operands:
  lhs: {shape: [2, 3], dtype: float32, draw: normal}
  rhs: {shape: [3, 4], dtype: float32, draw: normal}
attributes:
  contracting: [[1], [0]]
"""
TODAY = datetime.date(2026, 1, 1)


class Folder:
    """Writes dot.yaml and loads it, on 1 January 2026."""

    def __init__(self, path):
        self.path = path

    def load(self, text, **options):
        data = text if isinstance(text, bytes) else text.encode()
        (self.path / "dot.yaml").write_bytes(data)
        return load("dot.yaml", today=TODAY, **options)

    def cases(self, text, **options):
        return self.load(text, **options).cases

    def ids(self, text, **options):
        return [case.id.removeprefix("dot.yaml::") for case in self.cases(text, **options)]

    def error(self, text, **options):
        """What the user reads: message and hint, without the file's name."""
        with pytest.raises(CaseFileError) as caught:
            self.load(text, **options)
        message = str(caught.value)
        assert message.startswith("dot.yaml:")
        return message.removeprefix("dot.yaml:")


@pytest.fixture
def dot():
    return DOT


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "pyproject.toml").touch()
    monkeypatch.chdir(tmp_path)
    return Folder(tmp_path)
