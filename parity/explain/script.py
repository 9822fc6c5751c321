"""A script that shows a disagreement of two paths to somebody who does not have parity."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from jinja2 import Environment as Templates
from jinja2 import PackageLoader, StrictUndefined

from parity import paths as registry
from parity.casefile.case import Case, Variant
from parity.compare.rows import Row
from parity.engine.environment import Environment
from parity.engine.equations import Source, source
from parity.engine.workers import Workers
from parity.explain.literals import literal
from parity.report.numbers import element
from parity.worker.protocol import Failure, References

LARGEST = 1 << 24
"""Bytes that the arrays of a script may have together."""

_PACKAGES = ("jax", "jaxlib", "tensorflow", "flax", "numpy")


@dataclass(frozen=True)
class Reproduction:
    """A file that reproduces something, or why there is none.

    Attributes:
        text: the file's, "" if there is none.
        missing: why there is none, "" if there is.
    """

    text: str = ""
    missing: str = ""


def script(
    workers: Workers,
    case: Case,
    path: str,
    environment: Environment | None = None,
    *,
    against: str | None = None,
    rows: Sequence[Row] = (),
    name: str = "reproduce.py",
) -> Reproduction:
    """A script that runs two paths of a case and prints how they differ.

    Args:
        workers: which are asked for the program; they stay open.
        case: whose it is.
        path: which differs.
        environment: this interpreter's if None.
        against: from which, the baseline if None.
        rows: of the case, from which the numbers seen are taken.
        name: of the file that it will be.

    Raises:
        WorkerStartError: the environment cannot execute anything.
        CaseFileError: an array file cannot be read.
    """
    environment = environment or Environment()
    both = (against or case.baseline, path)
    variants = [case.variants.get(one) or Variant(one, one) for one in both]
    bodies = []
    for variant in variants:
        statements = registry.get(variant.path).statements(variant.options())
        if statements is None:
            return Reproduction(missing=f"{variant.name} cannot be said in a few lines of Python")
        bodies.append((_function(variant.name), variant.name, statements))
    if dict(variants[0].variables) != dict(variants[1].variables):
        return Reproduction(missing="its two paths run under different environment variables")
    found = source(workers, case, environment)
    if isinstance(found, Failure):
        return Reproduction(missing=f"the program cannot be traced: {found.message}")
    if not found.text:
        return Reproduction(missing=f"the program has no source without parity: {found.why}")
    arrays = _arrays(case, found)
    if sum(array.nbytes for array in arrays.values()) > LARGEST:
        why = f"its arrays take more than {LARGEST >> 20} MiB: reduce it first"
        return Reproduction(missing=why)
    packages = dict(workers.found.get(environment.name, {}))
    text = (
        _templates()
        .get_template("reproduce.py.j2")
        .render(
            title=f"{path} does not give what {both[0]} gives: {case.id}",
            seen=_seen(rows, both, packages),
            name=name,
            needs=_needs(bodies, case),
            variables=_variables(case, environment, variants[1]),
            x64=case.program.x64,
            sources=_sources(case),
            arrays=[(of, literal(array)) for of, array in arrays.items()],
            outputs=list(found.outputs),
            program=found.text.rstrip(),
            paths=bodies,
            labels=[f"{one:{max(map(len, both))}}" for one in both],
        )
    )
    return Reproduction(text)


def module(
    workers: Workers,
    case: Case,
    environment: Environment | None = None,
    *,
    references: References,
    rows: Sequence[Row] = (),
) -> Reproduction:
    """The program as one StableHLO module with its inputs and what it declares as outputs.

    Args:
        workers: which are asked for it; they stay open.
        case: whose program it is.
        environment: this interpreter's if None.
        references: of the case.
        rows: of the case, from which the numbers seen are taken.

    Raises:
        WorkerStartError: the environment cannot execute anything.
        CaseFileError: an array file cannot be read.
    """
    environment = environment or Environment()
    if references.failure is not None or not references.strict:
        return Reproduction(missing="there is no reference to expect")
    expected = [enclosure.point for enclosure in references.strict.values()]
    found = source(workers, case, environment, expected=expected)
    if isinstance(found, Failure):
        return Reproduction(missing=f"the program cannot be lowered: {found.message}")
    if not found.module:
        return Reproduction(missing=found.why)
    packages = dict(workers.found.get(environment.name, {}))
    head = [case.id, *_seen(rows, tuple(dict.fromkeys(row.path for row in rows)), packages)]
    head.append("main gives the outputs of program, then those that it declares, each rounded once")
    comment = "".join(f"// {line}\n" for line in head)
    return Reproduction(comment + found.module)


def _arrays(case: Case, found: Source) -> dict[str, np.ndarray]:
    """What the program takes, by name, in order."""
    given = [one.name for one in case.program.inputs()]
    return {**dict(zip(given, case.arrays(), strict=True)), **found.drawn}


def _function(path: str) -> str:
    return "run_" + re.sub(r"\W", "_", path)


def _seen(rows: Sequence[Row], names: Sequence[str], packages: Mapping[str, str]) -> list[str]:
    """The numbers that were seen, and the versions that gave them."""
    lines = []
    versions = [f"{name} {packages[name]}" for name in _PACKAGES if name in packages]
    if versions:
        where = " ".join(filter(None, (packages.get("platform"), packages.get("system"))))
        lines.append(f"Seen with {', '.join(versions)} on {where}:")
    for row in rows:
        if row.path in names:
            lines.append(f"  {row.path} {row.output}: {_said(row)}")
    return lines


def _said(row: Row) -> str:
    if row.outcome != "ok":
        return ": ".join(filter(None, (row.outcome, row.stage, row.error_type, row.detail)))
    values = ""
    if row.values is not None and row.dtype is not None:
        values = f"[{', '.join(element(one, row.dtype) for one in row.values)}]"
    apart = ""
    if row.baseline is not None and row.differing:
        largest = repr(row.baseline.max_abs)
        differ = f"{row.differing} of {row.count} elements differ from the baseline"
        apart = f"{differ}, by up to {largest}"
    return "; ".join(filter(None, (values, row.grade, apart)))


def _needs(bodies: Sequence[tuple[str, str, Sequence[str]]], case: Case) -> str:
    """The packages that a script imports."""
    lines = [line for _, _, body in bodies for line in body]
    tensorflow = ["tensorflow"] if "import tensorflow as tf" in lines else []
    return ", ".join(["jax", *tensorflow, *(["flax"] if case.program.op == "flax" else [])])


def _variables(case: Case, environment: Environment, variant: Variant) -> list[tuple[str, str]]:
    """Environment variables, set before anything is imported."""
    found = {**environment.variables, **variant.variables}
    if case.program.devices > 1:
        flag = f"--xla_force_host_platform_device_count={case.program.devices}"
        found["XLA_FLAGS"] = f"{found.get('XLA_FLAGS', '')} {flag}".strip()
    return sorted(found.items())


def _sources(case: Case) -> list[tuple[str, str]]:
    """The files beside the case file that its program is made of."""
    names = case.program.attributes.get("sources", {})
    return [(name, (case.file.parent / name).read_text(encoding="utf-8")) for name in names]


@cache
def _templates() -> Templates:
    made = Templates(
        loader=PackageLoader("parity.explain"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
    made.filters["repr"] = repr
    made.filters["source"] = _source
    return made


def _source(text: str) -> str:
    """A file as a literal that can be read: raw between triple quotes where that is possible."""
    for quotes in ("'''", '"""'):
        if quotes not in text and "\\" not in text and not text.endswith(quotes[0]):
            return f"{quotes}{text}{quotes}"
    return repr(text)
