"""One worker process, reached through execnet: started, asked, watched and killed."""

from __future__ import annotations

import importlib.util
import itertools
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import execnet

from parity.errors import ParityFault, WorkerStartError
from parity.worker.protocol import Failure

START_LIMIT = 300.0
"""Seconds that an interpreter may take to start, or to import what a path needs."""

_BOOTSTRAP = """
import os, signal, sys, types
if sys.platform == "linux":  # be killed when the host dies, also amid the imports below
    import ctypes
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)
    if os.getppid() != {host}:
        os._exit(1)
signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the host's to handle
stub = types.ModuleType("parity")
stub.__path__ = [channel.receive()]
sys.modules["parity"] = stub
from parity.worker.{module} import serve
serve(channel)
"""
_STDERR_LINES = 20
_GRACE = 5.0
"""Seconds that a process may go on after its channel has closed."""
_DIVIDE = "--xla_force_host_platform_device_count="
_serial = itertools.count()


@dataclass(frozen=True)
class Setting:
    """What a worker process is bound to for its whole life.

    Attributes:
        python: the interpreter of the environment under test.
        x64: whether JAX has 64-bit types.
        variables: environment variables set beside the inherited ones, sorted pairs.
        devices: how many devices the host is divided into.
        reader: which artifacts it executes (`paths.Exported.reader`); "" for one that runs
            programs.
    """

    python: str = sys.executable
    x64: bool = False
    variables: tuple[tuple[str, str], ...] = ()
    devices: int = 1
    reader: str = ""

    def environ(self) -> dict[str, str]:
        """The variables, with the flag among them that divides the host."""
        variables = dict(self.variables)
        if self.devices > 1:
            flags = variables.get("XLA_FLAGS", os.environ.get("XLA_FLAGS", ""))
            variables["XLA_FLAGS"] = f"{flags} {_DIVIDE}{self.devices}".strip()
        return variables


