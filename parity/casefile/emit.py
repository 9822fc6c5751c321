"""Values as YAML on one line, in the style of the case files."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from typing import Any

from ruamel.yaml import YAML

_UNBROKEN = 1 << 20
"""A line width that breaks no line."""


def field(name: str, value: Any) -> str:
    """A field on a line of its own: `because: excess-precision`."""
    if isinstance(value, Mapping | list):
        return f"{name}: {flow(value)}"
    return f"{name}: {_scalar(value, within='k: ')}"


def flow(value: Any) -> str:
    """A value inside of brackets or braces."""
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{flow(name)}: {flow(of)}' for name, of in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(flow, value))}]"
    return _scalar(value, within="[")


def _scalar(value: Any, *, within: str) -> str:
    # ruamel breaks lines, and writes ?x and :x bare, which it does not read inside of brackets.
    if isinstance(value, str) and re.search(r"[\r\n\x85\u2028\u2029]|^[?:]", value):
        return _escaped(value)
    yaml = YAML(typ="safe", pure=True)
    yaml.width = _UNBROKEN
    yaml.default_flow_style = within == "["
    out = io.StringIO()
    yaml.dump([value] if within == "[" else {"k": value}, out)
    text = out.getvalue().rstrip("\n").removeprefix(within)
    text = text[:-1] if within == "[" else text
    if text.startswith("'") and not re.search(r"[\\\"']", text[1:-1]):
        return f'"{text[1:-1]}"'
    return text


def _escaped(text: str) -> str:
    """A string in double quotes, on one line whatever it holds."""
    return '"' + "".join(map(_character, text)) + '"'


def _character(sign: str) -> str:
    if sign in '"\\':
        return f"\\{sign}"
    return sign if sign.isprintable() else f"\\U{ord(sign):08x}"
