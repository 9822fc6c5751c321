from __future__ import annotations

import dataclasses
import logging
import pickle
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from parity.casefile.case import Case, Expectation, Operand, Tolerance, Variant
from parity.casefile.load import load
from parity.compare.result import CaseResult
from parity.compare.rows import Row
from parity.errors import ParityFault
from parity.program.spec import OperandSpec, ProgramSpec
from parity.record import cache as module
from parity.record.cache import NOT_IN_KEY, Cache
from parity.record.store import Outputs

Made = tuple[CaseResult, Outputs]
MakeResult = Callable[..., Made]
FOUND = {"jax": "0.7.1", "cpu": "x86_64"}


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "reports")


def as_cached(result: CaseResult, **changes: Any) -> CaseResult:
    def changed(rows: tuple[Row, ...]) -> tuple[Row, ...]:
        return tuple(dataclasses.replace(row, cached=True, **changes) for row in rows)

    return dataclasses.replace(
        result, rows=changed(result.rows), references=changed(result.references)
    )


def test_an_error_is_kept_where_no_code_of_a_case_is_run(
    cache: Cache, make_result: MakeResult
) -> None:
    for op, kept in (("dot_general", True), ("steps", True), ("callable", False), ("flax", False)):
        result, outputs = make_result(program=ProgramSpec(op, ()))
        cache.put(f"fine {op}", result, FOUND, outputs)
        assert cache.get(f"fine {op}", result.case, "default")
        eager, jit = result.rows
        failed = dataclasses.replace(jit, outcome="error", grade=None, stage="trace")
        result = dataclasses.replace(result, rows=(eager, failed))
        cache.put(op, result, FOUND, outputs)
        assert bool(cache.get(op, result.case, "default")) is kept


class TestGetting:
    def test_what_was_put(self, cache: Cache, make_result: MakeResult) -> None:
        result, outputs = make_result(base=(np.nan, -0.0), other=(np.inf, 1.5))
        assert cache.get("k", result.case, "default") is None
        cache.put("k", result, FOUND, outputs)
        hit = cache.get("k", result.case, "default")
        assert hit is not None
        assert repr(hit.result) == repr(as_cached(result))
        assert hit.found == FOUND
        assert {key: bits.tobytes() for key, bits in hit.outputs.items()} == {
            key: bits.tobytes() for key, bits in outputs.items()
        }

    def test_identical_outputs_are_not_kept(self, cache: Cache, make_result: MakeResult) -> None:
        result, outputs = make_result()
        cache.put("k", result, FOUND, outputs)
        hit = cache.get("k", result.case, "default")
        assert hit is not None
        assert hit.outputs == {}

    def test_another_process_finds_it_later(self, cache: Cache, make_result: MakeResult) -> None:
        result, outputs = make_result()
        cache.put("k", result, FOUND, outputs)
        cache.close()
        hit = Cache(cache.file.parent).get("k", result.case, "default")
        assert hit is not None
        assert hit.result == as_cached(result)

    def test_it_is_of_the_case_and_environment_that_asks(
        self, cache: Cache, make_result: MakeResult, make_case: Callable[..., Case]
    ) -> None:
        result, outputs = make_result(environment="old")
        cache.put("k", result, FOUND, outputs)
        moved = make_case("dot", id="cases/moved.yaml::dot", about="Other words.")
        hit = cache.get("k", moved, "new")
        assert hit is not None
        assert hit.result.case is moved
        assert hit.result.environment == "new"
        assert {(row.case, row.environment) for row in hit.result.rows} == {(moved.id, "new")}

    def test_a_second_put_replaces(self, cache: Cache, make_result: MakeResult) -> None:
        cache.put("k", *reversed_found(make_result(other=(5.0, 6.0))))
        result, outputs = make_result(other=(7.0, 8.0))
        cache.put("k", result, {"jax": "0.8"}, outputs)
        hit = cache.get("k", result.case, "default")
        assert hit is not None
        assert hit.result == as_cached(result)
        assert hit.found == {"jax": "0.8"}
        assert hit.outputs["jit", "out"].tolist() == [7.0, 8.0]
        assert cache.info().entries == 1


