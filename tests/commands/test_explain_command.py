"""`parity explain` and `parity run --explain`: what is printed, kept, and said of mistakes."""

import json
import re
from pathlib import Path

import pytest

import parity
from parity.casefile.load import load
from parity.cli import invoke
from parity.engine.workers import Workers
from parity.explain.explanation import explain
from parity.record.result import open_record
from parity.report.explain.json import explanation_json
from parity.report.explain.text import markdown_lines, terminal_lines

ROOT = Path(__file__).parents[2]
CASE = "cases/conv_bf16.yaml"
BF16 = f"{CASE}::conv_bf16:compute_dtype=bfloat16"


@pytest.fixture(autouse=True)
def root(monkeypatch):
    monkeypatch.chdir(ROOT)


@pytest.fixture(scope="module")
def explanation():
    """Why jit differs on the founding case."""
    case = next(c for c in load(ROOT / CASE).cases if "bfloat16" in c.id)
    with Workers() as workers:
        return explain(workers, case, "jit", seconds=60)


def test_the_headline_says_cause_switch_and_line(explanation):
    lines = [line.plain for line in terminal_lines(explanation, None)]
    assert lines[0] == f"{BF16}[jit] against eager"
    assert lines[1] == (
        "  jit: excess-precision (every cast); "
        "XLA_FLAGS=--xla_allow_excess_precision=false restores parity; "
        "a barrier after the convolution (op of cases/conv_bf16.yaml:5) restores it, too"
    )


@pytest.mark.parametrize("width", [80, 100, 200])
def test_sentences_fit_the_terminal(explanation, width):
    lines = [line.plain for line in terminal_lines(explanation, width)]
    prose = [line for line in lines if re.match(r"  (?! )", line) and "http" not in line]
    over = [line for line in prose if len(line) > width and "reduce_precision" not in line]
    assert [line for line in over if "keep each rounding" not in line] == []
    titles = [line for line in lines if line and not line.startswith(" ")]
    assert titles[1:] == [
        "Attribution",
        "Attribution where it first leaves what is declared",
        "Control runs",
        "Barrier search",
        "Localisation",
        "What was compiled",
    ]


def test_markdown_and_json_say_the_same(explanation):
    text = "".join(markdown_lines(explanation))
    assert text.startswith("### `cases/conv_bf16.yaml::")
    assert "| after | keep the result x by |" in text
    flat = json.loads(explanation_json(explanation))
    assert flat["format"] == "parity-explain/1"
    assert flat["case"] == BF16
    assert flat["controls"]["runs"][0]["verdict"] == "restores"
    assert flat["attributions"][0]["model"] == "excess-precision"
    assert [one["site"]["primitive"] for one in flat["barriers"]["barriers"]] == [
        "conv_general_dilated"
    ]
    assert flat["headline"] in " ".join(text.replace("\\", "").split())


def test_a_path_that_agrees(capsys):
    assert invoke(["explain", BF16, "--path", "jax2tf-nonnative", "--budget", "20"]) == 0
    out = capsys.readouterr().out
    assert "jax2tf-nonnative gives the bits of eager: nothing differs" in out


def test_a_path_that_is_not_there(capsys):
    assert invoke(["explain", BF16, "--path", "onnx", "--budget", "20"]) == 0
    assert "onnx: unsupported: onnxruntime is not installed" in capsys.readouterr().out


def test_files_are_written_and_named(capsys, tmp_path):
    script, module = tmp_path / "shown.py", tmp_path / "program.mlir"
    arguments = ["--budget", "0.1", "--script", str(script), "--mlir", str(module)]
    assert invoke(["explain", f"{BF16}[jit]", *arguments]) == 1
    captured = capsys.readouterr()
    assert "Run it as `python shown.py`" in script.read_text()
    assert "func.func public @main" in module.read_text()
    assert f"wrote {script}" in captured.err
    assert "no time was left for: " in captured.out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([BF16, "--path", "jitt"], "did you mean 'jit'?"),
        ([BF16, "--path", "jit", "--against", "eagre"], "did you mean 'eager'?"),
        ([CASE, "--path", "jit"], "explain takes one case (got 3: "),
        ([BF16], "which path of"),
        ([BF16, "--path", "jit", "--budget", "-1"], "wrong budget (got -1; allowed a positive"),
        ([BF16, "--path", "jit", "--script", "README.md"], "README.md: exists already"),
        ([BF16, "--path", "jit", "--mlir", "no/where.mlir"], "there is no folder no"),
        ([BF16, "--path", "jit", "--format", "yaml"], "unknown --format"),
    ],
)
def test_mistakes(arguments, said, capsys):
    assert invoke(["explain", *arguments]) == 2
    captured = capsys.readouterr()
    assert said in captured.err
    assert captured.out == ""


def test_no_such_case(capsys):
    assert invoke(["explain", BF16.replace("bfloat16", "bfloat17"), "--path", "jit"]) == 5


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--explain-budget", "3"], "--explain-budget needs --explain"),
        (["--explain", "--explain-budget", "0"], "allowed a positive number of seconds"),
        (["--explain", "--artifacts-from", "x.sqlite"], "exclude each other"),
    ],
)
def test_mistakes_of_a_run(arguments, said, capsys):
    assert invoke(["run", BF16, *arguments]) == 2
    assert said in capsys.readouterr().err


def test_rows_of_a_run_carry_their_explanation(tmp_path, capsys):
    def run(**more):
        return parity.run(BF16, paths=("eager", "jit", "jax2tf-nonnative"), out=tmp_path, **more)

    found = run(explain=True, explain_seconds=8)
    told = {row.path: row.explanation for row in found.rows}
    assert [path for path, of in told.items() if of] == ["jit"]
    assert told["jit"]["headline"].startswith("jit: excess-precision")
    assert told["jit"]["models"] == {"out": "excess-precision (every cast)"}
    assert any(line.startswith("explained: jit: ") for line in found.cases[0].words)

    kept = open_record(found.record)
    assert {row.path: row.explanation for row in kept.rows} == told
    again = run(explain=True, explain_seconds=8)
    assert all(row.cached for row in again.rows)
    assert {row.path: row.explanation for row in again.rows} == told
    plain = run()
    assert not any(row.explanation for row in plain.rows)

    assert invoke(["show", str(found.record), "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert {row["path"]: row["explanation"] for row in rows} == told
