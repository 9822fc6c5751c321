"""JAX's own harnesses as case files: the same bits, the same equation, the known results."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax
import numpy as np
import pytest
from jax import lax

import parity
from parity import cli, importing
from parity.casefile.load import load
from parity.engine.gateway import WorkerLost
from parity.errors import UserError, WorkerStartError
from parity.importing import import_jax_harnesses
from parity.program.build import build
from parity.program.jax_versions import VERSION
from parity.worker.harnesses import Harness, described
from parity.worker.protocol import Failure

GROUPS = ("conv_general_dilated", "dot_general")
HANDFUL = (
    "conv_general_dilated_conv_tranpose2d_same_padding",
    "conv_general_dilated_dimension_numbers_lhs_float32_2_3_9_10",
    "conv_general_dilated_dtype_precision_lhs_bfloat16",
    "conv_general_dilated_group_counts_lhs_float32_2_6",
    "conv_general_dilated_group_counts_lhs_float32_4_3",
    "conv_general_dilated_preferred_lhs_complex128",
    "conv_general_dilated_preferred_lhs_int64",
    "conv_general_dilated_tf_conversion_path_3d",
    "conv_general_dilated_conv1d",
    "dot_general_batch_dimensions_lhs_float32_8_4_3_3_4",
    "dot_general_different_dtypes_lhs_bfloat16_4_3_rhs_float16",
    "dot_general_dtypes_and_precision_lhs_bool",
    "dot_general_dtypes_and_precision_lhs_uint32",
    "dot_general_preferred_lhs_int32",
    "dot_general_squeeze_lhs_float32_4_rhs_float32_4_dim",
)
"""One harness of each is enough for most runs; `full` takes them all."""

truncates = pytest.mark.filterwarnings(
    "ignore:Explicitly requested dtype"  # with 64-bit types off, as JAX's own tests have them
)


def jax_harnesses() -> dict[str, Any]:
    """The harnesses of both groups by full name."""
    from jax._src.internal_test_util import test_harnesses

    return {h.fullname: h for h in test_harnesses.all_harnesses if h.group_name in GROUPS}


def draft_of(harness: Any, folder: Path) -> Path:
    found = described(harness)
    assert found.reason == ""
    return importing.write(importing._draft(found, jax.__version__), folder)


def check(harness: Any, file: Path) -> None:
    """Whether a case file is its harness: name, bits, and the one equation that both are."""
    (case,) = load(file).cases
    assert harness.fullname in case.about
    assert case.id == f"{file.name}::{case.name}"
    assert len(case.name) <= 80
    arrays = harness.dyn_args_maker(np.random.RandomState(0))
    assert [a.dtype for a in case.arrays()] == [np.asarray(a).dtype for a in arrays]
    assert [a.shape for a in case.arrays()] == [np.shape(a) for a in arrays]
    assert [a.tobytes() for a in case.arrays()] == [np.asarray(a).tobytes() for a in arrays]
    assert not case.program.x64
    theirs = jax.make_jaxpr(harness.dyn_fun)(*arrays)
    ours = build(case.program).jaxpr
    assert [str(aval) for aval in ours.in_avals] == [str(aval) for aval in theirs.in_avals]
    assert [str(aval) for aval in ours.out_avals] == [str(aval) for aval in theirs.out_avals]
    assert [(e.primitive, e.params) for e in ours.jaxpr.eqns] == [
        (e.primitive, e.params) for e in theirs.jaxpr.eqns
    ]


@truncates
@pytest.mark.parametrize("start", HANDFUL)
def test_a_case_file_is_its_harness(start: str, tmp_path: Path) -> None:
    harness = next(h for name, h in jax_harnesses().items() if name.startswith(start))
    check(harness, draft_of(harness, tmp_path))


@truncates
@pytest.mark.full
def test_every_case_file_is_its_harness(tmp_path: Path) -> None:
    files = {}
    for name, harness in jax_harnesses().items():
        files[name] = draft_of(harness, tmp_path)
        check(harness, files[name])
    assert len(set(files.values())) == len(jax_harnesses())


def stand_in(function: Any, *arrays: Any) -> Any:
    """What a harness of JAX has, for a function of one's own."""
    return SimpleNamespace(fullname="mine", dyn_fun=function, dyn_args_maker=lambda rng: arrays)


def _dot(lhs: Any, rhs: Any, **more: Any) -> Any:
    return lax.dot_general(lhs, rhs, (((0,), (0,)), ((), ())), **more)