def reversed_found(made: Made) -> tuple[CaseResult, Mapping[str, str], Outputs]:
    return made[0], FOUND, made[1]


class TestPutting:
    @pytest.mark.parametrize(
        ("changes", "kept"),
        [
            ({"outcome": "ok"}, True),
            ({"outcome": "unsupported"}, True),
            ({"outcome": "error"}, True),
            ({"outcome": "crashed"}, False),
            ({"outcome": "timeout"}, False),
            ({"outcome": "out-of-memory"}, False),
            ({"nondeterministic": True}, False),
            ({"evidence": {"retried": "crashed in a worker that had run other paths"}}, False),
        ],
    )
    @pytest.mark.parametrize("of", ["rows", "references"])
    def test_what_might_come_out_otherwise_is_not_kept(
        self,
        cache: Cache,
        make_result: MakeResult,
        of: str,
        changes: dict[str, Any],
        kept: bool,
    ) -> None:
        result, outputs = make_result()
        *others, last = getattr(result, of)
        rows = (*others, dataclasses.replace(last, **changes))
        cache.put("k", dataclasses.replace(result, **{of: rows}), FOUND, outputs)
        assert (cache.get("k", result.case, "default") is not None) == kept

    def test_judged_rows_are_our_fault(self, cache: Cache, make_result: MakeResult) -> None:
        with pytest.raises(ParityFault, match=r"judged rows of cases/dot.yaml::dot:k=2 must not"):
            cache.put("k", *reversed_found(make_result(status="finding")))


