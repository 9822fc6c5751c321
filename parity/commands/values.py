"""Values of options that click's own types do not take, or not with a hint."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import click

from parity.casefile.problem import did_you_mean
from parity.errors import UserError

if TYPE_CHECKING:
    _Choice = click.Choice[str]
    _Type = click.ParamType[int]
    _Seconds = click.ParamType[float]
else:  # click before 8.2 has no type arguments
    _Choice, _Type, _Seconds = click.Choice, click.ParamType, click.ParamType

_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600}
_UNITS = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}


def _option(param: click.Parameter | None) -> str:
    return "the value" if param is None else max(param.opts, key=len)


class Choice(_Choice):
    """One of some names; a misspelt one gets a hint."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The name.

        Raises:
            UserError: it is none of them.
        """
        if value not in self.choices:
            raise UserError(
                f"unknown {_option(param)} (got {value}; allowed {', '.join(self.choices)})",
                hint=did_you_mean(value, self.choices),
            )
        return value


class Bytes(_Type):
    """A number of bytes, also as `512M` or `8GB`; units are powers of 1024."""

    name = "bytes"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The number.

        Raises:
            UserError: it is none.
        """
        found = re.fullmatch(r"(\d+(?:\.\d+)?) ?([KMGT]?)(?:i?B)?", str(value), re.IGNORECASE)
        if found is None:
            raise UserError(
                f"wrong {_option(param)} (got {value}; allowed a number of bytes, "
                "also with K, M, G or T)",
                hint="such as 512M or 8G",
            )
        return int(float(found[1]) * 2 ** _UNITS[found[2].upper()])


class Duration(_Seconds):
    """A number of seconds, also as `30s`, `10m` or `1h`."""

    name = "duration"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """The seconds.

        Raises:
            UserError: it is no positive duration.
        """
        found = re.fullmatch(r"(\d+(?:\.\d+)?) ?([smh]?)", str(value))
        if found is None or not float(found[1]) > 0:
            raise UserError(
                f"wrong {_option(param)} (got {value}; allowed a positive number of seconds, "
                "also with s, m or h)",
                hint="such as 30s or 10m",
            )
        return float(found[1]) * _SECONDS[found[2]]
