"""The environments that paths are executed in."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field

DEFAULT = "default"


@dataclass(frozen=True)
class Environment:
    """An interpreter with its packages and the variables it runs with.

    Attributes:
        name: as rows and reports call it.
        python: the interpreter.
        variables: environment variables set beside the inherited ones.
        arguments: how the command line asks for it; a bare name stays one.
    """

    name: str = DEFAULT
    python: str = sys.executable
    variables: Mapping[str, str] = field(default_factory=dict)
    arguments: tuple[str, ...] = field(default=(), compare=False)