class WorkerLost(Exception):
    """A worker died or was killed for taking too long; `failure` is the row's."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


class Gateway:
    """A running worker.

    Args:
        setting: what it is bound to.
        folder: for its stderr, its state and arrays too large for a message.

    Attributes:
        environment: what the worker found there, once it was started.
        loaded: paths whose imports it has made.
        used: whether it has executed anything yet.

    Raises:
        WorkerStartError: the interpreter cannot be started.
    """

    def __init__(self, setting: Setting, folder: Path) -> None:
        self.environment: Mapping[str, str] = {}
        self.loaded: set[str] = set()
        self.used = False
        number = next(_serial)
        self._stderr = folder / f"stderr-{number}"
        self._state = folder / f"state-{number}"
        self._setting = setting
        self._mark = 0
        self._oom_kills = _oom_kills()
        self._group = execnet.Group()
        try:
            gateway = self._group.makegateway(
                f"popen//python={setting.python} -P//execmodel=main_thread_only"
            )
            self._process = gateway._io.popen
            self._channel = gateway.remote_exec(
                _BOOTSTRAP.format(host=os.getpid(), module="read" if setting.reader else "serve")
            )
            self._channel.send(str(Path(__file__).parent.parent))
            self._channel.send(
                {
                    "stderr": str(self._stderr),
                    "state": str(self._state),
                    "folder": str(folder),
                    "x64": setting.x64,
                    "variables": setting.environ(),
                    "mpmath": _folder_of("mpmath"),
                }
            )
        except (OSError, EOFError) as error:
            self._group.terminate(timeout=1.0)
            told = isinstance(error, FileNotFoundError | PermissionError)
            why = str(error) if told else "it ended before it answered; is it a Python?"
            raise WorkerStartError(
                f"cannot start {setting.python}: {why}",
                hint="--python takes the path of a Python 3.11+ interpreter that has JAX",
            ) from error

    def start(self) -> None:
        """Wait until it can take requests.

        Raises:
            WorkerStartError: the interpreter lacks JAX, or dies on its flags.
        """
        try:
            hello = self.receive(START_LIMIT)
        except (WorkerLost, ParityFault) as error:
            self.kill()
            raise WorkerStartError(
                f"{self._setting.python} cannot execute anything: {_reason(error)}",
                hint="check XLA_FLAGS, JAX_PLATFORMS and the packages that `parity doctor` lists",
            ) from error
        self.environment = hello["environment"]

    def send(self, request: Mapping[str, Any]) -> None:
        """Queue a request; a worker that is gone is noticed by `receive`."""
        try:
            self._channel.send(request)
        except OSError:
            return

    def receive(self, limit: float) -> Mapping[str, Any]:
        """The next answer.

        Args:
            limit: seconds to wait for it.

        Raises:
            WorkerLost: the worker died, or had to be killed because the limit passed.
            ParityFault: the worker raised where it never should.
        """
        try:
            answer: Mapping[str, Any] = self._channel.receive(limit)
        except self._channel.TimeoutError:
            stage = self._stage()
            self.kill()
            message = f"no answer within {limit:g} s"
            raise WorkerLost(self._failure("timeout", stage, "", message)) from None
        except EOFError:
            raise WorkerLost(self._death()) from None
        except execnet.RemoteError as error:
            raise ParityFault(f"the worker failed: {error}") from error
        self._mark = self._stderr.stat().st_size if self._stderr.exists() else 0
        return answer

    def kill(self) -> None:
        """End the process at once: an orderly TensorFlow teardown costs more than the work."""
        self._process.kill()
        self._process.wait()
        self._group.terminate(timeout=1.0)
        for pipe in (self._process.stdin, self._process.stdout):
            with suppress(OSError):  # what was still to be written is of no interest any more
                pipe.close()

    def broken(self, why: str) -> Failure:
        """End a worker that does not keep to the protocol."""
        stage = self._stage()
        self.kill()
        return self._failure("crashed", stage, "ProtocolError", f"the worker lost its way: {why}")

    def _death(self) -> Failure:
        try:
            code = self._process.wait(_GRACE)
        except subprocess.TimeoutExpired:
            return self.broken("it broke off in the middle of a message")
        self.kill()
        stage = self._stage()
        if code >= 0:
            return self._failure("crashed", stage, f"exit {code}", f"the worker exited with {code}")
        name = signal.Signals(-code).name
        if name == "SIGKILL" and _oom_kills() > self._oom_kills:
            return self._failure("out-of-memory", stage, name, "killed by the system: no memory")
        return self._failure("crashed", stage, name, f"the worker died of {name}")

    def _failure(self, outcome: str, stage: str, kind: str, message: str) -> Failure:
        return Failure(outcome, stage, kind, message, stderr=self._tail())

    def _stage(self) -> str:
        try:
            return self._state.read_text().strip()
        except FileNotFoundError:
            return "start"

    def _tail(self) -> str:
        """The last lines of stderr since the last answer."""
        if not self._stderr.exists():
            return ""
        with self._stderr.open("rb") as file:
            file.seek(self._mark)
            lines = file.read().decode(errors="replace").splitlines()
        return "\n".join(lines[-_STDERR_LINES:])


def _folder_of(package: str) -> str | None:
    """Where a pure Python package lies here, for a worker whose interpreter may lack it."""
    spec = importlib.util.find_spec(package)
    places = None if spec is None else spec.submodule_search_locations
    return places[0] if places else None


def _reason(error: WorkerLost | ParityFault) -> str:
    """The line that says why a worker did not start."""
    if isinstance(error, WorkerLost):
        lines = [line for line in error.failure.stderr.splitlines() if line.strip()]
        telling = [line for line in lines if "Unknown flag" in line] or lines[-1:]
        return "; ".join([error.failure.message, *telling])
    lines = [line for line in str(error).splitlines() if line.strip()]
    raised = [i for i, line in enumerate(lines) if line.startswith('  File "')]
    # A bare exception says less than the line of code that raised it.
    return " at ".join(dict.fromkeys([lines[-1], *(lines[i].strip() for i in raised[-1:])]))


def _oom_kills() -> int:
    """How many processes Linux has killed for memory since it started; 0 elsewhere."""
    try:
        lines = Path("/proc/vmstat").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("oom_kill ")), 0)
