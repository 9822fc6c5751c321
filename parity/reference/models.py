"""The named arithmetic models: what a path may have computed instead of what was declared.

A model is one entry of `MODELS`, simplest first: what changes fewer roundings, or changes them in
fewer places, stands before what changes more. Host and workers read the same table.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from parity.dtypes import DTYPES, DType
from parity.program.spec import LICENCES
from parity.reference.narrowing import passes_through
from parity.reference.policies import EXCESS_PRECISION, FLUSH, STRICT, WIDE, Policy


@dataclass(frozen=True)
class Features:
    """What a program has that a model could apply to.

    Attributes:
        narrow: a float under 32 bits.
        subnormal: a subnormal value of a dtype that backends flush.
        granted: licences with something to apply to.
        contracts: a contraction of float32 or complex64 operands.
        sums: a contraction or sum.
        integers: integers, be it as operands or as results.
        functions: an elementary function, a division or a root.
        inexact: a floating result.
        casts: pairs of dtypes that it casts from and to.
    """

    narrow: bool = False
    subnormal: bool = False
    granted: frozenset[str] = frozenset()
    contracts: bool = False
    sums: bool = False
    integers: bool = False
    functions: bool = False
    inexact: bool = False
    casts: frozenset[tuple[DType, DType]] = frozenset()


@dataclass(frozen=True)
class Model:
    """A named way to compute something else than what was declared.

    Attributes:
        name: as reports call it.
        meaning: one sentence about a path that computes so.
        source: where that is described.
        policies: under which the program is interpreted; any of them explains an output. Those of
            several have the model's name, or that and a variant's in brackets.
        applies: whether it could change anything in a program.
    """

    name: str
    meaning: str
    source: str
    policies: tuple[Policy, ...]
    applies: Callable[[Features], bool] = field(repr=False)


def _licensed(name: str, **changes: object) -> Policy:
    return dataclasses.replace(STRICT, name=name, licences=frozenset(LICENCES), **changes)  # type: ignore[arg-type]


def _variants(name: str, **changes: Iterable[object]) -> tuple[Policy, ...]:
    """One policy for each value of one attribute."""
    ((attribute, values),) = changes.items()
    return tuple(
        _licensed(f"{name} ({getattr(value, 'name', value)})", **{attribute: value})
        for value in values
    )


def _rearranged(policy: Policy) -> Policy:
    """A model of what is dropped that also allows what `fast-math` does: whole fusions do both."""
    return dataclasses.replace(policy, name=f"{policy.name} (rearranged)", reassociates=True)


_EVERY_CAST = dataclasses.replace(
    EXCESS_PRECISION, name="excess-precision (every cast)", optional=False
)
"""Without the choice of which roundings are dropped, so that it is as tight as `wide`."""

_XLA_OPTIONS = "https://github.com/openxla/xla/blob/main/xla/xla.proto"
_ALGORITHMS = "https://openxla.org/stablehlo/spec#dot_general"

MODELS: tuple[Model, ...] = (
    Model(
        "flush-subnormals",
        "It takes subnormal values for zero.",
        "https://github.com/jax-ml/jax/issues/16200",
        (FLUSH,),
        lambda has: has.subnormal,
    ),
    Model(
        "fma-contraction",
        "An addition takes the product that feeds it unrounded.",
        "https://llvm.org/docs/LangRef.html#fast-math-flags",
        (dataclasses.replace(STRICT.granting("fma"), name="fma-contraction"),),
        lambda has: "fma" in has.granted,
    ),
    Model(
        "double-rounding",
        "A cast goes through an intermediate format and is rounded twice.",
        "https://github.com/jax-ml/ml_dtypes/issues/400",
        _variants("double-rounding", via=[DTYPES[n] for n in ("float32", "float16", "bfloat16")]),
        lambda has: any(
            passes_through(DTYPES[via], *cast)
            for via in ("float32", "float16", "bfloat16")
            for cast in has.casts
        ),
    ),
    Model(
        "saturation",
        "Values beyond the range of their dtype stop at its ends: they neither wrap nor overflow.",
        "https://onnx.ai/onnx/technical/float8.html",
        _variants("saturation", saturates=["casts", "all"]),
        lambda has: has.integers or has.narrow,
    ),
    Model(
        "integer-wrap",
        "Integers are added and multiplied in a narrower dtype than declared and wrap there.",
        "https://openxla.org/stablehlo/spec#dot_general",
        _variants("integer-wrap", integers=["narrow", "int32"]),
        lambda has: has.integers,
    ),
    Model(
        "excess-precision",
        "Narrowing casts between fused operations are dropped; those of the operands are kept.",
        "https://github.com/jax-ml/jax/issues/25873",
        (EXCESS_PRECISION, _EVERY_CAST, _rearranged(EXCESS_PRECISION)),
        lambda has: has.narrow,
    ),
    Model(
        "wide",
        "Every narrow dtype is ignored, the operands' casts included: all is computed in float32.",
        "https://github.com/jax-ml/jax/issues/25873",
        (WIDE, _rearranged(WIDE)),
        lambda has: has.narrow,
    ),
    Model(
        "bf16x6",
        "Contractions split float32 operands into three bfloat16 parts and add six products.",
        _ALGORITHMS,
        (_licensed("bf16x6", algorithm="BF16_BF16_F32_X6"),),
        lambda has: has.contracts,
    ),
    Model(
        "bf16x3",
        "Contractions split float32 operands into two bfloat16 parts and add three products.",
        _ALGORITHMS,
        (_licensed("bf16x3", algorithm="BF16_BF16_F32_X3"),),
        lambda has: has.contracts,
    ),
    Model(
        "tf32-operands",
        "Contractions round float32 operands to TF32, eleven significant bits.",
        "https://docs.jax.dev/en/latest/_autosummary/jax.default_matmul_precision.html",
        (_licensed("tf32-operands", algorithm="TF32_TF32_F32"),),
        lambda has: has.contracts,
    ),
    Model(
        "bf16-operands",
        "Contractions round float32 operands to bfloat16, eight significant bits.",
        "https://docs.jax.dev/en/latest/_autosummary/jax.default_matmul_precision.html",
        (_licensed("bf16-operands", algorithm="BF16_BF16_F32"),),
        lambda has: has.contracts,
    ),
    Model(
        "narrow-accumulator",
        "Contractions and sums are added in the narrow dtype of their operands or result.",
        _ALGORITHMS,
        (_licensed("narrow-accumulator", narrow_sums=True),),
        lambda has: has.narrow and has.sums,
    ),
    Model(
        "other-implementation",
        "Elementary functions, divisions and roots are computed by a less accurate implementation.",
        "https://openxla.org/stablehlo/spec#accuracy",
        (
            *_variants("other-implementation", ulps=[64, 2048]),
            _licensed("other-implementation (4 of the declared dtype)", declared_ulps=4),
        ),
        lambda has: has.functions,
    ),
    Model(
        "fast-math",
        "The program is rearranged as if arithmetic were exact, NaN and signs of zeros ignored.",
        _XLA_OPTIONS,
        (_licensed("fast-math", reassociates=True),),
        lambda has: has.inexact,
    ),
)
"""Every model, simplest first."""

NAMES = tuple(model.name for model in MODELS)

ALWAYS = (EXCESS_PRECISION, WIDE, FLUSH)
"""The policies under which every program is interpreted that has something for them."""


def model_named(name: str) -> Model:
    """The entry of a model or of one of its policies.

    Raises:
        KeyError: there is none of that name.
    """
    for model in MODELS:
        if name == model.name or any(name == policy.name for policy in model.policies):
            return model
    raise KeyError(name)
