"""Does an op or model compute the same numbers on every path it is shipped through?

```python
import parity

result = parity.run("cases/conv_bf16.yaml", paths=("eager", "jit"))
result.table()  # a pandas DataFrame: one line per case, path and output
```

Names are resolved when they are first used, so that `import parity` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from parity.api import load, run
    from parity.casefile.case import GRADES, OUTCOMES, Case
    from parity.casefile.load import CaseFile
    from parity.compare.result import CaseResult
    from parity.compare.rows import Row
    from parity.errors import (
        CaseFileError,
        NothingSelected,
        ParityFault,
        UserError,
        WorkerStartError,
    )
    from parity.record.result import RunResult, open_record
    from parity.report.diff.compare import diff
    from parity.report.diff.model import Diff

__version__ = "0.1.0"

__all__ = [
    "GRADES",
    "OUTCOMES",
    "Case",
    "CaseFile",
    "CaseFileError",
    "CaseResult",
    "Diff",
    "NothingSelected",
    "ParityFault",
    "Row",
    "RunResult",
    "UserError",
    "WorkerStartError",
    "diff",
    "load",
    "open_record",
    "run",
]

_HOMES = {
    "api": ("load", "run"),
    "casefile.case": ("GRADES", "OUTCOMES", "Case"),
    "casefile.load": ("CaseFile",),
    "compare.result": ("CaseResult",),
    "compare.rows": ("Row",),
    "errors": (
        "CaseFileError",
        "NothingSelected",
        "ParityFault",
        "UserError",
        "WorkerStartError",
    ),
    "record.result": ("RunResult", "open_record"),
    "report.diff.compare": ("diff",),
    "report.diff.model": ("Diff",),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
