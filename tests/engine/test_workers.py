"""Workers that crash, hang and run out of memory cost one row each and nothing else."""

import dataclasses
import gc
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from parity.casefile.case import Case, Operand, Variant
from parity.engine.environment import Environment
from parity.engine.workers import Limits, Workers
from parity.errors import CaseFileError, WorkerStartError
from parity.program.spec import OperandSpec, ProgramSpec

pytestmark = pytest.mark.usefixtures("fake_paths")

LHS = np.array([[1.0, 2.0], [3.0, 4.0]], np.float32)
RHS = np.array([[5.0, 6.0], [7.0, 8.0]], np.float32)
PRODUCT = [[19.0, 22.0], [43.0, 50.0]]


class Given(Case):
    """A case whose arrays a test gives; a class without slots has room for them."""


def make_case(paths, *, timeout=None, x64=False, dtype="float32", lhs=LHS, rhs=RHS):
    spec = ProgramSpec(
        "dot_general",
        (OperandSpec("lhs", lhs.shape, dtype), OperandSpec("rhs", rhs.shape, dtype)),
        {"dimension_numbers": (((1,), (0,)), ((), ()))},
        x64=x64,
    )
    case = Given(
        "case", Path("case.yaml"), 1, "case", "", (), {}, spec, (), tuple(paths), paths[0],
        timeout=timeout,
    )  # fmt: skip
    case.__dict__["arrays"] = lambda: (lhs.astype(dtype), rhs.astype(dtype))
    return case


@pytest.fixture(scope="module")
def workers():
    """One workers for the module: a lost worker is replaced, which the tests themselves rely on."""
    with Workers(Limits(timeout=60)) as opened:
        yield opened


def execute(workers, *paths, environment=None, **kwargs):
    case = make_case(paths, **kwargs)
    execution = workers.execute(case, paths, environment)
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
def test_a_bad_path_costs_its_own_row(workers, bad):
    outcomes, references = execute(workers, "fake-honest", bad, "eager")
    failure = outcomes[bad].failure
    assert (failure.outcome, failure.stage, failure.type, failure.message) == BAD[bad]
    for good in ("fake-honest", "eager"):
        assert outcomes[good].outputs["out"].tolist() == PRODUCT
    assert references.f64["out"].point.tolist() == PRODUCT


def test_the_last_lines_of_stderr_come_with_a_crash(workers):
    outcomes, _ = execute(workers, "fake-segfault")
    assert "about to touch address 0" in outcomes["fake-segfault"].failure.stderr


def test_a_hang_is_ended_after_its_limit_and_placed(workers):
    outcomes, references = execute(workers, "fake-hang", "eager", timeout=0.5)
    failure = outcomes["fake-hang"].failure
    assert (failure.outcome, failure.stage) == ("timeout", "convert")
    assert failure.message == "no answer within 0.5 s"
    assert outcomes["eager"].outputs["out"].tolist() == PRODUCT
    assert references.strict["out"].point.tolist() == PRODUCT


def test_a_path_that_returns_too_much_is_an_error(workers):
    outcomes, _ = execute(workers, "fake-too-many")
    assert outcomes["fake-too-many"].failure.outcome == "error"


def test_a_path_whose_package_is_missing_is_an_error_that_names_it(workers):
    outcomes, _ = execute(workers, "fake-broken-import", "eager")
    failure = outcomes["fake-broken-import"].failure
    assert failure.outcome == "error"
    assert failure.type == "ModuleNotFoundError"
    assert "parity_fake_paths_that_does_not_exist" in failure.message


def test_a_path_unknown_to_the_environment_is_unsupported(workers):
    outcomes, _ = execute(workers, "no-such-path")
    failure = outcomes["no-such-path"].failure
    assert (failure.outcome, failure.message) == (
        "unsupported",
        "this environment has no path no-such-path",
    )


def test_x64_has_a_worker_of_its_own(workers):
    third = np.full((2, 2), 1 / 3)
    wide, _ = execute(workers, "eager", dtype="float64", x64=True, lhs=third, rhs=third)
    narrow, references = execute(workers, "eager", dtype="float64", x64=False, lhs=third, rhs=third)
    assert wide["eager"].outputs["out"].dtype == np.float64
    assert narrow["eager"].outputs["out"].dtype == np.float32
    assert references.notes == ("x64 is off: JAX takes float64 as float32",)
    assert references.f64["out"].point.dtype == np.float64


def test_arrays_too_large_for_a_message_travel_unchanged(workers):
    rng = np.random.default_rng(0)
    lhs = rng.integers(-4, 5, (1024, 512)).astype(np.float32)
    rhs = rng.integers(-4, 5, (512, 600)).astype(np.float32)
    outcomes, references = execute(workers, "eager", lhs=lhs, rhs=rhs)
    exact = lhs.astype(np.int64) @ rhs.astype(np.int64)
    assert np.array_equal(outcomes["eager"].outputs["out"], exact)
    assert np.array_equal(references.f64["out"].point, exact)
    assert not [f for f in workers._folder.iterdir() if not f.name.startswith(("stderr", "state"))]


