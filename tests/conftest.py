"""What several test modules share: the fake paths, on the import path of host and workers."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

FAKES = Path(__file__).parent / "fakes"

# No test is timed: machines are noisy. All else stays as in the profile before (CI has its own).
settings.register_profile("untimed", settings.default, deadline=None)
settings.load_profile("untimed")


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


@pytest.fixture
def show(record_property):
    """A function that takes a title and a text to be shown, without -s, when all tests are done."""

    def shown(title, text):
        record_property(_SHOWN, [title, text])  # a report's property: it comes from xdist's workers

    return shown


_SHOWN = "shown"


def pytest_terminal_summary(terminalreporter):
    for reports in terminalreporter.stats.values():
        for report in reports:
            for name, value in getattr(report, "user_properties", ()):
                if name == _SHOWN and report.when == "call":
                    title, text = value
                    terminalreporter.section(title)
                    terminalreporter.write_line(text)


def pytest_collection_modifyitems(config, items):
    """Leave the long forms out unless they are asked for: `-m full`."""
    if "full" not in config.option.markexpr:
        long = [item for item in items if item.get_closest_marker("full")]
        config.hook.pytest_deselected(items=long)
        items[:] = [item for item in items if item not in long]
