"""What a case file may say, as pydantic models.

`Header` is checked once per file, `Body` at every point of the sweep; `CaseFileModel` is both and
gives the JSON Schema. The attributes of an op have models of their own (`casefile/ops`).
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Discriminator, Field, RootModel, Tag, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from parity.casefile.fields import (
    X64,
    Count,
    Day,
    Draw,
    DType,
    Finite,
    Grades,
    Licence,
    Limit,
    Outcome,
    RegularExpression,
    Seed,
    Sentence,
    Size,
    Stage,
    Strict,
    Strings,
    SubnormalsOf,
    Target,
    Transform,
    Versions,
)
from parity.program.spec import LICENCES

NAME_PATTERN = r"^[A-Za-z0-9_.-]+$"
DEFAULT_PATHS = ["eager", "jit", "jax2tf-native", "jax2tf-nonnative"]


class Filling(Strict):
    """How an array's elements come about: exactly one of values, file and draw."""

    values: Any = Field(
        default=None, description="nested lists of numbers, 'nan', 'inf', '0x1.8p3', '1+2j'"
    )
    file: str | None = Field(
        default=None, description=".npy, .npz or .safetensors, beside this file or below"
    )
    key: str | None = Field(
        default=None, description="the array's name inside the .npz or .safetensors"
    )
    draw: Draw | None = Field(
        default=None, description="the distribution it is drawn from, on the host"
    )
    seed: Seed | None = Field(
        default=None, description="seed of the draw; default: the file's seed"
    )
    low: Finite | None = Field(default=None, description="smallest value of uniform and integers")
    high: Finite | None = Field(default=None, description="largest value of uniform and integers")
    min_exponent: int | None = Field(
        default=None, ge=-1074, le=1023, description="smallest power of two"
    )
    max_exponent: int | None = Field(
        default=None, ge=-1074, le=1023, description="largest power of two"
    )
    of: SubnormalsOf | None = Field(
        default=None, description="the format whose subnormals are drawn"
    )
    share: float | None = Field(default=None, ge=0, le=1, description="share of the special values")


class OperandModel(Filling):
    """An operand."""

    shape: list[Size] | None = Field(default=None, description="may be left out beside values")
    dtype: DType = Field(description="the dtype in which it is handed to the program")


class CotangentModel(Filling):
    """The cotangent of vjp; drawn `normal` unless said otherwise."""

    shape: list[Size] | None = Field(
        default=None, description="the output's shape, where it cannot be inferred"
    )
    dtype: DType | None = Field(
        default=None, description="the output's dtype, where it cannot be inferred"
    )


class ToleranceModel(Strict):
    """Limits that lift a row to `equivalent`: |got - want| <= atol + rtol * |want|."""

    rtol: Limit | None = Field(default=None, description="relative limit")
    atol: Limit | None = Field(default=None, description="absolute limit")
    max_ulp: Limit | None = Field(
        default=None, description="largest distance in ulps of the output dtype"
    )
    against: Target = Field(default="baseline", description="what is wanted")


class WhenModel(Strict):
    """Where an expectation holds: versions as in PEP 440, platform and processor by name."""

    jax: Versions | None = None
    tensorflow: Versions | None = None
    platform: str | None = None
    cpu: str | None = None


class ExpectModel(Strict):
    """A known finding: it must come true where it applies."""

    path: Strings = Field(description="the path or paths it speaks of")
    where: dict[str, Any] = Field(
        default={}, description="sweep axes or fields and the values it needs"
    )
    output: Strings | None = Field(default=None, description="the output or outputs it speaks of")
    grade: Grades | None = Field(
        default=None, description="the grade, or any of the grades, it expects"
    )
    outcome: Outcome | None = Field(
        default=None, description="the outcome it expects instead of a grade"
    )
    stage: Stage | None = Field(default=None, description="the stage of an expected error")
    match: RegularExpression | None = Field(
        default=None, description="what the message must contain"
    )
    because: Sentence = Field(description="why")
    link: str | None = Field(default=None, description="where that is discussed")
    until: Day | None = Field(default=None, description="the last day on which it holds")
    when: WhenModel = Field(default=WhenModel(), description="the environments in which it holds")


Axis = Annotated[list[Any], Field(min_length=1)]


class ProductModel(RootModel[dict[str, Axis]]):
    """The short form of a sweep: every combination of its axes."""


