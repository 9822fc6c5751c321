"""An explanation as one JSON object."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from parity.compare.rows import Row, as_dict
from parity.explain.explanation import Explanation
from parity.explain.sections import headline
from parity.record.encoding import dumps

FORMAT = "parity-explain/1"


def explanation_json(found: Explanation) -> str:
    """An explanation as JSON text.

    Its keys: format, case, path, against, environment, headline, differs, rows (flat, as
    `compare.rows.as_dict` gives them), attributions, controls, barriers, localisation, evidence,
    left_out, seconds: the fields of the dataclasses of `parity.explain`. Operands that were
    generated are left out; their shapes and dtypes are there.
    """
    return dumps(plain(found), indent=2) + "\n"


def plain(found: Explanation) -> dict[str, Any]:
    """The same as nested builtins."""
    one = _plain(found)
    del one["references"]
    return {"format": FORMAT, **one, "case": found.case.id, "headline": headline(found)}


def _plain(value: Any) -> Any:
    if isinstance(value, Row):
        return as_dict(value)
    if isinstance(value, np.ndarray):
        return {"dtype": value.dtype.name, "shape": list(value.shape)}
    if isinstance(value, Explanation):
        left = {"case": value.case.id, "references": None}
        named = {f.name: getattr(value, f.name) for f in fields(value) if f.name not in left}
        return left | {name: _plain(of) for name, of in named.items()} | {"differs": value.differs}
    if is_dataclass(value):
        return {f.name: _plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, Mapping):
        return {name: _plain(of) for name, of in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(of) for of in value]
    return value
