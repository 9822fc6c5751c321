"""Workers that crash, hang and run out of memory cost one row each and nothing else."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from parity.casefile.case import Case
from parity.engine.session import Session
from parity.errors import WorkerStartError
from parity.program.spec import OperandSpec, ProgramSpec

pytestmark = pytest.mark.usefixtures("fake_paths")

LHS = np.array([[1.0, 2.0], [3.0, 4.0]], np.float32)
RHS = np.array([[5.0, 6.0], [7.0, 8.0]], np.float32)
PRODUCT = [[19.0, 22.0], [43.0, 50.0]]


def make_case(paths, *, timeout=None, x64=False, dtype="float32", lhs=LHS, rhs=RHS):
    spec = ProgramSpec(
        "dot_general",
        (OperandSpec("lhs", lhs.shape, dtype), OperandSpec("rhs", rhs.shape, dtype)),
        {"dimension_numbers": (((1,), (0,)), ((), ()))},
        x64=x64,
    )
    case = Case(
        "case", Path("case.yaml"), 1, "case", "", (), {}, spec, (), tuple(paths), paths[0],
        timeout=timeout,
    )  # fmt: skip
    case.__dict__["arrays"] = (lhs.astype(dtype), rhs.astype(dtype))
    return case


@pytest.fixture(scope="module")
def session():
    """One session for the module: a lost worker is replaced, which the tests themselves rely on."""
    with Session(timeout=60) as opened:
        yield opened


def execute(session, *paths, **kwargs):
    case = make_case(paths, **kwargs)
    execution = session.execute(case, paths)
    assert [outcome.path for outcome in execution.outcomes] == list(paths)
    return {outcome.path: outcome for outcome in execution.outcomes}, execution.references


BAD = {
    "fake-segfault": ("crashed", "compile", "SIGSEGV", "the worker died of SIGSEGV"),
    "fake-abort": ("crashed", "lower", "SIGABRT", "the worker died of SIGABRT"),
    "fake-exit": ("crashed", "run", "exit 7", "the worker exited with 7"),
    "fake-killed": ("crashed", "run", "SIGKILL", "the worker died of SIGKILL"),
    "fake-memory": ("out-of-memory", "run", "MemoryError", "cannot allocate 1 TiB"),
    "fake-raises": ("error", "lower", "ValueError", "no lowering for this op\nsecond line"),
    "fake-unsupported": ("unsupported", "build", "Unsupported", "removed in fake 1.0"),
    "fake-crash-on-load": ("crashed", "start", "SIGSEGV", "the worker died of SIGSEGV"),
}


@pytest.mark.parametrize("bad", BAD)
def test_a_bad_path_costs_its_own_row(session, bad):
    outcomes, references = execute(session, "fake-honest", bad, "eager")
    failure = outcomes[bad].failure
    assert (failure.outcome, failure.stage, failure.type, failure.message) == BAD[bad]
    for good in ("fake-honest", "eager"):
        assert outcomes[good].outputs["out"].tolist() == PRODUCT
    assert references.f64["out"].point.tolist() == PRODUCT


def test_the_last_lines_of_stderr_come_with_a_crash(session):
    outcomes, _ = execute(session, "fake-segfault")
    assert "about to touch address 0" in outcomes["fake-segfault"].failure.stderr


def test_a_hang_is_ended_after_its_limit_and_placed(session):
    outcomes, references = execute(session, "fake-hang", "eager", timeout=0.5)
    failure = outcomes["fake-hang"].failure
    assert (failure.outcome, failure.stage) == ("timeout", "convert")
    assert failure.message == "no answer within 0.5 s"
    assert outcomes["eager"].outputs["out"].tolist() == PRODUCT
    assert references.strict["out"].point.tolist() == PRODUCT


def test_a_path_that_returns_too_much_is_an_error(session):
    outcomes, _ = execute(session, "fake-too-many")
    assert outcomes["fake-too-many"].failure.outcome == "error"


def test_a_path_whose_package_is_missing_is_an_error_that_names_it(session):
    outcomes, _ = execute(session, "fake-broken-import", "eager")
    failure = outcomes["fake-broken-import"].failure
    assert failure.outcome == "error"
    assert failure.type == "ModuleNotFoundError"
    assert "parity_fake_paths_that_does_not_exist" in failure.message


def test_a_path_unknown_to_the_environment_is_unsupported(session):
    outcomes, _ = execute(session, "no-such-path")
    failure = outcomes["no-such-path"].failure
    assert (failure.outcome, failure.message) == (
        "unsupported",
        "this environment has no path no-such-path",
    )


def test_x64_has_a_worker_of_its_own(session):
    third = np.full((2, 2), 1 / 3)
    wide, _ = execute(session, "eager", dtype="float64", x64=True, lhs=third, rhs=third)
    narrow, references = execute(session, "eager", dtype="float64", x64=False, lhs=third, rhs=third)
    assert wide["eager"].outputs["out"].dtype == np.float64
    assert narrow["eager"].outputs["out"].dtype == np.float32
    assert references.notes == ("x64 is off: JAX takes float64 as float32",)
    assert references.f64["out"].point.dtype == np.float64


def test_arrays_too_large_for_a_message_travel_unchanged(session):
    rng = np.random.default_rng(0)
    lhs = rng.integers(-4, 5, (1024, 512)).astype(np.float32)
    rhs = rng.integers(-4, 5, (512, 600)).astype(np.float32)
    outcomes, references = execute(session, "eager", lhs=lhs, rhs=rhs)
    exact = lhs.astype(np.int64) @ rhs.astype(np.int64)
    assert np.array_equal(outcomes["eager"].outputs["out"], exact)
    assert np.array_equal(references.f64["out"].point, exact)
    assert not [f for f in session._folder.iterdir() if not f.name.startswith(("stderr", "state"))]


def test_an_interpreter_that_is_missing_is_the_users_mistake():
    with Session(python="/nowhere/python") as session, pytest.raises(WorkerStartError) as caught:
        execute(session, "eager")
    assert caught.value.message.startswith("cannot start /nowhere/python: ")
    assert caught.value.hint == "--python takes the path of a Python 3.11+ interpreter that has JAX"


def test_an_unknown_xla_flag_is_named_and_stops_the_run(monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "--xla_no_such_flag=true")
    with Session() as session, pytest.raises(WorkerStartError) as caught:
        execute(session, "eager")
    assert "the worker died of SIGABRT" in caught.value.message
    assert "--xla_no_such_flag=true" in caught.value.message


@pytest.mark.skipif(sys.platform != "linux", reason="PR_SET_PDEATHSIG is Linux's")
def test_nothing_survives_a_host_that_is_killed(tmp_path):
    program = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from test_session import Session, execute
with Session() as session:
    execute(session, "eager")
    print(next(iter(session._gateways.values()))._process.pid, flush=True)
    input()
"""
    host = subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    worker = int(host.stdout.readline())
    os.kill(worker, 0)
    host.send_signal(signal.SIGKILL)
    host.wait()
    host.stdin.close()
    host.stdout.close()
    deadline = time.monotonic() + 2
    while time.monotonic() < deadline:
        try:
            state = Path(f"/proc/{worker}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return
        if state == "Z":
            return
        time.sleep(0.02)
    pytest.fail(f"worker {worker} is still alive two seconds after its host")
