"""Programs beyond one op in real workers: values, failures, the cache, resuming."""

from pathlib import Path

import numpy as np
import pytest

import parity
from parity.casefile.new import template

OPERANDS = """\
operands:
  x: {shape: [2], dtype: float32, values: [1, 2]}
  y: {shape: [2], dtype: float32, values: [3, 5]}
"""
FAULTY = """\
import os, sys
import jax
import jax.numpy as jnp

def nothing(x, y): return None
def number(x, y): return 3
def leaves(x, y): sys.exit("bye")
def raises(x, y): raise ValueError("no such luck")
def lines(x, y): raise ValueError("first\\n\\nthird")
def forever(x, y): return forever(x, y)
def decides(x, y): return x if float(x.sum()) > 0 else y
def dies(x, y): os.abort()
def talks(x, y):
    print("to stdout"); print("to stderr", file=sys.stderr)
    os.write(1, b"to the descriptor")
    return x
def reads(x, y):
    try:
        input()
    except EOFError:
        return x
def precise(x, y):
    with jax.default_matmul_precision("highest"):
        return jnp.dot(x, y)
"""


@pytest.fixture
def run(tmp_path, monkeypatch):
    """`run(program, text)`: rows by path of a case whose function stands in code.py."""
    (tmp_path / "pyproject.toml").touch()
    monkeypatch.chdir(tmp_path)

    def done(program, text="", *, paths=("eager", "jit"), lines="", **choices):
        if text:
            Path("own.py").write_text(text)
        head = f"about: A program.\n{OPERANDS}paths: [{', '.join(paths)}]\n"
        Path("program.yaml").write_text(f"{head}{program}\n{lines}")
        result = parity.run("program.yaml", **choices)
        return result, {row.path: row for row in result.rows}

    return done