X = np.arange(3, dtype=np.float32)


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lax.add, "no case file has the op add"),
        (lambda a, b: a, "not one op (got nothing)"),
        (lambda a, b: lax.sin(_dot(a, b)), "not one op (got dot_general, sin)"),
        (lambda a, b: _dot(b, a), "dot_general is not taken of the operands in order"),
        (lambda a, b: _dot(a, X), "dot_general is not taken of the operands in order"),
        (lambda a, b: _dot(a, b[0]), "cannot be traced: TypeError: "),
        (
            lambda a, b: _dot(a, b, precision=_unnamed()),
            "precision DotAlgorithm(lhs_precision_type=dtype('float32')",
        ),
    ],
)
def test_what_no_case_file_can_say_is_left_out_with_the_reason(function: Any, reason: str) -> None:
    found = described(stand_in(function, X, X))
    assert found.reason.startswith(reason)
    assert (found.name, found.op, found.operands) == ("mine", "", {})


def _unnamed() -> Any:
    f32 = np.dtype(np.float32)
    return lax.DotAlgorithm(f32, f32, f32, 1, 1, 1, False)


def test_an_operand_of_a_dtype_without_a_name_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("parity.worker.harnesses.DTYPES", {"float16": None})
    assert described(stand_in(_dot, X, X)).reason == "operands of float32"


def test_a_harness_travels_unchanged() -> None:
    sent = described(stand_in(_dot, X, X.astype(np.float16)))
    arrived = Harness.from_wire(sent.to_wire())
    assert {**vars(arrived), "operands": 0} == {**vars(sent), "operands": 0}
    assert sent.attributes == {"contracting": [[0], [0]]}
    assert [a.tobytes() for a in arrived.operands.values()] == [
        a.tobytes() for a in sent.operands.values()
    ]


class Answering:
    """A worker whose JAX has one harness that can be expressed and three that cannot."""

    failure: dict[str, str] | None = None
    lost: WorkerLost | None = None

    def __init__(self, setting: Any, folder: Path) -> None:
        self.environment = {"jax": "0.7.1"}
        self.harnesses = [
            described(stand_in(_dot, X, X)),
            Harness("one", reason="no case file has the op sin"),
            Harness("two", reason="no case file has the op sin"),
            Harness("three", reason="not one op (got nothing)"),
        ]

    def start(self) -> None:
        """Nothing has to be waited for."""

    def send(self, request: Any) -> None:
        self.groups = request["groups"]

    def receive(self, limit: float) -> dict[str, Any]:
        if self.lost is not None:
            raise self.lost
        found = self.harnesses if self.groups == ["dot_general"] else self.harnesses[1:]
        wires = [harness.to_wire() for harness in found]
        return {"failure": self.failure, "groups": ["dot_general", "sin"], "harnesses": wires}

    def kill(self) -> None:
        pass


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importing, "Gateway", Answering)


Captured = pytest.CaptureFixture[str]


@pytest.mark.usefixtures("answers")
def test_the_command_says_what_is_left_out(tmp_path: Path, capsys: Captured) -> None:
    folder = tmp_path / "new" / "cases"
    code = cli.invoke(["import", "jax-harnesses", "--group", "dot_general", "-o", str(folder)])
    out, err = capsys.readouterr()
    assert code == 0
    assert out == (
        "1 of 4 harnesses of JAX 0.7.1 written; 2 left out: no case file has the op sin; "
        "1 left out: not one op (got nothing)\n"
    )
    assert "two: left out: no case file has the op sin\n" in err
    assert f"parity run {folder} runs them\n" in err
    assert [file.name for file in folder.iterdir()] == ["mine.yaml"]


@pytest.mark.usefixtures("answers")
def test_nothing_is_written_where_nothing_can_be_expressed(
    tmp_path: Path, capsys: Captured
) -> None:
    folder = tmp_path / "new"
    code = cli.invoke(["import", "jax-harnesses", "--group", "sin", "-o", str(folder)])
    assert code == cli.NOTHING
    assert capsys.readouterr().out.startswith("0 of 3 harnesses of JAX 0.7.1 written; ")
    assert not folder.exists()


@pytest.mark.usefixtures("answers")
def test_an_unknown_group_is_named_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        import_jax_harnesses(["dot_genral"], tmp_path)
    assert str(caught.value) == (
        "unknown group (got dot_genral; allowed dot_general, sin)\n"
        "hint: did you mean 'dot_general'?"
    )


@pytest.mark.usefixtures("answers")
def test_an_environment_without_harnesses_says_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Answering, "failure", {"message": "No module named 'absl'"})
    with pytest.raises(UserError) as caught:
        import_jax_harnesses(["dot_general"], tmp_path)
    assert str(caught.value) == (
        "JAX 0.7.1 has no harnesses to import (No module named 'absl')\n"
        "hint: they need the package absl-py"
    )


