"""pydantic's errors in our words."""

from __future__ import annotations

from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from parity.casefile.problem import Location, Problem, did_you_mean, listed, show, spell

Model = TypeVar("Model", bound=BaseModel)

_TYPES = {
    "int_type": ("is not an integer", "an integer"),
    "float_type": ("is not a number", "a number"),
    "string_type": ("is not a string", "a string"),
    "list_type": ("is not a list", "a list"),
    "dict_type": ("is not a mapping", "a mapping"),
    "model_type": ("is not a mapping", "a mapping"),
    "date_type": ("is not a day", "YYYY-MM-DD"),
    "finite_number": ("is not finite", "a finite number"),
    "greater_than": ("is too small", "more than {gt}"),
    "greater_than_equal": ("is too small", "at least {ge}"),
    "less_than_equal": ("is too large", "at most {le}"),
    "too_short": ("has too few entries", "at least {min_length}"),
    "too_long": ("has too many entries", "at most {max_length}"),
    "string_too_short": ("is empty", "at least one character"),
    "string_pattern_mismatch": ("has a character that ids cannot hold", "letters, digits, _ . -"),
}


def validated(
    model: type[Model], data: object, prefix: Location, *, known: type[BaseModel] | None = None
) -> Model:
    """The model of plain data.

    Args:
        model: what to make of the data.
        data: as the YAML gave it.
        prefix: where in the document it stands.
        known: the model whose keys an unknown key is compared with, if not `model`.

    Raises:
        ExceptionGroup: of Problems, all that is wrong.
    """
    try:
        return model.model_validate(data)
    except ValidationError as error:
        found = problems(error, known or model, prefix)
    raise ExceptionGroup("case file", found)


def problems(
    error: ValidationError, model: type[BaseModel], prefix: Location = ()
) -> list[Problem]:
    """One problem per error of pydantic.

    Args:
        error: what validating raised.
        model: the model at `prefix`, for the keys that are allowed.
        prefix: location of the validated mapping in the document.
    """
    details = error.errors(include_url=False)
    return [_problem(detail, model, prefix) for detail in details]


def unknown_key(at: Location, allowed: list[str]) -> Problem:
    """The problem of a key that no field has."""
    where = f" in {spell(at[:-1])}" if at[:-1] else ""
    what = f"unknown key '{at[-1]}'{where} (got {at[-1]}; allowed {listed(allowed)})"
    return Problem(what, at, key=True, hint=did_you_mean(at[-1], allowed))


def missing_key(at: Location, description: str | None) -> Problem:
    """The problem of a key that must be there."""
    where = f" in {spell(at[:-1])}" if at[:-1] else ""
    hint = f"{at[-1]}: {description}" if description else None
    return Problem(f"missing key '{at[-1]}'{where}", at[:-1], hint=hint)


def _problem(detail: ErrorDetails, model: type[BaseModel], prefix: Location) -> Problem:
    inner = tuple(part for part in detail["loc"] if part != "[key]")
    at = prefix + inner
    kind, context = detail["type"], detail.get("ctx", {})
    if kind == "extra_forbidden":
        fields = _model_at(model, inner[:-1]).model_fields
        return unknown_key(at, [field.alias or name for name, field in fields.items()])
    if kind == "missing":
        field = _model_at(model, inner[:-1]).model_fields[str(inner[-1])]
        return missing_key(at, field.description)
    if kind == "refused":
        at += tuple(context["within"])
        return Problem(f"{spell(at)} {context['what']}", at, hint=context["hint"])
    what, allowed = _TYPES.get(kind, (detail["msg"], ""))
    got = f"got {show(detail['input'])}"
    limits = {name: f"{n:g}" for name, n in context.items() if isinstance(n, int | float)}
    allowed = f"; allowed {allowed.format(**limits)}" if allowed else ""
    return Problem(f"{spell(at)} {what} ({got}{allowed})", at)


def _model_at(model: type[BaseModel], inner: Location) -> type[BaseModel]:
    """The model of the mapping at a location below a model."""
    for part in inner:
        if isinstance(part, str) and part in model.model_fields:
            model = next(_models(model.model_fields[part].annotation), model)
    return model


def _models(annotation: Any) -> Any:
    """The models that an annotation holds, outermost first."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _models(argument)
