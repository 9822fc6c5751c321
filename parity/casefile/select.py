"""Selecting cases and paths by id, by glob, and by `-k` expression."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase

from parity.casefile.case import Case
from parity.casefile.problem import did_you_mean
from parity.errors import NothingSelected, UserError


@dataclass(frozen=True, slots=True)
class Item:
    """One path of one case: what is run, and what a pytest item is."""

    case: Case
    path: str

    @property
    def id(self) -> str:
        """`cases/conv_bf16.yaml::conv_bf16:compute_dtype=bfloat16[jit]`."""
        return f"{self.case.id}[{self.path}]"


def items(cases: Iterable[Case]) -> list[Item]:
    """Every path of every case, in order."""
    return [Item(case, path) for case in cases for path in case.paths]


def select(chosen: Iterable[Item], expression: str) -> list[Item]:
    """The items whose id satisfies a `-k` expression.

    As in pytest: names, `and`, `or`, `not` and parentheses; a name holds if it is part of the id,
    upper and lower case alike. `=` and `,` may stand in names because ids have them.

    Raises:
        UserError: the expression cannot be read.
    """
    holds = _Parser(expression).parse()
    return [item for item in chosen if holds(item.id.casefold())]


def match_ids(chosen: Iterable[Item], patterns: Iterable[str]) -> list[Item]:
    """The items that ids or globs name, in the items' order, each once.

    A pattern is the id of an item, of a case (all its paths), of a file (`cases/conv.yaml` or
    `cases/conv.yaml::conv`: all its cases), or one of these with the wildcards * and ?; brackets
    stand for themselves.

    Raises:
        NothingSelected: a pattern matches nothing.
    """
    chosen = list(chosen)
    names = [_names(item) for item in chosen]
    kept: set[int] = set()
    for pattern in patterns:
        found = {index for index, each in enumerate(names) if _matches(each, pattern)}
        if not found:
            hint = did_you_mean(pattern, dict.fromkeys(name for each in names for name in each))
            raise NothingSelected(f"no case matches '{pattern}'", hint=hint)
        kept |= found
    return [chosen[index] for index in sorted(kept)]


def id_matches(case: str, pattern: str) -> bool:
    """Whether a pattern, as in `match_ids`, names the case of an id."""
    return _matches(_case_names(case), pattern)


def _matches(names: Iterable[str], pattern: str) -> bool:
    glob = pattern.replace("[", "[[]")
    return any(fnmatchcase(name, glob) for name in names)


def _names(item: Item) -> tuple[str, ...]:
    """All that an item may be called: its id, and what its case may be called."""
    return item.id, *_case_names(item.case.id)


def _case_names(case: str) -> tuple[str, ...]:
    """A case's id, and those of its file and name."""
    file, _, rest = case.partition("::")
    return case, f"{file}::{rest.partition(':')[0]}", file


_Holds = Callable[[str], bool]
_TOKEN = re.compile(r"\s*(?:([()])|([\w:+\-.\[\]\\/=,]+))")


class _Parser:
    """Recursive descent: or < and < not < name."""

    def __init__(self, expression: str) -> None:
        self._expression = expression
        self._tokens = self._scan()

    def parse(self) -> _Holds:
        holds = self._either()
        if self._tokens:
            raise self._error(f"got '{self._tokens[0]}'; allowed and, or")
        return holds

    def _scan(self) -> list[str]:
        tokens, at, text = [], 0, self._expression.rstrip()
        while at < len(text):
            token = _TOKEN.match(text, at)
            if token is None:
                raise self._error(f"got '{text[at:].lstrip()[0]}'")
            tokens.append(token[1] or token[2])
            at = token.end()
        return tokens

    def _either(self) -> _Holds:
        parts = [self._both()]
        while self._next_is("or"):
            parts.append(self._both())
        return lambda name: any(part(name) for part in parts)

    def _both(self) -> _Holds:
        parts = [self._negated()]
        while self._next_is("and"):
            parts.append(self._negated())
        return lambda name: all(part(name) for part in parts)

    def _negated(self) -> _Holds:
        if self._next_is("not"):
            inner = self._negated()
            return lambda name: not inner(name)
        if self._next_is("("):
            inner = self._either()
            if not self._next_is(")"):
                raise self._error("allowed )")
            return inner
        if not self._tokens or self._tokens[0] in (")", "and", "or"):
            got = f"'{self._tokens[0]}'" if self._tokens else "its end"
            raise self._error(f"got {got}; allowed a name, not, (")
        wanted = self._tokens.pop(0).casefold()
        return lambda name: wanted in name

    def _next_is(self, token: str) -> bool:
        if self._tokens and self._tokens[0] == token:
            del self._tokens[0]
            return True
        return False

    def _error(self, what: str) -> UserError:
        hint = "names joined by and, or, not, such as -k 'conv and not jit'"
        return UserError(f"-k {self._expression!r} cannot be read ({what})", hint=hint)
