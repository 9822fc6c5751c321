"""The size of the report of a large run, and its price as ratios to peers in the same process."""

import hashlib
import json
import shutil
import time
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from parity.casefile.case import Case, Expectation, Operand
from parity.compare.expect import judge
from parity.compare.groups import groups
from parity.compare.reference_rows import reference_rows
from parity.compare.result import CaseResult
from parity.compare.rows import as_dict, compare_case
from parity.compare.words import words
from parity.program.spec import OperandSpec, ProgramSpec
from parity.record.encoding import dumps
from parity.record.result import RunResult
from parity.report.html.page import render, write
from parity.report.html.run import run_page
from parity.worker.protocol import Enclosure, Failure, PathOutcome, References

pytestmark = pytest.mark.benchmark

CASES = 2000
PATHS = (
    "eager",
    "jit",
    "jax2tf-native",
    "jax2tf-native.xla",
    "jax2tf-nonnative",
    "jax2tf-nonnative.graph",
)
STAGES = {
    "eager": ("run", "compare"),
    "jit": ("trace", "lower", "compile", "run", "compare"),
    "jax2tf": ("convert", "run", "compare"),
}
LARGEST = 4 * 10**6
DTYPES = ("bfloat16", "float16", "float32", "float32")
SIZES = (16, 64, 256, 1024)
CHROMIUM = shutil.which("chromium")


@pytest.fixture(scope="module")
def large():
    """2,000 cases on 6 paths; 30% of the rows are not identical, with one or two sorts of bits."""
    return RunResult({"default": _environment()}, [_result(n) for n in range(CASES)], CASES)


def test_a_large_run_is_a_small_file(large, show):
    rows = list(large.rows)
    others = sum(row.grade != "identical" for row in rows)
    assert len(rows) == 6 * CASES
    assert 0.29 < others / len(rows) < 0.33

    size = len(render(run_page(large)).encode())

    show("report", f"{size / 1e6:.2f} MB for {CASES} cases on 6 paths, {others} rows not identical")
    assert size <= LARGEST


def test_a_report_is_built_in_the_time_of_its_rows_as_json(large, ratio, interleaved):
    def rows_to_json_and_back():
        return [json.loads(dumps(as_dict(row))) for row in large.rows]

    ours, theirs = interleaved(lambda: render(run_page(large)), rows_to_json_and_back, rounds=2)
    ratio("report of 2,000 cases / its rows to JSON and back", ours, theirs, 0.8)


@pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")
def test_a_large_report_is_ready_in_the_time_of_a_bare_table(large, ratio, show, tmp_path):
    """Against a page without any script or style that has the same rows as one table."""
    from playwright.sync_api import sync_playwright

    report, bare = tmp_path / "report.html", tmp_path / "bare.html"
    write(run_page(large), report)
    names = ("case", "path", "status", "grade", "differing", "max_abs_f64", "max_ulp_f64")
    cells = ("".join(f"<td>{as_dict(row)[name]}" for name in names) for row in large.rows)
    bare.write_text(f"<!doctype html><table>{''.join(f'<tr>{line}' for line in cells)}</table>")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        theirs, ours = (
            min(_ready(browser, page, until) for _ in range(3))
            for page, until in ((bare, "tr:last-child"), (report, "html.ready"))
        )
        browser.close()
    show("report", f"interactive after {ours:.2f} s, a bare table of its rows after {theirs:.2f} s")
    ratio("2,000 cases: report interactive / bare table painted", ours, theirs, 0.7)


def _ready(browser, file, until):
    """Seconds until a page has an element and has answered to a frame after it."""
    page = browser.new_page()
    begin = time.perf_counter()
    page.goto(file.as_uri())
    page.wait_for_selector(until, state="attached")
    page.evaluate("new Promise(done => requestAnimationFrame(() => setTimeout(done)))")
    seconds = time.perf_counter() - begin
    page.close()
    return seconds


def _environment():
    return {"python": "3.11.7", "jax": "0.7.1", "jaxlib": "0.7.1", "tensorflow": "2.20.0"}


