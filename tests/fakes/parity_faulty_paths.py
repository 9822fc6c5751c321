"""Paths that compute something else than what the program declares."""

import ml_dtypes
import numpy as np
from parity_fake_paths import Honest


def through(dtype):
    def narrow(x):
        return x.astype(dtype).astype(x.dtype)

    return narrow


def tf32(x):
    bits = x.view(np.uint32)
    tie = (bits >> np.uint32(13)) & np.uint32(1)
    return ((bits + np.uint32(0x0FFF) + tie) & np.uint32(0xFFFFE000)).view(np.float32)


class Rounding(Honest):
    def run(self, program, inputs, probe):
        return super().run(program, [self.rounding(x) for x in inputs], probe)


class Bf16Operands(Rounding):
    name = "fake-bf16-operands"
    rounding = staticmethod(through(ml_dtypes.bfloat16))


class Tf32Operands(Rounding):
    name = "fake-tf32-operands"
    rounding = staticmethod(tf32)


class Altering(Honest):
    def run(self, program, inputs, probe):
        return [self.alter(out) for out in super().run(program, inputs, probe)]


class OneUlp(Altering):
    name = "fake-one-ulp"

    @staticmethod
    def alter(out):
        out = out.copy()
        out.flat[-1] = np.nextafter(out.flat[-1], out.dtype.type(np.inf))
        return out


class NanToZero(Altering):
    name = "fake-nan-to-zero"

    @staticmethod
    def alter(out):
        return np.where(np.isnan(out), out.dtype.type(0), out)


class WrongDType(Altering):
    name = "fake-wrong-dtype"

    @staticmethod
    def alter(out):
        return out.astype(np.float64)
