"""Records of two runs, made by hand: what each path gave is said, nothing is run."""

from __future__ import annotations

import os
import shutil
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from parity.casefile.case import Case, Operand, Tolerance
from parity.compare.metrics import comparable, measure, plain
from parity.compare.result import CaseResult
from parity.compare.rows import Row
from parity.dtypes import dtype
from parity.program.spec import OperandSpec, ProgramSpec
from parity.record.result import RunResult
from parity.record.store import Store
from parity.worker.protocol import digest

F64 = [3.0, 4.0]
Made = Mapping[str, Any]


class Maker:
    """Makes cases, rows and records.

    Args:
        folder: of the records.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @staticmethod
    def gave(
        value: Any, grade: str = "identical", *, output: str = "out", **row: Any
    ) -> dict[str, Any]:
        """What a path gave: an array of any dtype, or a nested sequence for a float32 one."""
        array = value if isinstance(value, np.ndarray) else np.asarray(value, np.float32)
        return {"array": array, "grade": grade, "output": output, **row}

    @staticmethod
    def failed(
        outcome: str = "error", stage: str = "compile", type: str = "E", said: str = "no"
    ) -> Any:
        """A path that failed."""
        return {
            "outcome": outcome,
            "stage": stage,
            "error_type": type,
            "message": said,
            "detail": said,
            "output": "",
        }

    @staticmethod
    def evidence(stablehlo: str = "", hlo: str = "", graph: str = "") -> dict[str, str]:
        """The SHA-256 of what was compiled, one letter for each."""
        kinds = {"stablehlo": stablehlo, "hlo": hlo, "graph": graph}
        return {f"{kind}_sha256": letter * 64 for kind, letter in kinds.items() if letter}

    def case(self, name: str = "a", **changes: Any) -> Case:
        fields: dict[str, Any] = {
            "id": f"cases/{name}.yaml::{name}",
            "file": Path(f"/project/cases/{name}.yaml"),
            "line": 1,
            "name": name,
            "about": "What it guards.",
            "links": (),
            "point": {},
            "program": ProgramSpec("dot_general", (OperandSpec("lhs", (2,), "float32"),)),
            "operands": (Operand("lhs", (2,), "float32", values=[1.0, 2.0]),),
            "paths": ("eager", "jit"),
            "baseline": "eager",
        }
        return Case(**fields | changes)

    def row(self, path: str, made: Made, f64: Any = None, case: str = "c") -> Row:
        """A row of what a path gave, measured against `f64`; faithful unless that is said."""
        known = dict(made)
        array = known.pop("array", None)
        if array is None:
            return Row(**{"case": case, "path": path, "outcome": "ok"} | known)
        ideal = None if f64 is None else np.asarray(f64)
        measured = ideal is not None and comparable(array, ideal)
        fields = {
            "outcome": "ok",
            "dtype": dtype(array.dtype).name,
            "shape": array.shape,
            "count": array.size,
            "values": tuple(plain(array.reshape(-1))) if array.size <= 16 else None,
            "sha256": digest(array),
            "faithful": True,
            "accurate": True,
            "f64": measure(array, ideal) if measured else None,
        }
        return Row(**{"case": case, "path": path} | fields | known)

    def result(
        self,
        case: Case,
        made: Mapping[str, Made | Sequence[Made]],
        *,
        f64: Any = None,
        environment: str = "default",
        own_error: float | None = 0.0,
        strict: Any = None,
        texts: Mapping[str, str] | None = None,
    ) -> tuple[CaseResult, dict[tuple[str, str], np.ndarray]]:
        """A result and its outputs; `f64` may be a failure, `texts` are what was compiled."""
        several = {path: [of] if isinstance(of, Mapping) else list(of) for path, of in made.items()}
        failure = f64 if isinstance(f64, Mapping) else None
        ideal = None if failure else f64
        rows = [
            self.row(path, one | {"environment": environment}, ideal, case.id)
            for path, of in several.items()
            for one in of
        ]
        outputs = {
            (path, one["output"]): one["array"]
            for path, of in several.items()
            for one in of
            if "array" in one
        }
        references = [self.row("f64", failure, case=case.id)] if failure else []
        for name, value in (("f64", ideal), ("strict", strict)):
            if value is None:
                continue
            array = np.asarray(value)
            more = {"own_error": own_error} if name == "f64" else {}
            references.append(self.row(name, self.gave(array, output="out", **more), case=case.id))
            outputs[name, "out"] = array
        programs = {k * 64: zlib.compress(text.encode()) for k, text in (texts or {}).items()}
        result = CaseResult(
            case, environment, tuple(rows), tuple(references), {}, (), programs=programs
        )
        return result, outputs

    def record(
        self,
        name: str,
        *results: tuple[CaseResult, dict[tuple[str, str], np.ndarray]],
        facts: Mapping[str, Mapping[str, str]] | None = None,
        keep: str = "all",
        version: str = "1.0",
        wanted: int | None = None,
        file: bool = False,
    ) -> Any:
        """The run of some results: in memory or, with `file`, the name of its record."""
        store = Store(
            self._folder / name if file else None,
            version=version,
            keep=keep,
            wanted=wanted or len(results),
        )
        names = dict.fromkeys(result.environment for result, _ in results)
        for environment in names:
            store.environment(environment, (facts or {}).get(environment, {"jax": "0.7.1"}))
        for result, outputs in results:
            store.add(result, outputs)
        store.finish("ok")
        if not file:
            wanted = wanted or len(results)
            return RunResult(store.environments(), store.results(), wanted)
        store.close()
        return str(store.file)

    def pair(
        self, a: Mapping[str, Any], b: Mapping[str, Any], *, f64: Any = None, **how: Any
    ) -> tuple[Any, Any]:
        """Two runs of one case."""
        case = self.case()
        return (
            self.record("A", self.result(case, a, f64=f64), **how),
            self.record("B", self.result(case, b, f64=f64), **how),
        )


@pytest.fixture(scope="module")
def maker(tmp_path_factory: pytest.TempPathFactory) -> Maker:
    return Maker(tmp_path_factory.mktemp("records"))


@pytest.fixture(scope="module")
def pair(maker: Any) -> tuple[str, str]:
    """Two runs of several cases: one of everything that a report shows."""
    s, t = (maker.evidence(stablehlo="0", hlo=hlo) for hlo in "12")

    def results(new: bool) -> Any:
        kept = maker.gave([3, 4.5] if new else [3, 4], "divergent" if new else "identical",
                          evidence=t if new else s, faithful=not new)  # fmt: skip
        texts = {"2": "add\nmul b"} if new else {"1": "add\nmul a"}
        for name in "abcdef":
            made = {"eager": maker.gave([3, 4]), "jit": kept}
            yield maker.result(maker.case(name), made, f64=F64, texts=texts)
        known = {"status": "expected", "because": "excess-precision", "link": "https://x.org/1"}
        made = {"native": maker.gave([3, 4.5] if new else [3, 4.25], "divergent",
                                     faithful=False, evidence=maker.evidence(stablehlo="0"),
                                     **(known if new else {}))}  # fmt: skip
        yield maker.result(maker.case("known"), made, f64=F64)
        made = {"nonnative": maker.failed("unsupported", said="removed in JAX 0.7.2")
                if new else maker.gave([3, 4])}  # fmt: skip
        yield maker.result(maker.case("lost"), made, f64=F64)
        tolerance = Tolerance(rtol=0.5) if new else None
        yield maker.result(maker.case("other", tolerance=tolerance), {"eager": kept}, f64=F64)
        yield maker.result(maker.case("added" if new else "dropped"), {"eager": kept}, f64=F64)

    facts = [{"default": {"jax": jax, "cpu": f"x86_64 {cpu}"}} for jax, cpu in
             (("0.7.1", "avx"), ("0.10.2", "avx fma"))]  # fmt: skip
    a, b = (
        maker.record(str(new), *results(new), facts=facts[new], version="1.0", file=True)
        for new in (False, True)
    )
    return a, b


_OFFLINE = (
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    found = shutil.which("chromium")
    if found is None and not os.environ.get("CI"):
        pytest.skip("chromium is not installed")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=found, args=list(_OFFLINE))
        yield chromium
        chromium.close()


@pytest.fixture
def opened(browser: Any, tmp_path: Path) -> Iterator[Any]:
    """`opened(diff, fragment, **context)`: a comparison in a page; all must stay quiet."""
    from parity.report.html.diff import write_diff

    noise: list[str] = []
    contexts: list[Any] = []

    def open_(found: Any, fragment: str = "", *, wait: bool = True, **how: Any) -> Any:
        file = tmp_path / "diff.html"
        write_diff(found, file)
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}} | how)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(8000)
        page.on("console", lambda message: noise.append(message.text))
        page.on("pageerror", lambda error: noise.append(str(error)))
        page.on("dialog", lambda dialog: noise.append(f"dialog {dialog.message}"))
        page.on(
            "request",
            lambda request: None if request.url.startswith("file:") else noise.append(request.url),
        )
        page.goto(file.as_uri() + fragment)
        if wait:
            page.wait_for_selector("html.ready", state="attached")
        return page

    yield open_
    for context in contexts:
        context.close()
    assert noise == []


@pytest.fixture(scope="module")
def found(pair: tuple[str, str]) -> Any:
    from parity.report.diff.compare import diff

    return diff(*pair)
