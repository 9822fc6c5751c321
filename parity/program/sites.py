"""The equations of a program as plain data: where each stands, and in which line of whose code.

An equation's *address* is its number among those of the program, "3". Inside an equation that runs
jaxprs of its own (calls, loops, branches) the number of the jaxpr and that of the equation in it
follow: "5.0.2".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from parity.dtypes import DTYPES

Address = tuple[int, ...]
"""Numbers of equations and, between two of them, of jaxprs."""

OPAQUE = ("while", "shard_map")
"""Primitives in which equations can have barriers but give no further outputs."""

OBSERVED = "observed."
"""How the names of outputs begin that are intermediates."""


@dataclass(frozen=True, slots=True)
class Site:
    """One equation of a program.

    Attributes:
        address: where it stands, "5.0.2".
        primitive: what it computes.
        dtypes: of its results.
        shapes: of its results; in a loop, those of one step.
        file: the innermost file beside the case file, or else of the user's, or else of a library
            such as flax, in which it was written; "" where it is none of these: an op that the case
            file names.
        line: in that file, 0 where there is none.
        function: around that line.
        own: whether the file is the user's.
        module: path of the flax module or named scope, "Net/Block_0/Conv_0", or "".
        within: primitives of the equations around it, outermost first.
        runs: whether it holds equations that are listed after it.
        observable: whether its results can be outputs of the program.
    """

    address: str
    primitive: str
    dtypes: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]
    file: str = ""
    line: int = 0
    function: str = ""
    own: bool = False
    module: str = ""
    within: tuple[str, ...] = ()
    runs: bool = False
    observable: bool = True

    @property
    def place(self) -> str:
        """`model.py:12 in __call__`, or ""."""
        if not self.file:
            return ""
        return f"{self.file}:{self.line}" + (f" in {self.function}" if self.function else "")

    @property
    def outputs(self) -> tuple[str, ...]:
        """The names of its results as outputs of the program that observes them."""
        return tuple(output(self.address, at, len(self.dtypes)) for at in range(len(self.dtypes)))

    def to_wire(self) -> dict[str, Any]:
        """Builtins that `from_wire` reads back."""
        return asdict(self)

    @staticmethod
    def from_wire(wire: Mapping[str, Any]) -> Site:
        """The site that `to_wire` wrote."""
        fields = dict(wire)
        fields["shapes"] = tuple(map(tuple, fields["shapes"]))
        for name in ("dtypes", "within"):
            fields[name] = tuple(fields[name])
        return Site(**fields)


def address(text: str) -> Address:
    """The numbers of an address.

    Raises:
        ValueError: it is none.
    """
    numbers = tuple(map(int, text.split(".")))
    if len(numbers) % 2 == 0 or min(numbers) < 0:
        raise ValueError(f"no address of an equation (got {text}; allowed such as 3 or 5.0.2)")
    return numbers


def spelt(numbers: Address) -> str:
    """An address as text."""
    return ".".join(map(str, numbers))


def output(of: str, at: int, count: int) -> str:
    """The name of an observed result.

    Args:
        of: address of the equation.
        at: which of its results.
        count: how many it has.
    """
    return f"{OBSERVED}{of}" + (f":{at}" if count > 1 else "")


def barrier_bits(name: str) -> tuple[int, int] | None:
    """Exponent and mantissa bits of the barrier that keeps every value of a dtype.

    A format of fewer than five bits of exponent, or one that uses the exponent of infinity for
    numbers, takes one more: `lax.reduce_precision` flushes what is subnormal in the format that it
    is given, and knows infinities alone.

    Returns:
        None for what no barrier is for: integers, complex numbers, formats without a sign, and
        float8_e5m2fnuz, whose smallest numbers are subnormal in the float16 that XLA computes in.
    """
    element = DTYPES.get(name)
    if element is None or element.kind != "float" or element.format is None:
        return None
    form = element.format
    if not form.signed or name == "float8_e5m2fnuz":
        return None
    mantissa = form.precision - 1
    exponent = element.bits - mantissa - 1
    enough = exponent >= 5 and form.overflow == "inf"
    return (exponent if enough else exponent + 1), mantissa
