"""The building blocks of the schema: names, sizes, precisions, and how they say what they want.

Unions are read by functions of our own instead of by pydantic's unions, whose locations name the
members of the union and whose errors speak of each member.
"""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass
from typing import Annotated, Any, NoReturn

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    PlainValidator,
    WithJsonSchema,
)
from pydantic_core import PydanticCustomError
from pydantic_core.core_schema import CoreSchema, no_info_after_validator_function

from parity.casefile.case import GRADES, OUTCOMES, STAGES
from parity.casefile.distributions import PARAMETERS
from parity.casefile.problem import did_you_mean, listed, show
from parity.dtypes import DTYPES
from parity.program.spec import LICENCES, TRANSFORMS

PRECISIONS = ("default", "high", "highest")
PRESETS = (
    "ANY_F8_ANY_F8_F32",
    "ANY_F8_ANY_F8_F32_FAST_ACCUM",
    "ANY_F8_ANY_F8_ANY",
    "ANY_F8_ANY_F8_ANY_FAST_ACCUM",
    "F16_F16_F16",
    "F16_F16_F32",
    "BF16_BF16_BF16",
    "BF16_BF16_F32",
    "BF16_BF16_F32_X3",
    "BF16_BF16_F32_X6",
    "BF16_BF16_F32_X9",
    "TF32_TF32_F32",
    "TF32_TF32_F32_X3",
    "F32_F32_F32",
    "F64_F64_F64",
)
"""`jax.lax.DotAlgorithmPreset` (JAX 0.7.1) without DEFAULT, which is the precision "default"."""

SUBNORMAL_FORMATS = tuple(
    name
    for name, dtype in DTYPES.items()
    if dtype.kind == "float" and dtype.format and dtype.format.has_zero
)