class TestSize:
    def test_what_was_not_used_for_longest_goes_first(
        self, tmp_path: Path, make_result: MakeResult, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        now = iter(range(1, 1000))
        monkeypatch.setattr(module.time, "time", lambda: float(next(now)))
        cache = Cache(tmp_path)
        result, _ = make_result()
        for number in range(10):
            cache.put(f"k{number}", result, FOUND)
        size = cache.info().size // 10
        cache.close()

        cache = Cache(tmp_path, limit=5 * size)
        assert cache.get("k2", result.case, "default") is not None
        cache.close()
        cache = Cache(tmp_path)
        left = [n for n in range(10) if cache.get(f"k{n}", result.case, "default")]
        assert left == [2, 7, 8, 9], "nine tenths of the limit, of which k2 was used last"

    def test_a_long_run_keeps_to_the_limit(self, tmp_path: Path, make_result: MakeResult) -> None:
        result, _ = make_result()
        with Cache(tmp_path, limit=20_000) as cache:
            for number in range(500):
                cache.put(f"k{number}", result, FOUND)
                assert cache.info().size < 20_000 + 70 * 2_000
            assert cache.get("k499", result.case, "default") is not None
        assert Cache(tmp_path).info().size <= 20_000

    def test_outputs_go_with_their_entry(self, cache: Cache, make_result: MakeResult) -> None:
        cache.put("k", *reversed_found(make_result(other=(5.0, 6.0))))
        assert cache.clear() == 1
        assert cache.info().entries == 0
        cache.close()
        with closing(sqlite3.connect(cache.file)) as db:
            assert db.execute("SELECT count(*) FROM outputs").fetchone() == (0,)

    def test_looking_makes_no_file(self, cache: Cache) -> None:
        assert (cache.info().entries, cache.clear()) == (0, 0)
        cache.close()
        assert not cache.file.parent.exists()


class TestDamage:
    @pytest.fixture
    def filled(self, cache: Cache, make_result: MakeResult) -> Path:
        for number in range(50):
            cache.put(f"k{number}", *reversed_found(make_result(other=(number, 2.0))))
        cache.close()
        return cache.file

    @pytest.mark.parametrize("damage", ["text", "pages", "version"])
    def test_a_damaged_file_is_set_aside(
        self,
        filled: Path,
        make_result: MakeResult,
        caplog: pytest.LogCaptureFixture,
        damage: str,
    ) -> None:
        content = bytearray(filled.read_bytes())
        if damage == "text":
            filled.write_text("hello " * 10_000)
        elif damage == "pages":
            content[4096:-1] = b"\xab" * (len(content) - 4097)
            filled.write_bytes(content)
        else:
            with closing(sqlite3.connect(filled)) as db:
                db.execute("PRAGMA user_version=99")
        result, outputs = make_result()
        with caplog.at_level(logging.WARNING), Cache(filled.parent) as cache:
            assert cache.get("k1", result.case, "default") is None
            cache.put("k1", result, FOUND, outputs)
            assert cache.get("k1", result.case, "default") is not None
        assert len(caplog.messages) == 1
        assert caplog.messages[0].startswith(f"{filled}: is damaged (")
        assert caplog.messages[0].endswith("renamed to cache.damaged")
        assert filled.with_suffix(".damaged").exists()

    def test_a_damaged_entry_is_forgotten(self, filled: Path, make_result: MakeResult) -> None:
        with closing(sqlite3.connect(filled)) as db, db:
            db.execute("UPDATE entries SET result = x'0011' WHERE key = 'k1'")
            db.execute("UPDATE outputs SET data = x'00', compression = 'zlib' WHERE key = 'k3'")
        case = make_result()[0].case
        with Cache(filled.parent) as cache:
            assert cache.get("k1", case, "default") is None
            assert cache.get("k3", case, "default") is None
            assert cache.get("k4", case, "default") is not None
            assert cache.info().entries == 48

    def test_where_nothing_can_be_written_everything_is_run(
        self, tmp_path: Path, make_result: MakeResult, caplog: pytest.LogCaptureFixture
    ) -> None:
        (tmp_path / "file").touch()
        cache = Cache(tmp_path / "file" / "reports")
        result, outputs = make_result()
        for _ in range(3):
            cache.put("k", result, FOUND, outputs)
            assert cache.get("k", result.case, "default") is None
        cache.close()
        assert len(caplog.messages) == 1
        assert "cannot be used ([Errno 20] Not a directory" in caplog.messages[0]


WRITER = """
import dataclasses, pickle, sys
from pathlib import Path
from parity.record.cache import Cache

folder, who = Path(sys.argv[1]), int(sys.argv[2])
result, outputs = pickle.loads((folder / "made").read_bytes())
with Cache(folder, limit=20_000) as cache:
    for number in range(70):
        key = f"k{number if number % 2 else who * 1000 + number}"
        cache.put(key, result, {"jax": "0.7.1"}, outputs)
        hit = cache.get(key, result.case, "default")
        if hit is not None:
            assert [row.sha256 for row in hit.result.rows] == [row.sha256 for row in result.rows]
    assert cache._usable
"""


def test_several_processes_at_once(tmp_path: Path, make_result: MakeResult) -> None:
    (tmp_path / "made").write_bytes(pickle.dumps(make_result(other=(5.0, 6.0))))
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path), str(who)],
            stderr=subprocess.PIPE,
            text=True,
        )
        for who in range(3)
    ]
    assert [process.communicate(timeout=60)[1] for process in processes] == [""] * 3
    assert [process.returncode for process in processes] == [0] * 3
    with closing(sqlite3.connect(tmp_path / "cache.sqlite")) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)