@pytest.mark.usefixtures("answers")
def test_a_worker_that_dies_is_the_environments_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failure = Failure("crashed", "start", "SIGSEGV", "the worker died of SIGSEGV", stderr="oh")
    monkeypatch.setattr(Answering, "lost", WorkerLost(failure))
    with pytest.raises(WorkerStartError) as caught:
        import_jax_harnesses(["dot_general"], tmp_path, python="python9")
    assert str(caught.value) == "python9 gave no harnesses: the worker died of SIGSEGV\nhint: oh"


@pytest.mark.usefixtures("answers")
def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match=r"file/new: cannot be written \(Not a directory\)"):
        import_jax_harnesses(["dot_general"], tmp_path / "file" / "new")


def test_a_folder_with_something_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").touch()
    with pytest.raises(UserError, match="is not empty\nhint: name a new folder with -o"):
        import_jax_harnesses(["dot_general"], tmp_path)


def test_the_installed_jax_is_asked_in_a_worker(tmp_path: Path) -> None:
    found = import_jax_harnesses(["conv_general_dilated", "cumsum"], tmp_path / "new")
    assert found.jax == jax.__version__
    assert len(found.files) == sum(n.startswith("conv_general_dilated") for n in jax_harnesses())
    assert set(found.left_out.values()) == {"no case file has the op cumsum"}
    assert all(file.is_file() for file in found.files)


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """All harnesses of both groups, imported and run on the four paths."""
    folder = tmp_path_factory.mktemp("harnesses")
    imported = import_jax_harnesses(GROUPS, folder / "cases")
    assert imported.left_out == {}
    return parity.run(folder / "cases")


def of_path(result: Any, path: str) -> list[Any]:
    return [row for row in result.rows if row.path == path]


needs_0_7_1 = pytest.mark.skipif(VERSION != (0, 7, 1), reason="these are JAX 0.7.1's numbers")


@pytest.mark.full
@needs_0_7_1
def test_eager_jit_and_native_agree_on_all_of_them(everything: Any) -> None:
    assert len(everything.cases) == 384
    for path in ("eager", "jit", "jax2tf-native"):
        rows = of_path(everything, path)
        assert Counter((row.outcome, row.grade) for row in rows) == {("ok", "identical"): 384}


@pytest.mark.full
@needs_0_7_1
def test_nonnative_differs_where_it_is_known_to(everything: Any) -> None:
    rows = of_path(everything, "jax2tf-nonnative")
    assert Counter((row.outcome, row.grade) for row in rows) == {
        ("ok", "identical"): 365,
        ("ok", "mismatched"): 5,
        ("ok", "divergent"): 2,
        ("error", None): 12,
    }
    cases = {case.case.id: case.case for case in everything.cases}
    for row in rows:
        program = cases[row.case].program
        dtypes = [operand.dtype for operand in program.operands]
        if row.outcome == "error":
            assert dtypes == ["bool", "bool"]
            assert "of bool is not in the list" in row.message
        elif row.grade == "mismatched":
            assert program.op == "conv_general_dilated"
            assert dtypes[0] in ("int16", "int32", "int64")
            assert program.attributes["preferred_element_type"] in (
                "bfloat16",
                "float16",
                "float32",
            )
            assert "NaN where the baseline has numbers" in row.detail
        elif row.grade == "divergent":
            assert dtypes == ["bfloat16", "float16"]


@pytest.mark.full
@needs_0_7_1
def test_the_two_mixed_dots_say_why(everything: Any) -> None:
    mixed = [
        case for case in everything.cases if any("bfloat16 and float16" in n for n in case.notes)
    ]
    assert len(mixed) == 2
    for case in mixed:
        rows = {row.path: row for row in case.rows}
        assert not rows["eager"].faithful
        assert rows["jax2tf-nonnative"].faithful
        assert "baseline not faithful" in rows["jax2tf-nonnative"].detail
        assert case.notes == (
            "dot of bfloat16 and float16: "
            "JAX converts both to the result's dtype first, `strict` does not",
        )


@pytest.mark.full
@needs_0_7_1
def test_every_reference_exists_and_nothing_is_inaccurate(everything: Any) -> None:
    references = [row for case in everything.cases for row in case.references]
    assert Counter((row.path, row.outcome) for row in references) == {
        ("f64", "ok"): 384,
        ("strict", "ok"): 384,
    }
    assert [row.case for row in everything.rows if row.grade == "inaccurate"] == []
    unfaithful = {row.case for row in of_path(everything, "eager") if not row.faithful}
    assert len(unfaithful) == 2  # the two mixed dots