class Strict(BaseModel):
    """A mapping of a case file: no conversions, no unknown keys."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


def fail(what: str, *, hint: str | None = None, within: tuple[str | int, ...] = ()) -> NoReturn:
    """Refuse a value from inside a validator; `within` is the offending part of it."""
    raise PydanticCustomError("refused", "{what}", {"what": what, "hint": hint, "within": within})


@dataclass(frozen=True)
class OneOf:
    """Annotates a string that must be one name out of a fixed set."""

    noun: str
    allowed: tuple[str, ...]

    def check(self, name: str) -> str:
        """The name itself, if it is allowed."""
        if name in self.allowed:
            return name
        what = f"is no {self.noun} (got {show(name)}; allowed {listed(self.allowed)})"
        fail(what, hint=did_you_mean(name, self.allowed))

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return no_info_after_validator_function(self.check, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {"type": "string", "enum": list(self.allowed)}


def any_case(names: tuple[str, ...]) -> list[str]:
    """Names in small and in capital letters, for the JSON Schema of what takes any case."""
    return [*(name.lower() for name in names), *(name.upper() for name in names)]


def _callable_name(text: str) -> str:
    if _CALLABLE.fullmatch(text):
        return text
    hint = None
    if "/" in text or ".py" in text:
        hint = "name the module alone: its file NAME.py stands beside the case file"
    allowed = "module:name, such as attention:scores or jax.nn:gelu"
    fail(f"is no name of a callable (got {show(text)}; allowed {allowed})", hint=hint)


def _plain(value: Any, within: tuple[str | int, ...] = ()) -> Any:
    """Data as JSON has it; a mapping of `callable` alone names something."""
    if isinstance(value, dict):
        if set(value) == {"callable"} and isinstance(value["callable"], str):
            _callable_within(value["callable"], within)
        return {key: _plain(item, (*within, key)) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item, (*within, index)) for index, item in enumerate(value)]
    if value is not None and not isinstance(value, bool | int | float | str):
        fail(f"is no plain data (got {show(value)}; allowed numbers, strings)", within=within)
    return value


def _callable_within(name: str, within: tuple[str | int, ...]) -> None:
    if not _CALLABLE.fullmatch(name):
        allowed = "module:name, such as jax.nn:gelu"
        what = f"is no name of a callable (got {show(name)}; allowed {allowed})"
        fail(what, within=(*within, "callable"))


def _keywords(value: Any) -> Any:
    if not isinstance(value, dict):
        fail(f"is not a mapping (got {show(value)}; allowed a mapping)")
    for key in value:
        if not key.isidentifier():
            fail(f"is no keyword (got {show(key)}; allowed letters, digits, _)", within=(key,))
    return _plain(value)


def _one_or_many(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _precision_name(value: Any, within: tuple[int, ...] = ()) -> str:
    allowed = PRECISIONS if within else PRECISIONS + PRESETS
    if isinstance(value, str):
        for name in allowed:
            if value.casefold() == name.casefold():
                return name
    either = "" if within else ", or a pair [lhs, rhs] of the first three"
    what = f"is no precision (got {show(value)}; allowed {listed(allowed)}{either})"
    fail(what, hint=did_you_mean(value, allowed), within=within)


def _precision(value: Any) -> str | tuple[str, ...]:
    if isinstance(value, list):
        if len(value) != 2:
            fail(f"is not a pair (got {show(value)}; allowed [lhs, rhs])")
        return tuple(_precision_name(name, (index,)) for index, name in enumerate(value))
    return _precision_name(value)


def _x64(value: Any) -> bool | str:
    if isinstance(value, bool) or value == "auto":
        return "auto" if value == "auto" else bool(value)
    fail(f"is no setting of x64 (got {show(value)}; allowed auto, true, false)")


def _iso_date(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return datetime.date.fromisoformat(value)
    except ValueError:
        fail(f"is not a day (got {show(value)}; allowed YYYY-MM-DD)")


def _regular_expression(pattern: str) -> str:
    try:
        re.compile(pattern)
    except re.error as error:
        fail(f"is not a regular expression (got {show(pattern)}: {error})")
    return pattern


def _specifier(text: str) -> str:
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    try:
        SpecifierSet(text)
    except InvalidSpecifier:
        what = f"is not a version specifier (got {show(text)}; allowed such as '>=0.7,<0.8')"
        fail(what, hint="see https://packaging.python.org/specifications/version-specifiers")
    return text


_CALLABLE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")

_MANY = {"type": "array", "items": {"type": "string"}, "minItems": 1}
_ONE_OR_MANY = BeforeValidator(_one_or_many)
_PRECISION_SCHEMA = {
    "anyOf": [
        {"enum": any_case(PRECISIONS + PRESETS)},
        {
            "type": "array",
            "items": {"enum": any_case(PRECISIONS)},
            "minItems": 2,
            "maxItems": 2,
        },
    ]
}

Count = Annotated[int, Field(ge=1)]
Size = Annotated[int, Field(ge=0)]
Seed = Annotated[int, Field(ge=0)]
Finite = Annotated[float, Field(allow_inf_nan=False)]
Limit = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Sentence = Annotated[str, Field(min_length=1)]
DType = Annotated[str, OneOf("dtype", tuple(DTYPES))]
Draw = Annotated[str, OneOf("distribution", tuple(PARAMETERS))]
SubnormalsOf = Annotated[str, OneOf("format with subnormals", SUBNORMAL_FORMATS)]
Transform = Annotated[str, OneOf("transform", TRANSFORMS)]
Licence = Annotated[str, OneOf("licence", LICENCES)]
Grade = Annotated[str, OneOf("grade", GRADES)]
Outcome = Annotated[str, OneOf("outcome", OUTCOMES[1:])]
Stage = Annotated[str, OneOf("stage", STAGES)]
Target = Annotated[str, OneOf("target", ("baseline", "f64"))]
Precision = Annotated[Any, PlainValidator(_precision), WithJsonSchema(_PRECISION_SCHEMA)]
X64 = Annotated[Any, PlainValidator(_x64), WithJsonSchema({"enum": ["auto", True, False]})]
Strings = Annotated[
    list[str],
    Field(min_length=1),
    _ONE_OR_MANY,
    WithJsonSchema({"anyOf": [{"type": "string"}, _MANY]}),
]
Grades = Annotated[
    list[Grade],
    Field(min_length=1),
    _ONE_OR_MANY,
    WithJsonSchema(
        {
            "anyOf": [
                {"enum": list(GRADES)},
                {"type": "array", "items": {"enum": list(GRADES)}, "minItems": 1},
            ]
        }
    ),
]
Day = Annotated[
    datetime.date,
    BeforeValidator(_iso_date),
    WithJsonSchema({"type": "string", "format": "date"}),
]
CallableName = Annotated[str, AfterValidator(_callable_name)]
KeywordArguments = Annotated[Any, PlainValidator(_keywords), WithJsonSchema({"type": "object"})]
RegularExpression = Annotated[str, AfterValidator(_regular_expression)]
Versions = Annotated[str, AfterValidator(_specifier)]