def _case(number):
    dtype = DTYPES[number % 4]
    file = f"dot_{number // 50:02}"
    size = SIZES[number // 4 % 4]
    point = {"compute_dtype": dtype, "lhs.shape": f"{size}x64", "seed": str(number % 50)}
    values = ",".join(f"{key}={value}" for key, value in point.items())
    lhs, rhs = OperandSpec("lhs", (size, 64), "float32"), OperandSpec("rhs", (64,), "float32")
    expect = Expectation(
        paths=("jit", "jax2tf-native", "jax2tf-native.xla"),
        outputs=None,
        grades=("divergent",),
        outcome=None,
        stage=None,
        match=None,
        because="excess-precision",
        link="https://github.com/jax-ml/jax/issues/25873",
        until=None,
        when={"tensorflow": ">=2.18"},
        line=14,
    )
    return Case(
        id=f"cases/{file}.yaml::{file}:{values}",
        file=Path(f"/project/cases/{file}.yaml"),
        line=2,
        name=file,
        about="A product whose operands are cast, and whose result is cast back to float32.",
        links=("https://github.com/jax-ml/jax/issues/25873",),
        point=point,
        program=ProgramSpec(
            "dot_general",
            (lhs, rhs),
            {"dimension_numbers": (((1,), (0,)), ((), ()))},
            compute_dtype=dtype,
            output_dtype="float32" if number % 2 else None,
        ),
        operands=tuple(
            Operand(o.name, o.shape, o.dtype, draw="normal", seed=1) for o in (lhs, rhs)
        ),
        paths=PATHS,
        baseline="eager",
        expect=(expect,) if number % 3 else (),
    )


def _result(number):
    case = _case(number)
    rng = np.random.default_rng(number)
    name = DTYPES[number % 4]
    dtype = np.dtype(getattr(ml_dtypes, name, None) or name)
    kept = np.dtype(np.float32) if number % 2 else dtype
    exact = rng.standard_normal(SIZES[number // 4 % 4]) * np.exp2(rng.integers(-6, 7))
    declared = exact.astype(dtype).astype(kept)
    eps = float(ml_dtypes.finfo(dtype).eps)
    slack = eps * abs(exact)
    one, two = ((exact + rng.uniform(-slack, slack)).astype(kept) for _ in range(2))
    made = dict.fromkeys(PATHS, declared)
    if number % 5 < 3:
        made |= {"jit": one, "jax2tf-native": one, "jax2tf-native.xla": two if number % 4 else one}
    outcomes = [
        PathOutcome(path, {"out": array}, _evidence(number, path), _timings(rng, path))
        for path, array in made.items()
    ]
    if number % 50 == 49:
        said = f"BFLOAT16 is not in the list of allowed values (case {number})"
        failure = Failure("error", "run", "InvalidArgumentError", said, "W0000 a line\n" * 8)
        outcomes[-1] = PathOutcome(PATHS[-1], failure=failure)
    references = References(
        f64={"out": Enclosure(exact, exact - 4 * slack, exact + 4 * slack)},
        strict={"out": Enclosure(declared, declared, declared)},
    )
    rows = judge(case, compare_case(case, outcomes, references), environment={"tensorflow": "2.20"})
    return CaseResult(
        case,
        "default",
        tuple(_placed(row) for row in rows),
        tuple(_placed(row) for row in reference_rows(case, references)),
        {"out": groups(outcomes, "out")},
        words(case, rows, outcomes, references),
    )


def _placed(row):
    from dataclasses import replace

    return replace(row, environment="default")


def _evidence(number, path):
    if path == "eager":
        return {"executed": "op by op on concrete arrays"}
    family = hashlib.sha256(f"{number}{path[:9]}".encode()).hexdigest()
    executed = {"executed": "XlaCallModule", "stablehlo_sha256": family}
    if path == "jit":
        executed["hlo_sha256"] = hashlib.sha256(family.encode()).hexdigest()
    return executed


def _timings(rng, path):
    stages = STAGES[path.split("-")[0].split(".")[0]]
    return dict(zip(stages, rng.uniform(1e-4, 1e-1, len(stages)).tolist(), strict=True))
