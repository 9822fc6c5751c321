"""Paths that do what PARITY_FAKE_FATES says of them and of the first operand's first element.

It is JSON, {"7 fake-fate-a": "crash"}, or the empty mapping; PARITY_FAKE_SECONDS is how long each
takes.
"""

import ctypes
import json
import os
import time

import numpy as np
from parity_fake_paths import Honest

from parity.paths import Path


class Fateful(Honest):
    def run(self, program, inputs, probe):
        fates = json.loads(os.environ.get("PARITY_FAKE_FATES", "{}"))
        with probe.stage("run"):
            time.sleep(float(os.environ.get("PARITY_FAKE_SECONDS", "0")))
            fate = fates.get(f"{int(inputs[0].flat[0])} {self.name}")
            if fate == "crash":
                ctypes.string_at(0)
            elif fate == "hang":
                time.sleep(3600)
            elif fate == "memory":
                np.ones(1 << 30, np.uint8)
        return super().run(program, inputs, probe)


class FateA(Fateful):
    name = "fake-fate-a"


class FateB(Fateful):
    name = "fake-fate-b"


class FateC(Fateful):
    name = "fake-fate-c"


class FateD(Fateful):
    name = "fake-fate-d"


class Instant(Path):
    """Gives 6 at once: what a run costs beside it is the engine's."""

    name = "fake-instant"

    def run(self, program, inputs, probe):
        return [np.float32(6)]


class InstantB(Instant):
    name = "fake-instant-b"


class InstantC(Instant):
    name = "fake-instant-c"


class InstantD(Instant):
    name = "fake-instant-d"
