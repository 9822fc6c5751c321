"""From what a case file says of an array to the `Operand` that generates it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from parity.casefile import arrayfile, values
from parity.casefile.case import Operand
from parity.casefile.distributions import PARAMETERS
from parity.casefile.problem import Location, Problem, listed, show, spell
from parity.casefile.schema import Filling, OperandModel
from parity.dtypes import DType, dtype

_SOURCES = ("values", "file", "draw")
_INTEGRAL = ("integers",)
_EXACT = 2**53


class Fillings:
    """Checks arrays of one case file, each array's elements once for all points of a sweep.

    Args:
        folder: the case file's.
        seed: that of draws without one of their own.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._checked: set[tuple[int, tuple[int, ...], str]] = set()
        self._stored: dict[tuple[str, str | None], arrayfile.Stored] = {}

    def operand(self, name: str, model: OperandModel, seed: int) -> Operand:
        """The operand of one example, its shape inferred from values where it is left out.

        Raises:
            Problem: it is not filled, or not by what is declared.
        """
        at: Location = ("operands", name)
        if not name.isidentifier():
            what = f"'{name}' cannot name an operand (got {show(name)}; allowed letters, digits, _)"
            raise Problem(what, at, key=True)
        if model.shape is not None:
            shape = tuple(model.shape)
        elif model.values is not None:
            shape = values.shape_of(model.values)
        else:
            raise Problem(f"missing key 'shape' in {spell(at)}", at, hint="shape: [2, 3]")
        return self.fill(name, model, shape, model.dtype, seed, at)

    def fill(
        self,
        name: str,
        model: Filling,
        shape: tuple[int, ...],
        dtype_name: str,
        seed: int,
        at: Location,
    ) -> Operand:
        """The operand of a given shape and dtype.

        Raises:
            Problem: it is not filled, or not by what is declared.
        """
        source = _source(model, at)
        kind = dtype(dtype_name)
        if source == "draw":
            assert model.draw is not None  # what _source found
            parameters = _parameters(model, model.draw, kind, at)
            own = seed if model.seed is None else model.seed
            return Operand(
                name, shape, dtype_name, draw=model.draw, parameters=parameters, seed=own
            )
        if source == "file":
            assert model.file is not None
            self._check_file(model.file, model.key, shape, dtype_name, at)
            return Operand(name, shape, dtype_name, file=Path(model.file), key=model.key)
        self._check_values(model.values, shape, kind, at)
        return Operand(name, shape, dtype_name, values=model.values)

    def stored(self, name: str, at: Location) -> list[Operand]:
        """Every array of a file, under its own name, in which `/` is a dot.

        Raises:
            Problem: the file is outside the folder, unreadable, or no archive.
        """
        try:
            path = arrayfile.locate(self._folder, name)
            stored = {key: arrayfile.inspect(path, key) for key in arrayfile.keys(path)}
        except arrayfile.ArrayFileError as error:
            raise Problem(f"{spell(at)} {error}", at, hint=error.hint) from None
        return [
            Operand(key.replace("/", "."), of.shape, of.dtype, file=Path(name), key=key)
            for key, of in stored.items()
        ]

    def _check_values(self, data: Any, shape: tuple[int, ...], kind: DType, at: Location) -> None:
        token = (id(data), shape, kind.name)
        if token not in self._checked:
            values.check(data, shape, kind, (*at, "values"))
            self._checked.add(token)

    def _check_file(
        self, name: str, key: str | None, shape: tuple[int, ...], dtype_name: str, at: Location
    ) -> None:
        where = (*at, "file")
        try:
            if (name, key) not in self._stored:
                path = arrayfile.locate(self._folder, name)
                self._stored[name, key] = arrayfile.inspect(path, key)
        except arrayfile.ArrayFileError as error:
            raise Problem(f"{spell(where)} {error}", where, hint=error.hint) from None
        stored = self._stored[name, key]
        if stored != arrayfile.Stored(shape, dtype_name):
            what = (
                f"{spell(where)} is not what is declared (got {stored.dtype} {list(stored.shape)}; "
                f"allowed {dtype_name} {list(shape)})"
            )
            raise Problem(what, where)


def _source(model: Filling, at: Location) -> str:
    """Which one of values, file and draw is given."""
    given = [name for name in _SOURCES if getattr(model, name) is not None]
    if len(given) != 1:
        got = listed(given) if given else "none"
        what = f"{spell(at)} needs exactly one of values, file and draw (got {got})"
        raise Problem(what, at, hint="draw: normal")
    if given[0] != "file" and model.key is not None:
        raise Problem(f"{spell(at)}.key stands beside file only", (*at, "key"), key=True)
    if given[0] != "draw" and model.seed is not None:
        raise Problem(f"{spell(at)}.seed stands beside draw only", (*at, "seed"), key=True)
    known = PARAMETERS[model.draw] if model.draw is not None else {}
    for name in sorted({name for each in PARAMETERS.values() for name in each} - set(known)):
        if getattr(model, name) is not None:
            allowed = f"; allowed {listed(known)}" if known else ""
            what = f"{spell(at)}.{name} is no parameter of {model.draw or given[0]}"
            what += f" (got {name}{allowed})"
            raise Problem(what, (*at, name), key=True)
    return given[0]


def _parameters(
    model: Filling, distribution: str, kind: DType, at: Location
) -> dict[str, float | str]:
    """All parameters of a distribution, defaults filled in, checked against the dtype."""
    defaults = PARAMETERS[distribution]
    given = {name: getattr(model, name) for name in defaults}
    filled = {name: defaults[name] if value is None else value for name, value in given.items()}
    if kind.format is None and distribution not in _INTEGRAL:
        what = (
            f"{spell(at)}.draw gives no whole numbers (got {distribution} for {kind.name}; "
            f"allowed {listed(_INTEGRAL)})"
        )
        raise Problem(what, (*at, "draw"))
    for low, high in (("low", "high"), ("min_exponent", "max_exponent")):
        if low in filled and float(filled[low]) > float(filled[high]):
            got = f"{show(filled[low])} and {show(filled[high])}"
            what = f"{spell(at)}.{low} exceeds {high} (got {got})"
            raise Problem(what, (*at, low), instead=(*at, high))
    if distribution in _INTEGRAL:
        _check_whole(filled, kind, at)
    return filled


def _check_whole(filled: dict[str, float | str], kind: DType, at: Location) -> None:
    low, high = kind.integer_range if kind.is_integer else (-_EXACT, _EXACT)
    low, high = max(low, -_EXACT), min(high, _EXACT)
    for name in ("low", "high"):
        value = float(filled[name])
        if not value.is_integer() or not low <= value <= high:
            what = (
                f"{spell(at)}.{name} is no whole number that {kind.name} holds "
                f"(got {value:g}; allowed {low} to {high})"
            )
            hint = f"give low and high, such as low: {max(low, -4)}, high: {min(high, 4)}"
            raise Problem(what, (*at, name), instead=(*at, "draw"), hint=hint)