def test_an_interpreter_that_is_missing_is_the_users_mistake():
    with Workers() as workers, pytest.raises(WorkerStartError) as caught:
        execute(workers, "eager", environment=Environment(python="/nowhere/python"))
    assert caught.value.message.startswith("cannot start /nowhere/python: ")
    assert caught.value.hint == "--python takes the path of a Python 3.11+ interpreter that has JAX"


def test_an_unknown_xla_flag_is_named_and_stops_the_run(monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "--xla_no_such_flag=true")
    with Workers() as workers, pytest.raises(WorkerStartError) as caught:
        execute(workers, "eager")
    assert "the worker died of SIGABRT" in caught.value.message
    assert "--xla_no_such_flag=true" in caught.value.message


@pytest.mark.skipif(sys.platform != "linux", reason="PR_SET_PDEATHSIG is Linux's")
def test_nothing_survives_a_host_that_is_killed(tmp_path):
    program = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from test_workers import Workers, execute
with Workers() as workers:
    execute(workers, "eager")
    print(next(iter(workers._gateways.values()))._process.pid, flush=True)
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


def test_a_path_that_crashes_among_others_is_tried_again_alone(workers):
    outcomes, _ = execute(workers, "fake-marks", "fake-crash-when-marked")
    outcome = outcomes["fake-crash-when-marked"]
    assert outcome.outputs["out"].tolist() == PRODUCT
    assert outcome.evidence["retried"] == "crashed in a worker that had run other paths, not alone"


def test_bits_that_change_are_reported_by_a_repetition():
    with Workers(Limits(repeats=2)) as workers:
        case = make_case(("eager", "fake-random"))
        execution = workers.execute(case, ("eager", "fake-random"))
    assert execution.changed == {"fake-random"}


@pytest.mark.skipif(sys.platform != "linux", reason="RLIMIT_DATA is set from /proc")
def test_a_memory_limit_costs_one_row_and_not_the_worker():
    with Workers(Limits(memory=200 << 20)) as workers:
        outcomes, _ = execute(workers, "eager", "fake-allocates", "jit")
        failure = outcomes["fake-allocates"].failure
        assert (failure.outcome, failure.stage) == ("out-of-memory", "run")
        assert outcomes["jit"].outputs["out"].tolist() == PRODUCT
        assert len(workers._gateways) == 1


def test_variables_of_an_environment_reach_its_workers():
    environment = Environment("strict", variables={"XLA_FLAGS": "--xla_no_such_flag=true"})
    with Workers() as workers, pytest.raises(WorkerStartError) as caught:
        execute(workers, "eager", environment=environment)
    assert "--xla_no_such_flag=true" in caught.value.message


def test_an_option_that_a_path_does_not_take_is_not_ignored(workers):
    case = make_case(("eager", "odd"))
    odd = Variant("odd", "eager", compiler_options={"xla_allow_excess_precision": False})
    case = dataclasses.replace(case, variants={"odd": odd})
    case.__dict__["arrays"] = lambda: (LHS, RHS)
    outcomes = {o.path: o for o in workers.execute(case, ("eager", "odd")).outcomes}
    assert outcomes["odd"].failure.message == "eager takes no compiler_options"


# execnet leaves the pipes of a process that never answered to the garbage collector.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_program_that_is_no_python_is_the_users_mistake(workers):
    with pytest.raises(WorkerStartError) as caught:
        execute(workers, "eager", environment=Environment(python="/bin/cat"))
    assert caught.value.hint.startswith("--python takes the path of a Python")
    del caught
    gc.collect()


def test_operands_beyond_memory_are_the_cases_fault():
    operand = Operand("lhs", (1 << 45,), "float32", draw="normal")
    case = dataclasses.replace(make_case(("eager",)), operands=(operand,))
    with pytest.raises(CaseFileError) as caught:
        case.arrays()
    assert caught.value.what == (
        "the operands do not fit into memory (got lhs [35184372088832] float32)"
    )


@pytest.mark.parametrize(
    ("bad", "said"),
    [("fake-garbage", "it broke off in the middle of a message"), ("fake-lies", "cannot be read")],
)
def test_a_worker_that_lies_costs_one_row(workers, monkeypatch, bad, said):
    monkeypatch.setattr("parity.engine.gateway._GRACE", 0.5)
    outcomes, references = execute(workers, "fake-honest", bad, "eager")
    failure = outcomes[bad].failure
    assert (failure.outcome, failure.type) == ("crashed", "ProtocolError")
    assert said in failure.message
    for good in ("fake-honest", "eager"):
        assert outcomes[good].outputs["out"].tolist() == PRODUCT
    assert references.strict["out"].point.tolist() == PRODUCT
