"""What several test modules share: the fake paths, on the import path of host and workers."""

import os
from pathlib import Path

import pytest

FAKES = Path(__file__).parent / "fakes"


@pytest.fixture
def fake_paths(monkeypatch):
    """Make the entry points of tests/fakes visible to this process and to the workers it starts."""
    from parity import paths

    before = os.environ.get("PYTHONPATH")
    monkeypatch.setenv("PYTHONPATH", f"{FAKES}{os.pathsep}{before}" if before else str(FAKES))
    monkeypatch.syspath_prepend(FAKES)
    paths._registry.cache_clear()
    yield
    paths._registry.cache_clear()