class SweepModel(Strict):
    """The full form of a sweep: every combination of `product` with every row of `zip`."""

    product: dict[str, Axis] = Field(default={}, description="field: values, in every combination")
    zip: dict[str, Axis] = Field(default={}, description="field: values, taken together")
    exclude: list[Annotated[dict[str, Any], Field(min_length=1)]] = Field(
        default=[], description="combinations of axis values to leave out"
    )


class VariantModel(Strict):
    """A path with flags, under a name of its own."""

    path: str = Field(description="which path")
    name: str | None = Field(
        default=None, pattern=NAME_PATTERN, description="in rows; default: path and a hash"
    )
    compiler_options: dict[str, bool | int | float | str] = Field(
        default={}, description="XLA options of this compilation alone"
    )
    settings: dict[str, bool | int | float | str | list[str]] = Field(
        default={}, description="what the path takes beside them"
    )
    polymorphic_shapes: dict[str, str] = Field(
        default={}, description="operand: its dimensions, such as 'batch, 8, _'; exported so"
    )
    env: dict[str, str] = Field(default={}, description="environment variables of its worker")


PathItem = Annotated[
    Annotated[str, Tag("path")] | Annotated[VariantModel, Tag("variant")],
    Discriminator(lambda value: "path" if isinstance(value, str) else "variant"),
]


class Header(Strict):
    """What a case file says about all its cases."""

    name: str | None = Field(
        default=None, pattern=NAME_PATTERN, description="default: the file's stem"
    )
    about: Sentence = Field(description="one sentence: what it guards")
    links: list[str] = Field(default=[], description="where it is discussed")
    transforms: list[Transform] = Field(
        default=["forward"],
        min_length=1,
        description="forward, vjp, jvp, vmap: a sweep axis of its own",
    )
    sweep: Any = Field(default=None, description="field: values; or product, zip and exclude")
    expect: list[ExpectModel] = Field(default=[], description="known findings")


class Body(Strict):
    """What one case says."""

    program: dict[str, Any] | None = Field(
        default=None, description="a Python function instead of an op"
    )
    flax: dict[str, Any] | None = Field(
        default=None, description="a module of flax instead of an op"
    )
    steps: list[Any] | None = Field(
        default=None, min_length=1, description="a chain of steps instead of an op"
    )
    op: str | None = Field(
        default=None,
        validate_default=True,
        description="the op, one of casefile/ops; or write program, flax or steps",
    )
    operands: dict[str, OperandModel] = Field(min_length=1, description="name: operand")
    attributes: dict[str, Any] = Field(default={}, description="keyword arguments of the op")
    compute_dtype: DType | None = Field(
        default=None, description="operands are cast to it before the op"
    )
    output_dtype: DType | None = Field(default=None, description="the op's result is cast to it")
    residual: str | None = Field(default=None, description="an operand that is added to the result")
    batch: Count = Field(default=3, description="length of the leading axis under vmap")
    cotangent: CotangentModel = Field(default=CotangentModel(), description="the cotangent of vjp")
    cotangents: dict[str, CotangentModel] = Field(
        default={}, description="output: its cotangent, for a program of several"
    )
    gradients: Strings | None = Field(
        default=None,
        description="what vjp and jvp differentiate: operands by name, operands, parameters",
    )
    batched: Strings | None = Field(
        default=None, description="the operands that vmap maps over; default: all"
    )
    tangents: dict[str, Filling] = Field(default={}, description="operand: its tangent under jvp")
    paths: list[PathItem] = Field(
        default=[*DEFAULT_PATHS], min_length=1, description="the paths to run, or variants of them"
    )
    baseline: str = Field(default="eager", description="the path that the others are compared with")
    tolerance: ToleranceModel | None = Field(default=None, description="explicit limits")
    licences: list[Licence] = Field(
        default=list(LICENCES),
        description="what a compiler may do beside reordering sums and still be equivalent",
    )
    x64: X64 = Field(
        default="auto", description="64-bit types; auto: where a declared dtype needs them"
    )
    devices: Count = Field(
        default=1, description="how many devices the host is divided into for JAX, where it can be"
    )
    seed: Seed = Field(default=0, description="seed of everything drawn")
    timeout: float | None = Field(default=None, gt=0, le=86400, description="seconds per path")

    @field_validator("op")
    @classmethod
    def _is_given(cls, op: str | None, info: ValidationInfo) -> str | None:
        others = ("program", "flax", "steps")  # what is wrong with one of them is said already
        if op is None and all(info.data.get(field, field) is None for field in others):
            raise PydanticCustomError("missing", "missing")
        return op


class CaseFileModel(Body, Header):
    """A case file."""
