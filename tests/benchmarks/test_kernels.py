"""The price of the float64 convolution, as ratios to peers in the same process."""

import functools

import jax
import numpy as np
import pytest

from parity.reference.kernels import conv_general_dilated

pytestmark = pytest.mark.benchmark

NHWC = ((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2))
LHS, RHS = (8, 56, 56, 64), (3, 3, 64, 64)


def operands(rhs_shape=RHS):
    rng = np.random.default_rng(0)
    return rng.normal(size=LHS), rng.normal(size=rhs_shape)


def attributes(groups=1):
    return {
        "window_strides": (1, 1),
        "padding": ((1, 1), (1, 1)),
        "lhs_dilation": (1, 1),
        "rhs_dilation": (1, 1),
        "dimension_numbers": NHWC,
        "feature_group_count": groups,
        "batch_group_count": 1,
    }


def kernel(lhs, rhs, groups=1):
    return lambda: conv_general_dilated(lhs, rhs, **attributes(groups))


def xla(lhs, rhs, groups=1):
    """XLA's float64 convolution, compiled, on arrays that it already holds."""
    conv = attributes(groups) | {"dimension_numbers": jax.lax.ConvDimensionNumbers(*NHWC)}
    with jax.experimental.enable_x64():
        lhs, rhs = jax.device_put(lhs), jax.device_put(rhs)
        function = functools.partial(jax.lax.conv_general_dilated, **conv)
        compiled = jax.jit(function).lower(lhs, rhs).compile()
    assert lhs.dtype == np.float64
    return lambda: compiled(lhs, rhs).block_until_ready()


def test_convolution_against_one_bare_gemm(ratio, interleaved):
    lhs, rhs = operands()
    rows = np.random.default_rng(1).normal(size=(8 * 56 * 56, 3 * 3 * 64))
    columns = rhs.reshape(3 * 3 * 64, 64)
    ours, theirs = interleaved(kernel(lhs, rhs), lambda: rows @ columns, rounds=40)
    ratio("float64 convolution / one bare GEMM of its size", ours, theirs, 1.3)


def test_convolution_against_xla(ratio, interleaved):
    lhs, rhs = operands()
    ours, theirs = interleaved(kernel(lhs, rhs), xla(lhs, rhs), rounds=8)
    ratio("float64 convolution / XLA", ours, theirs, 1.0)


def test_depthwise_convolution_against_xla(ratio, interleaved):
    lhs, rhs = operands((3, 3, 1, 64))
    ours, theirs = interleaved(kernel(lhs, rhs, 64), xla(lhs, rhs, 64), rounds=8)
    ratio("float64 depthwise convolution / XLA", ours, theirs, 1.0)


def test_convolution_against_pytorch(ratio, interleaved):
    torch = pytest.importorskip("torch", reason="PyTorch is not a dependency of the tests")
    lhs, rhs = operands()
    images = torch.from_numpy(lhs).permute(0, 3, 1, 2).contiguous()
    filters = torch.from_numpy(rhs).permute(3, 2, 0, 1).contiguous()
    ours, theirs = interleaved(
        kernel(lhs, rhs),
        lambda: torch.nn.functional.conv2d(images, filters, padding=1),
        rounds=8,
    )
    ratio("float64 convolution / PyTorch", ours, theirs, 1.0)
