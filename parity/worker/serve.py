"""The loop inside a worker: programs in, outcomes out.

A worker serves one environment: one interpreter with its variables, flags and x64 setting. It
answers requests in order; a request that kills it costs that request alone, because everything
before has been sent. What it was doing when it died stands in its state file.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from parity import paths
from parity.errors import Unsupported
from parity.paths import Exported, Probe
from parity.program import source
from parity.program.build import Program, build
from parity.program.dots import dots
from parity.program.spec import PROGRAMS, ProgramSpec
from parity.reference import wider
from parity.worker import artifact, process
from parity.worker.process import (
    Post,
    answer_all,
    memory_limit,
    operands,
    path_named,
    seen,
    unsupported,
)
from parity.worker.protocol import (
    Failure,
    Shard,
    digest,
    pack_all,
    pack_references,
    pack_shards,
    unpack,
)

Shards = Mapping[str, tuple[Shard, ...]]


class Server:
    """Holds the current program between the requests of one case.

    Args:
        post: where it tells its stage and writes what is too large for a message.
    """

    def __init__(self, post: Post) -> None:
        self.announce = post.announce
        self._folder = post.folder
        self._program: Program | Failure | None = None
        self._inputs: tuple[np.ndarray, ...] = ()
        self._bits: dict[tuple[str, ...], list[str]] = {}

    def case(self, request: Mapping[str, Any]) -> None:
        """Take the program and operands that the next requests are about; answers nothing."""
        self.announce("build")
        try:
            self._inputs = operands(request)
            spec = ProgramSpec.from_wire(request["spec"])
            self._program = build(spec)
        except Exception as error:  # noqa: BLE001 - becomes the failure of every path of the case
            self._program = _failure(error, "build")

    def load(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Import what a path needs, outside its time limit."""
        self.announce("start")
        try:
            if unsupported(request["path"]) is None:
                path_named(request["path"]).load()
        except Exception as error:  # noqa: BLE001 - an import may fail in any way; it becomes a row
            return {"failure": vars(_failure(error, "build"))}
        return {"failure": None}

    def path(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Run the current program on one path, in at most so much more memory than now.

        Of a path that executes what it exported elsewhere, the answer has the artifact's folder
        instead of outputs.
        """
        probe = Probe(self.announce, request["options"], request.get("warm", 0.0))
        try:
            with memory_limit(request["memory"]):
                path = self._taking(request["path"], probe)
                if isinstance(path, Exported):
                    return self._export(path, probe) | {"failure": None} | seen(probe)
                outputs, shards = self._run(path, probe)
        except Exception as error:  # noqa: BLE001 - whatever a path raises is that path's result
            failure = error.failure if isinstance(error, _NoProgram) else self._place(error, probe)
            return {"failure": vars(failure)} | seen(probe)
        return {
            "outputs": pack_all(outputs, self._folder),
            "shards": pack_shards(shards, self._folder),
            "failure": None,
        } | seen(probe)

    def _taking(self, name: str, probe: Probe) -> paths.Path:
        """The path of that name, if it takes what it is given."""
        path, reason = path_named(name), unsupported(name)
        if reason is not None:
            raise Unsupported(reason)
        ignored = set(probe.options) - set(path.options)
        if ignored:
            raise Unsupported(f"{name} takes no {', '.join(sorted(ignored))}")
        if not isinstance(self._program, Program):
            raise _NoProgram(self._program or Failure("error", "build", message="no program"))
        return path

    def _built(self) -> Program:
        """The current program built anew: no path finds another one's traces in JAX's caches."""
        assert isinstance(self._program, Program)  # `_taking` has seen to it
        return build(self._program.spec)

    def _export(self, path: Exported, probe: Probe) -> dict[str, Any]:
        """The folder of a new artifact, with a control where a precision is asked for."""
        program = self._built()
        folder = artifact.write(path, program, self._folder, probe)
        if asked := self._asked():
            artifact.write_control(path, program.without_precisions(), folder, probe, asked)
        self._note_program(probe)
        return {"artifact": folder, "reader": path.reader}

    def _run(self, path: paths.Path, probe: Probe) -> tuple[dict[str, np.ndarray], Shards]:
        """The outputs of the current program by name, and their shards."""
        program = self._built()
        results = path.run(program, program.arrays(self._inputs), probe)
        outputs = dict(zip(program.outputs, results, strict=True))
        self._note_program(probe)
        self._note_idle_precision(path, program, outputs, probe)
        outputs = {name: out for name, out in outputs.items() if out.dtype.name != "void"}
        held = {name: probe.shards.get(at, ()) for at, name in enumerate(program.outputs)}
        return outputs, {name: held[name] for name in outputs if held[name]}

    def _note_program(self, probe: Probe) -> None:
        """Say which settings the program has changed, and what it contracts."""
        if settings := source.changed_settings():
            probe.evidence["settings"] = ", ".join(f"{k}={v}" for k, v in settings.items())
        if found := self._dots():
            probe.evidence["dots"] = found

    def _note_idle_precision(
        self, path: paths.Path, program: Program, outputs: Mapping[str, np.ndarray], probe: Probe
    ) -> None:
        """Say so where a precision was accepted and changed no bit of any output."""
        bits = [digest(out) for out in outputs.values()]
        asked = self._asked()
        self._bits[self._run_of(path, program, probe, asked)] = bits
        if not asked:
            return
        control = program.without_precisions()
        run = self._run_of(path, control, probe, ())
        if run not in self._bits:
            arrays = control.arrays(self._inputs)
            results = path.run(control, arrays, Probe(self.announce, probe.options))
            self._bits[run] = [digest(out) for out in results]
        if self._bits[run] == bits:
            probe.evidence["no_effect"] = artifact.no_effect(asked)

    def _asked(self) -> tuple[str, ...]:
        """The precisions that the current program asks for."""
        assert isinstance(self._program, Program)  # a path has just run it
        try:
            return self._program.precisions()
        except Exception:  # noqa: BLE001 - a program that cannot be traced tells nothing
            return ()

    def _dots(self) -> str:
        """What the current program contracts, if it is more than one op."""
        assert isinstance(self._program, Program)
        if self._program.spec.op not in PROGRAMS:
            return ""
        try:
            return dots(self._program.jaxpr)
        except Exception:  # noqa: BLE001 - a program that cannot be traced tells nothing
            return ""

    def _run_of(
        self, path: paths.Path, program: Program, probe: Probe, asked: Sequence[str]
    ) -> tuple[str, ...]:
        """What makes two runs the same: path with its options, program and operands.

        The precisions that it asks for stand apart: those of code are not in its spec.
        """
        how = path.name, repr(probe.options), repr(program.spec), ", ".join(asked)
        return *how, *(digest(array) for array in self._inputs)

    def _place(self, error: Exception, probe: Probe) -> Failure:
        """The failure, at stage trace if the program cannot even be traced for the same reason."""
        stage = probe.current
        if stage != "trace" and isinstance(self._program, Program):
            try:
                _ = self._program.jaxpr
            except Exception as traced:  # noqa: BLE001 - compared with the one being placed
                if type(traced) is type(error):
                    stage = "trace"
        return _failure(error, stage)

    def equations(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """The equations of the current program, before its own barriers are put in."""
        from parity.program.listing import sites

        self.announce("trace")
        if not isinstance(self._program, Program):
            return {"failure": None if self._program is None else vars(self._program)}
        try:
            return {"failure": None, "sites": [one.to_wire() for one in sites(self._built())]}
        except Exception as error:  # noqa: BLE001 - a program that cannot be traced has none
            return {"failure": vars(_failure(error, "trace"))}

    def source(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """The current program as Python source and as one StableHLO module; its drawn arrays.

        `text` or `module` is "" where there is none, and `why` says for what reason.
        """
        from parity.program.spelling import NotWritten
        from parity.program.written import written
        from parity.worker.module import self_contained

        self.announce("trace")
        if not isinstance(self._program, Program):
            return {"failure": None if self._program is None else vars(self._program)}
        program = self._built()
        found: dict[str, Any] = {"text": "", "module": "", "why": ""}
        try:
            found["outputs"] = list(program.outputs)
            found["drawn"] = pack_all(program.drawn, self._folder)
            if request["expected"] is not None:
                expected = [unpack(array) for array in request["expected"]]
                arrays = program.arrays(self._inputs)
                found["module"] = self_contained(program, arrays, expected)
            else:
                found["text"] = written(program)
        except (NotWritten, Unsupported) as error:
            found["why"] = str(error)
        except Exception as error:  # noqa: BLE001 - a program that cannot be traced has none
            return {"failure": vars(_failure(error, "trace"))}
        return found | {"failure": None}

    def references(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Interpret the current program under both references and the arithmetic models."""
        from parity.reference.evaluate import evaluate

        self.announce("reference")
        if not isinstance(self._program, Program):
            return {"failure": None if self._program is None else vars(self._program)}
        try:
            arrays = self._program.arrays(self._inputs)
            licences, models = tuple(request["licences"]), tuple(request.get("models", ()))
            found = evaluate(self._program, arrays, licences=licences, models=models)
        except Exception as error:  # noqa: BLE001 - a program without a reference is a result
            return {"failure": vars(_failure(error, "reference"))}
        return pack_references(found, self._folder) | {"failure": None}


def harnesses(request: Mapping[str, Any]) -> dict[str, Any]:
    """JAX's own test harnesses as data, and the names of all their groups."""
    from parity.worker import harnesses as jax_harnesses

    try:
        found = jax_harnesses.harnesses(request["groups"])
    except ImportError as error:
        return {"failure": vars(_failure(error, "build"))}
    return {
        "failure": None,
        "groups": jax_harnesses.groups(),
        "harnesses": [harness.to_wire() for harness in found],
    }


class _NoProgram(Exception):
    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


def _failure(error: Exception, stage: str) -> Failure:
    return process.failure(error, stage, source.raised_in(error))


def environment() -> dict[str, str]:
    """What this interpreter has: versions, platform, CPU, flags. Starts the JAX backend."""
    import platform
    from importlib.metadata import PackageNotFoundError, version

    import jax

    found = {"python": platform.python_version()}
    for package in ("jax", "jaxlib", "tensorflow", "flax", "numpy", "ml_dtypes"):
        for distribution in (package, f"{package}-cpu"):
            try:
                found[package] = version(distribution)
                break
            except PackageNotFoundError:
                continue
    found["platform"] = jax.default_backend()
    found["devices"] = str(jax.device_count())
    found["system"] = f"{platform.system()} {platform.machine()}"
    found["cpu"] = " ".join([platform.machine(), *_cpu_features()])
    for variable in ("XLA_FLAGS", "TF_XLA_FLAGS", "TF_ENABLE_ONEDNN_OPTS", "JAX_PLATFORMS"):
        if os.environ.get(variable):
            found[variable] = os.environ[variable]
    return found


def _cpu_features() -> list[str]:
    """The vector and narrow-float instruction sets, as Linux spells them; nothing elsewhere."""
    try:
        with open("/proc/cpuinfo") as lines:
            flags = next((line for line in lines if line.startswith(("flags", "Features"))), "")
    except OSError:
        return []
    telling = ("avx", "fma", "f16c", "amx", "sve", "bf16", "fp16", "asimd")
    return sorted(flag for flag in flags.split() if flag.startswith(telling))


def serve(channel: Any) -> None:
    """Answer requests until the channel closes.

    Args:
        channel: execnet's; the first message is
            `{state, stderr, folder, x64, variables, mpmath}`.
    """
    begin = channel.receive()
    server = Server(Post(begin))
    wider.use_mpmath(begin["mpmath"])
    import jax

    jax.config.update("jax_enable_x64", bool(begin["x64"]))
    channel.send({"environment": environment(), "pid": os.getpid()})
    answers = {
        "case": server.case,
        "load": server.load,
        "path": server.path,
        "equations": server.equations,
        "source": server.source,
        "references": server.references,
        "harnesses": harnesses,
    }
    answer_all(channel, answers)
