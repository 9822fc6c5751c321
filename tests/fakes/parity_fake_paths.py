"""Paths that err, lie, crash, hang and exhaust memory, offered through the entry point group."""

import contextlib
import ctypes
import gc
import os
import signal
import sys
import time

import numpy as np

from parity.paths import Path


class Honest(Path):
    name = "fake-honest"

    def run(self, program, inputs, probe):
        with probe.stage("run"):
            return [np.asarray(out) for out in program.function(*inputs)]


class Segfault(Path):
    name = "fake-segfault"

    def run(self, program, inputs, probe):
        with probe.stage("compile"):
            print("about to touch address 0", file=sys.stderr, flush=True)
            ctypes.string_at(0)


class Abort(Path):
    name = "fake-abort"

    def run(self, program, inputs, probe):
        with probe.stage("lower"):
            os.abort()


class Exit(Path):
    name = "fake-exit"

    def run(self, program, inputs, probe):
        with probe.stage("run"):
            os._exit(7)


class Killed(Path):
    name = "fake-killed"

    def run(self, program, inputs, probe):
        with probe.stage("run"):
            os.kill(os.getpid(), signal.SIGKILL)


class Hang(Path):
    name = "fake-hang"

    def run(self, program, inputs, probe):
        with probe.stage("convert"):
            time.sleep(3600)


class Memory(Path):
    name = "fake-memory"

    def run(self, program, inputs, probe):
        with probe.stage("run"):
            raise MemoryError("cannot allocate 1 TiB")


class Nan(Honest):
    name = "fake-nan"

    def run(self, program, inputs, probe):
        return [np.full_like(out, np.nan) for out in super().run(program, inputs, probe)]


class Raises(Path):
    name = "fake-raises"

    def run(self, program, inputs, probe):
        with probe.stage("lower"):
            raise ValueError("no lowering for this op\nsecond line")


class TooMany(Honest):
    name = "fake-too-many"

    def run(self, program, inputs, probe):
        return list(super().run(program, inputs, probe)) * 2


class Lacking(Path):
    name = "fake-unsupported"

    def unsupported(self):
        return "removed in fake 1.0"

    def run(self, program, inputs, probe):
        raise AssertionError("never reached")


class CrashOnLoad(Path):
    name = "fake-crash-on-load"

    def load(self):
        ctypes.string_at(0)

    def run(self, program, inputs, probe):
        raise AssertionError("never reached")


class Marks(Honest):
    name = "fake-marks"

    def run(self, program, inputs, probe):
        os.environ["PARITY_FAKE_MARK"] = "this process has run something"
        return super().run(program, inputs, probe)


class CrashWhenMarked(Honest):
    name = "fake-crash-when-marked"

    def run(self, program, inputs, probe):
        if "PARITY_FAKE_MARK" in os.environ:
            ctypes.string_at(0)
        return super().run(program, inputs, probe)


class Random(Honest):
    name = "fake-random"

    def run(self, program, inputs, probe):
        seed = int.from_bytes(os.urandom(4), "little")
        noise = np.random.default_rng(seed).uniform(size=1).astype(np.float32)
        return [out + noise for out in super().run(program, inputs, probe)]


class Allocates(Path):
    name = "fake-allocates"

    def run(self, program, inputs, probe):
        with probe.stage("run"):
            return [np.ones(1 << 30, np.uint8)]


class Garbage(Path):
    name = "fake-garbage"

    def run(self, program, inputs, probe):
        """Write nonsense into every pipe of the process, the one to the host among them."""
        with probe.stage("run"):
            for fd in os.listdir("/proc/self/fd"):
                if os.path.exists(f"/proc/self/fd/{fd}") and "pipe:" in os.readlink(
                    f"/proc/self/fd/{fd}"
                ):
                    with contextlib.suppress(OSError):
                        os.write(int(fd), b"\xff" * 64)
            time.sleep(3600)


class Lies(Honest):
    name = "fake-lies"

    def run(self, program, inputs, probe):
        """Send an answer of another form where the host waits for this path's."""
        for found in gc.get_objects():
            if type(found).__name__ == "Channel" and not found.isclosed():
                found.send({"failure": None, "outputs": 7})
        return super().run(program, inputs, probe)