SPEC = ProgramSpec(
    "dot_general",
    (OperandSpec("lhs", (2,), "float32"), OperandSpec("rhs", (2,), "float32")),
)
OPERANDS = (
    Operand("lhs", (2,), "float32", values=[1.0, 2.0]),
    Operand("rhs", (2,), "float32", draw="normal"),
)
EXPECTATION = Expectation(
    ("jit",), None, ("divergent",), None, None, None, "known", None, None, {}, 3
)
MATTERS: dict[str, dict[str, Any]] = {
    "the op": {"program": dataclasses.replace(SPEC, op="einsum")},
    "an attribute": {"program": dataclasses.replace(SPEC, attributes={"precision": "HIGHEST"})},
    "compute dtype": {"program": dataclasses.replace(SPEC, compute_dtype="bfloat16")},
    "output dtype": {"program": dataclasses.replace(SPEC, output_dtype="bfloat16")},
    "a residual": {"program": dataclasses.replace(SPEC, residual="lhs")},
    "the transform": {"program": dataclasses.replace(SPEC, transform="vjp")},
    "what it needs": {"program": dataclasses.replace(SPEC, extra=SPEC.operands[:1])},
    "given parameters": {"program": dataclasses.replace(SPEC, parameters=SPEC.operands[:1])},
    "what is differentiated": {"program": dataclasses.replace(SPEC, gradients=("lhs",))},
    "what is batched": {"program": dataclasses.replace(SPEC, batched=("lhs",))},
    "its barriers": {"program": dataclasses.replace(SPEC, barriers=("0",))},
    "what is observed": {"program": dataclasses.replace(SPEC, observed=("0",))},
    "the text of its files": {
        "program": dataclasses.replace(SPEC, attributes={"sources": {"a.py": "0"}})
    },
    "the batch": {"program": dataclasses.replace(SPEC, batch=3)},
    "64-bit types": {"program": dataclasses.replace(SPEC, x64=True)},
    "the devices": {"program": dataclasses.replace(SPEC, devices=4)},
    "a shape": {"program": dataclasses.replace(SPEC, operands=SPEC.operands[:1])},
    "a value": {"operands": (dataclasses.replace(OPERANDS[0], values=[1.0, 2.5]), OPERANDS[1])},
    "a zero's sign": {
        "operands": (dataclasses.replace(OPERANDS[0], values=[-0.0, 2.0]), OPERANDS[1])
    },
    "the distribution": {
        "operands": (OPERANDS[0], dataclasses.replace(OPERANDS[1], draw="uniform"))
    },
    "its parameters": {
        "operands": (OPERANDS[0], dataclasses.replace(OPERANDS[1], parameters={"scale": 2.0}))
    },
    "the seed": {"operands": (OPERANDS[0], dataclasses.replace(OPERANDS[1], seed=1))},
    "an operand's dtype": {
        "operands": (OPERANDS[0], dataclasses.replace(OPERANDS[1], dtype="bfloat16"))
    },
    "repetition": {"operands": (dataclasses.replace(OPERANDS[0], repeat=2), OPERANDS[1])},
    "the baseline": {"baseline": "jit"},
    "a tolerance": {"tolerance": Tolerance(rtol=1e-3)},
    "the licences": {"licences": ("fma",)},
    "a variant": {"variants": {"jit": Variant("jit", "jit", {"xla_x": True})}},
    "a variant's variables": {"variants": {"jit": Variant("jit", "jit", {}, {"XLA_FLAGS": "--x"})}},
}
MATTERS_NOT: dict[str, dict[str, Any]] = {
    "id": {"id": "cases/other.yaml::other"},
    "file": {"file": Path("/elsewhere/cases/other.yaml")},
    "line": {"line": 99},
    "name": {"name": "other"},
    "about": {"about": "Other words."},
    "links": {"links": ()},
    "point": {"point": {"n": "7"}},
    "paths": {"paths": ("eager", "jit", "jax2tf-native")},
    "expect": {"expect": (EXPECTATION,)},
    "timeout": {"timeout": 3.0},
    "a variant that is not run": {"variants": {"other": Variant("other", "jit", {"x": 1})}},
}