@pytest.fixture(scope="module")
def failures(tmp_path_factory):
    """The rows of every function of `FAULTY`, by function and path."""
    folder = tmp_path_factory.mktemp("failures")
    (folder / "pyproject.toml").touch()
    (folder / "own.py").write_text(FAULTY)
    names = [line.split("(")[0][4:] for line in FAULTY.splitlines() if line.startswith("def ")]
    swept = ", ".join(f"own:{name}" for name in (*names, "absent"))
    (folder / "faulty.yaml").write_text(
        f"about: Faulty programs.\nprogram: {{callable: 'own:f'}}\n{OPERANDS}paths: [eager, jit]\n"
        f"sweep: {{program.callable: [{swept}]}}\n"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        result = parity.run("faulty.yaml")
    return {
        (case.case.point["callable"].removeprefix("own."), row.path): row
        for case in result.cases
        for row in case.rows
    }


@pytest.mark.parametrize(
    ("name", "stage", "message"),
    [
        ("nothing", "trace", "the program returned no array (got None)"),
        (
            "number",
            "trace",
            "the program returned an int as out; outputs are arrays, such as jax.numpy.asarray "
            "makes",
        ),
        ("leaves", "trace", "own:leaves called sys.exit('bye') (own.py:7 in leaves)"),
        ("raises", "trace", "no such luck (own.py:8 in raises)"),
        ("lines", "trace", "first (own.py:9 in lines)\n\nthird"),
        ("forever", "trace", "maximum recursion depth exceeded (own.py:10 in forever)"),
        (
            "absent",
            "build",
            "own.py has no 'absent' (it has decides, dies, forever, leaves, lines, nothing, "
            "number, precise, raises, reads, talks)",
        ),
    ],
)
@pytest.mark.parametrize("path", ["eager", "jit"])
def test_a_failing_program_is_an_error_row(failures, name, stage, message, path):
    row = failures[name, path]
    assert (row.outcome, row.stage, row.status) == ("error", stage, "finding")
    assert row.message == message
    assert row.detail == message.splitlines()[0]


def test_a_path_may_run_what_another_cannot(failures):
    assert failures["decides", "eager"].values == (1, 2)
    jit = failures["decides", "jit"]
    assert (jit.outcome, jit.stage) == ("error", "trace")
    assert "Concretization" in jit.error_type


def test_a_crash_costs_its_row(failures):
    assert failures["dies", "eager"].outcome == "crashed"
    assert failures["dies", "jit"].outcome == "crashed"


@pytest.mark.parametrize("name", ["talks", "reads"])
@pytest.mark.parametrize("path", ["eager", "jit"])
def test_streams_are_no_way_to_disturb_a_worker(failures, name, path):
    assert failures[name, path].values == (1, 2)


@pytest.mark.parametrize("path", ["eager", "jit"])
def test_a_precision_without_effect_is_said(failures, path):
    row = failures["precise", path]
    assert row.values == (13,)
    assert row.evidence["no_effect"] == "precision highest: accepted, no effect here"


def test_a_precision_of_code_with_effect_is_not_called_idle(run):
    """Both 1 + 2^-12 and 2 + 2^-12 lose their last bit in float16: 5 instead of 5 + 3·2^-12.

    Matrices, since XLA takes no vectors there.
    """
    text = "import jax.numpy as jnp\nfrom jax.lax import DotAlgorithmPreset as P\n"
    text += "x, y = jnp.float32([[1, 2], [1, 2]]), jnp.float32([[1, 2], [2, 1]])\n"
    text += "def f(*_): return jnp.dot(x + 2.0**-12, y, precision=P.F16_F16_F16)\n"
    _, rows = run("program: {callable: 'own:f'}", text)
    for row in rows.values():
        assert row.values == (5, 4, 5, 4)
        assert "no_effect" not in row.evidence


def test_settings_are_evidence(run):
    text = "import jax\njax.config.update('jax_default_matmul_precision', 'high')\n"
    text += "def f(x, y): return x @ y\n"
    _, rows = run("program: {callable: 'own:f'}", text)
    for row in rows.values():
        assert row.evidence["settings"] == "jax_default_matmul_precision=high"
        assert row.evidence["no_effect"] == "precision high: accepted, no effect here"


def test_every_path_and_reference_has_every_output(run):
    text = "def f(x, y): return {'sum': x + y, 'pair': (x, 2 * y)}\n"
    paths = ("eager", "jit", "jax2tf-native", "jax2tf-nonnative")
    result, _ = run("program: {callable: 'own:f'}", text, paths=paths)
    (case,) = result.cases
    assert {(row.path, row.output): row.values for row in (*case.rows, *case.references)} == {
        (path, output): values
        for path in (*paths, "strict", "f64")
        for output, values in (("pair.0", (1, 2)), ("pair.1", (6, 10)), ("sum", (4, 7)))
    }


def test_the_tape_differentiates_programs(run):
    """d sum(x² y) = 2 x y, x²."""
    text = "def f(x, y): return (x * x * y).sum(), x.astype(int)\n"
    paths = ("eager", "jax2tf-native.tape", "jax2tf-nonnative.tape")
    lines = "transforms: [vjp]\ncotangents: {out.0: {values: 2, dtype: float32}}\n"
    result, _ = run("program: {callable: 'own:f'}", text, paths=paths, lines=lines)
    assert {(row.path, row.output): row.values for row in result.rows} == {
        (path, output): values
        for path in paths
        for output, values in (("vjp.x", (12, 40)), ("vjp.y", (2, 8)))
    }


def test_an_edited_file_is_run_again(run):
    """The cache and --resume know a program by its text and by that of what it imports."""
    program = "program: {callable: 'own:f'}"
    Path("other.py").write_text("factor = 2\n")
    text = "import other\ndef f(x, y): return other.factor * x\n"
    first, _ = run(program, text, out="records")
    again, _ = run(program, out="records")
    assert all(row.cached for row in again.rows)
    Path("other.py").write_text("factor = 3\n")
    edited, _ = run(program, out="records")
    assert not any(row.cached for row in edited.rows)
    assert edited.rows[0].values == (3, 6)
    resumed, _ = run(program, resume=first.record, cache=False)
    assert resumed.rows[0].values == (3, 6)


def test_an_edited_package_is_run_again(run):
    """`sub.g` is named, and imports `sub.k`; nothing else of the folder can be imported."""
    Path("sub").mkdir()
    Path("unlisted.py").touch()
    Path("sub/__init__.py").touch()
    Path("sub/g.py").write_text("from sub.k import K\ndef g(x, y): return K * x\n")
    Path("sub/k.py").write_text("K = 3\n")
    program = "program: {callable: 'sub.g:g'}"
    assert run(program, out="records")[1]["jit"].values == (3, 6)
    assert run(program, out="records")[1]["jit"].cached
    Path("sub/k.py").write_text("K = 4\n")
    assert run(program, out="records")[1]["jit"].values == (4, 8)
    Path("sub/k.py").write_text("K = __import__('unlisted')\n")
    _, rows = run(program, out="records")
    assert rows["eager"].message == "No module named 'unlisted' (sub/k.py:1 in <module>)"


def test_the_working_directory_is_no_place_for_modules(run):
    """Neither for those of a case, nor for those that a worker needs itself."""
    Path("cases").mkdir()
    for name in ("stray", "types", "json"):
        Path(f"{name}.py").write_text("raise ImportError('of the working directory')\n")
    Path("cases/own.py").write_text("import stray\n")
    Path("cases/program.yaml").write_text(
        f"about: A program.\nprogram: {{callable: 'own:f'}}\n{OPERANDS}paths: [eager]\n"
    )
    (row,) = parity.run("cases/program.yaml").rows
    assert row.message == "No module named 'stray' (own.py:1 in <module>)"


def test_an_error_is_no_answer_for_the_next_time(run):
    program = "program: {callable: 'own:f'}"
    text = "from pathlib import Path\nimport numpy as np\n"
    text += "def f(x, y): return x * np.load(Path(__file__).with_name('scale.npy'))\n"
    _, rows = run(program, text, out="records")
    assert rows["jit"].error_type == "FileNotFoundError"
    assert rows["jit"].message.endswith("(own.py:3 in f)")
    np.save("scale.npy", np.float32(2))
    _, rows = run(program, out="records")
    assert rows["jit"].values == (2, 4)


@pytest.mark.parametrize("op", ["callable", "flax", "steps"])
def test_a_new_case_file_runs(run, op):
    Path("fresh.yaml").write_text(template(op, "fresh"))
    result = parity.run("fresh.yaml", paths=("eager",))
    assert [row.outcome for row in result.rows] == ["ok", "ok"]
    assert [row.outcome for case in result.cases for row in case.references] == ["ok"] * 4


def test_flax_has_the_same_parameters_on_every_path(run):
    program = "flax: {module: 'flax.linen:Dense', kwargs: {features: 2}}"
    paths = ("eager", "jit", "jax2tf-native", "jax2tf-nonnative")
    lines = "transforms: [jvp]\ngradients: [x, parameters]\n"
    text = OPERANDS.replace("  y: {shape: [2], dtype: float32, values: [3, 5]}\n", "")
    Path("program.yaml").write_text(
        f"about: A module.\n{text}paths: [{', '.join(paths)}]\n{program}\n{lines}"
    )
    result = parity.run("program.yaml")
    assert {row.grade for row in result.rows} <= {"identical", "equivalent"}
    np.testing.assert_allclose(
        np.array([row.values for row in result.rows]), [result.rows[0].values] * 4, rtol=1e-6
    )


RING = """\
import inspect
import jax
from jax import lax
from jax.sharding import Mesh, PartitionSpec as P
try:
    from jax import shard_map
except ImportError:
    from jax.experimental.shard_map import shard_map

def ring(x, y):
    unchecked = {"check_rep", "check_vma"} & set(inspect.signature(shard_map).parameters)
    def local(x):
        return x + 2 * lax.ppermute(x, "d", [(0, 1), (1, 0)])
    mesh = Mesh(jax.devices(), ("d",))
    return shard_map(local, mesh=mesh, in_specs=P("d"), out_specs=P(),
                     **dict.fromkeys(unchecked, False))(x)
"""


def test_an_answer_that_differs_between_devices_is_a_finding(run):
    """Device 0 has 1 + 2 * 2, device 1 has 2 + 2 * 1: another number, not another rounding."""
    program = "program: {callable: 'own:ring'}\ndevices: 2"
    result, rows = run(program, RING, out="records")
    again, cached = run(program, out="records")
    for row in (*rows.values(), *cached.values()):
        grade = "inaccurate" if row.path == "eager" else "divergent"  # as eager on each device
        assert (row.values, row.grade, row.status) == ((5,), grade, "finding")
        assert row.replicas == "replicas differ: 1 of 1 elements, by at most 1, on device 1"
        assert [(one.device, one.replica, one.apart) for one in row.shards] == [
            (0, 0, 0),
            (1, 1, 1),
        ]
        assert (row.accurate, row.faithful) == (False, False)
    assert all(row.cached for row in cached.values())
    assert result.verdict == again.verdict == "findings"
    assert [*parity.open_record(result.record).rows] == [*result.rows]
