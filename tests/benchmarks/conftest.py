"""Ratios to a stated peer, measured in one run and shown at its end.

Machines are noisy: a ratio over its limit fails only where that is asked for, `--enforce-ratios`.
"""

import time

import pytest

_RATIOS = pytest.StashKey[list[tuple[str, float, float, str]]]()


def pytest_addoption(parser):
    parser.addoption(
        "--enforce-ratios", action="store_true", help="fail on a ratio that is over its limit"
    )


def pytest_configure(config):
    config.stash[_RATIOS] = []


@pytest.fixture
def ratio(request):
    """`ratio(name, ours, theirs, limit)`: note `ours / theirs`, both in seconds."""

    def note(name, ours, theirs, limit):
        value = ours / theirs
        seconds = f"{ours:.4g} s / {theirs:.4g} s"
        request.config.stash[_RATIOS].append((name, value, limit, seconds))
        if request.config.getoption("--enforce-ratios"):
            assert value <= limit, f"{name}: {value:.2f} times its peer, limit {limit:g}"

    return note


def interleaved(*functions, rounds):
    """The shortest time of each function, in seconds, taking turns."""
    best = [float("inf")] * len(functions)
    for _ in range(rounds):
        for i, function in enumerate(functions):
            begin = time.perf_counter()
            function()
            best[i] = min(best[i], time.perf_counter() - begin)
    return best


@pytest.fixture(name="interleaved")
def _interleaved():
    return interleaved


def pytest_terminal_summary(terminalreporter, config):
    ratios = config.stash[_RATIOS]
    if ratios:
        terminalreporter.section("ratios to a peer")
    for name, value, limit, seconds in ratios:
        word = "ok  " if value <= limit else "OVER"
        terminalreporter.line(f"{word} {value:6.3f} (limit {limit:g})  {name}  [{seconds}]")
