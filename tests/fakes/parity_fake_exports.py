"""Paths that lead through a file: one that works; readers that crash, hang or refuse."""

import ctypes
import json
import os
import sys
import time

import numpy as np

from parity.paths import Exported


class Sum(Exported):
    """Writes what the program is of; the reader adds the product of its operands up."""

    name = "fake-exported"
    reader = "fake-exported"

    def export(self, program, folder, probe):
        with probe.stage("save"):
            text = json.dumps({"op": program.spec.op, "pid": os.getpid()})
            (folder / "program.json").write_text(text)
        probe.compiled("stablehlo", program.spec.op)

    def execute(self, folder, inputs, probe):
        with probe.stage("load"):
            written = json.loads((folder / "program.json").read_text())
        if written["pid"] == os.getpid() or "parity.program.build" in sys.modules:
            raise AssertionError("executed where it was exported")
        with probe.stage("run"):
            lhs, rhs = inputs
            probe.evidence["executed"] = f"numpy: {written['op']}"
            return [np.asarray(lhs @ rhs)]


class Crash(Sum):
    name = "fake-exported-crash"
    reader = "fake-exported-crash"

    def execute(self, folder, inputs, probe):
        with probe.stage("run"):
            ctypes.string_at(0)


class Old(Sum):
    name = "fake-exported-old"
    reader = "fake-exported-old"

    def execute(self, folder, inputs, probe):
        with probe.stage("load"):
            raise ValueError("version 9 cannot be read")


class Hang(Sum):
    name = "fake-exported-hang"
    reader = "fake-exported-hang"

    def execute(self, folder, inputs, probe):
        with probe.stage("run"):
            time.sleep(3600)