class TestKey:
    @pytest.fixture
    def case(self, make_case: Callable[..., Case]) -> Callable[..., Case]:
        return lambda **changes: make_case(**{"program": SPEC, "operands": OPERANDS} | changes)

    @pytest.mark.parametrize("what", MATTERS)
    def test_what_could_change_bits_or_grades_changes_it(
        self, cache: Cache, case: Callable[..., Case], what: str
    ) -> None:
        paths = ("eager", "jit")
        assert cache.key(case(), paths, "e") != cache.key(case(**MATTERS[what]), paths, "e")

    @pytest.mark.parametrize("what", MATTERS_NOT)
    def test_what_could_not_does_not(
        self, cache: Cache, case: Callable[..., Case], what: str
    ) -> None:
        paths = ("eager", "jit")
        assert cache.key(case(), paths, "e") == cache.key(case(**MATTERS_NOT[what]), paths, "e")

    def test_every_field_of_a_case_is_decided_on(self) -> None:
        tested = {name for changes in MATTERS.values() for name in changes}
        assert tested | NOT_IN_KEY == {field.name for field in dataclasses.fields(Case)}
        not_tested = {name for changes in MATTERS_NOT.values() for name in changes}
        assert not_tested - {"variants"} == NOT_IN_KEY
        programs = [c["program"] for c in MATTERS.values() if "program" in c]
        changed = {
            field.name
            for field in dataclasses.fields(ProgramSpec)
            if any(getattr(p, field.name) != getattr(SPEC, field.name) for p in programs)
        }
        assert changed == {field.name for field in dataclasses.fields(ProgramSpec)}

    def test_paths_environment_and_parity_change_it(
        self, cache: Cache, case: Callable[..., Case], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        keys = [
            cache.key(case(), ("eager", "jit"), "e"),
            cache.key(case(), ("jit", "eager"), "e"),
            cache.key(case(), ("eager",), "e"),
            cache.key(case(), ("eager", "jit"), "f"),
        ]
        monkeypatch.setattr(module, "source_digest", lambda: "edited")
        keys.append(cache.key(case(), ("eager", "jit"), "e"))
        assert len(set(keys)) == 5

    def test_where_the_files_of_a_program_lie_does_not(
        self, cache: Cache, case: Callable[..., Case]
    ) -> None:
        places = [
            dataclasses.replace(SPEC, attributes={"folder": folder, "sources": {"a.py": "0"}})
            for folder in ("/here", "/there")
        ]
        keys = {cache.key(case(program=program), ("jit",), "e") for program in places}
        assert len(keys) == 1

    @pytest.mark.parametrize("edited", ["model.py", "layers.py", "weights.npz"])
    def test_the_content_of_any_file_of_a_program_changes_it(
        self, tmp_path: Path, edited: str
    ) -> None:
        (tmp_path / "model.py").write_text("import layers\n\nDense = layers.Dense\n")
        (tmp_path / "layers.py").write_text("from flax.linen import Dense\n")
        (tmp_path / "unused.py").write_text("")
        weights = {"params/kernel": np.ones((4, 2), np.float32)}
        np.savez(tmp_path / "weights.npz", **weights)
        (tmp_path / "case.yaml").write_text(
            "about: A model beside the case file, with parameters of a file.\n"
            "flax: {module: model:Dense, kwargs: {features: 2}, parameters: {file: weights.npz}}\n"
            "operands: {inputs: {shape: [3, 4], dtype: float32, draw: normal}}\n"
        )

        def key() -> str:
            (loaded,) = load(tmp_path / "case.yaml").cases
            return Cache(tmp_path).key(loaded, ("eager",), "e")

        before = key()
        (tmp_path / "unused.py").write_text("1")
        assert key() == before
        if edited == "weights.npz":
            np.savez(tmp_path / edited, **{name: 2 * of for name, of in weights.items()})
        else:
            with (tmp_path / edited).open("a") as file:
                file.write("# edited\n")
        assert key() != before

    def test_the_content_of_an_array_file_changes_it(
        self, tmp_path: Path, case: Callable[..., Case]
    ) -> None:
        stored = case(
            file=tmp_path / "case.yaml",
            operands=(Operand("lhs", (2,), "float32", file=Path("x.npy")),),
        )
        keys = set()
        for content in ([1.0, 2.0], [1.0, 3.0]):
            np.save(tmp_path / "x.npy", np.float32(content))
            keys.add(Cache(tmp_path).key(stored, ("eager",), "e"))
        (tmp_path / "x.npy").unlink()
        keys.add(Cache(tmp_path).key(stored, ("eager",), "e"))
        assert len(keys) == 3

    def test_it_is_the_same_tomorrow(self, cache: Cache, case: Callable[..., Case]) -> None:
        """The same in another process: nothing of it depends on hashes or the order of sets."""
        code = (
            "import sys, pickle; from pathlib import Path; from parity.record.cache import Cache;"
            "case = pickle.loads(sys.stdin.buffer.read());"
            "print(Cache(Path('/nowhere')).key(case, ('eager', 'jit'), 'e'))"
        )
        done = subprocess.run(
            [sys.executable, "-c", code],
            input=pickle.dumps(case()),
            capture_output=True,
            check=True,
            timeout=60,
        )
        assert done.stdout.decode() == cache.key(case(), ("eager", "jit"), "e") + "\n"
