from __future__ import annotations

import errno
import itertools
import json
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from parity.casefile.case import Case
from parity.compare.result import CaseResult
from parity.errors import UserError
from parity.record import opening
from parity.record.result import open_record
from parity.record.store import Outputs, Store
from parity.worker.protocol import PathOutcome

Made = tuple[CaseResult, Outputs]
MakeResult = Callable[..., Made]


def query(file: Path | None, text: str) -> list[tuple[Any, ...]]:
    assert file is not None
    with closing(sqlite3.connect(file)) as db:
        return db.execute(text).fetchall()


def facts(file: Path | None) -> dict[str, str]:
    return dict(query(file, "SELECT key, value FROM run"))


class TestWriting:
    def test_what_is_added_can_be_read_at_once_and_later(
        self, store: Store, make_result: MakeResult
    ) -> None:
        results = [make_result("a"), make_result("b", other=(1.0, 2.5), status="finding")]
        store.environment("default", {"python": "3.11.7", "jax": "0.7.1"})
        for result, outputs in results:
            store.add(result, outputs)
        assert list(store.results()) == [result for result, _ in results]
        store.finish("findings")
        assert list(store.results()) == [result for result, _ in results]
        assert store.file is not None
        past = open_record(store.file)
        assert list(past.cases) == [result for result, _ in results]
        assert past.environments == {"default": {"python": "3.11.7", "jax": "0.7.1"}}
        assert (past.wanted, past.interrupted, past.record) == (3, False, store.file)

    def test_a_finished_record_is_one_file(self, store: Store, make_result: MakeResult) -> None:
        store.add(*make_result())
        assert store.file is not None
        folder = store.file.parent
        assert {file.name for file in folder.iterdir()} > {store.file.name}
        store.finish("ok")
        assert [file.name for file in folder.iterdir()] == [store.file.name]
        assert query(store.file, "PRAGMA journal_mode") == [("delete",)]

    def test_each_finished_case_is_in_the_file_without_its_log(
        self, store: Store, make_result: MakeResult, tmp_path: Path
    ) -> None:
        assert store.file is not None
        store.environment("default", {"jax": "0.7.1"})
        (tmp_path / "alone").mkdir()
        for number in range(3):
            result, outputs = make_result(f"c{number}", other=(number, 4.0))
            store.arrived(result.case, "default", PathOutcome("eager", outputs={}))
            store.add(result, outputs)
            store.arrived(make_result("next")[0].case, "default", PathOutcome("eager", outputs={}))
            alone = Path(shutil.copy(store.file, tmp_path / "alone"))
            past = open_record(alone)
            assert [case.case.name for case in past.cases] == [f"c{n}" for n in range(number + 1)]
            assert past.cases[-1] == result
            assert (past.verdict, past.environment) == ("interrupted", {"jax": "0.7.1"})
            assert [*alone.parent.iterdir()] == [alone]

    def test_the_facts_of_a_run(self, store: Store) -> None:
        store.finish("interrupted", interrupted=True)
        found = facts(store.file)
        found.pop("commit", None)
        assert found["started"] <= found["finished"]
        assert found | {"started": "", "finished": ""} == {
            "parity": "1.0",
            "started": "",
            "finished": "",
            "verdict": "interrupted",
            "interrupted": "1",
            "wanted": "3",
            "options": '{"repeats":1}',
            "arguments": "{}",
            "keep": "non-identical",
            "keep_limit": str(64 << 20),
        }

    def test_the_commit_of_the_project(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "cases").mkdir()
        monkeypatch.chdir(tmp_path / "cases")
        (tmp_path / "pyproject.toml").touch()
        git = ["git", "-C", str(tmp_path), "-c", "user.name=n", "-c", "user.email=e@example.org"]
        for command in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "one"]):
            subprocess.run([*git, *command], check=True)
        head = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True)
        store = Store(tmp_path / "a" / "reports", version="1.0")
        assert facts(store.file)["commit"] == head.stdout.decode().strip()

    def test_no_git_is_no_obstacle(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PATH", str(tmp_path))
        assert "commit" not in facts(Store(tmp_path / "reports", version="1.0").file)

    def test_results_are_in_the_order_that_was_asked_for(
        self, store: Store, make_result: MakeResult
    ) -> None:
        for position in (2, 0, 1):
            store.add(*make_result(f"c{position}"), position=position)
        store.add(*make_result("last"))
        assert [r.case.name for r in store.results()] == ["c0", "c1", "c2", "last"]

    def test_one_case_in_several_environments(self, store: Store, make_result: MakeResult) -> None:
        old, new = make_result(environment="old"), make_result(environment="new", other=(3.0, 4.0))
        store.environment("old", {"jax": "0.4.38"})
        store.environment("new", {"jax": "0.7.1"})
        store.add(*old)
        store.add(*new)
        assert list(store.results()) == [old[0], new[0]]
        assert store.done() == {
            (old[0].case.id, "old"): ("eager", "jit"),
            (old[0].case.id, "new"): ("eager", "jit"),
        }

    def test_a_case_that_is_added_again_is_replaced(
        self, store: Store, make_result: MakeResult
    ) -> None:
        store.add(*make_result("a"))
        store.add(*make_result("b"))
        again = make_result("a", other=(5.0, 6.0), about="Edited.")
        store.add(*again, position=0)
        assert store.results()[0] == again[0]
        assert len(store.results()) == 2
        assert query(store.file, "SELECT count(*) FROM results") == [(6,)]

    def test_a_record_without_a_folder_leaves_nothing(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make_result: MakeResult
    ) -> None:
        monkeypatch.setenv("SQLITE_TMPDIR", str(tmp_path))
        store = Store(None, version="1.0")
        made = make_result()
        store.add(*made)
        store.finish("ok")
        assert store.file is None
        assert list(store.results()) == [made[0]]
        store.close()
        assert list(tmp_path.iterdir()) == []

    def test_a_record_has_a_name_only_when_it_is_whole(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        whole = []

        def link(name: Path, file: Path) -> None:
            whole.append(open_record(name).wanted)
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(opening.os, "link", link)
        with pytest.raises(UserError, match=r"cannot write a record there: .* No space left"):
            Store(tmp_path, version="1.0", wanted=7)
        assert whole == [7]
        assert list(tmp_path.iterdir()) == []

    def test_two_records_of_one_second_have_two_names(self, tmp_path: Path) -> None:
        files = {Store(tmp_path, version="1.0").file for _ in range(3)}
        assert len(files) == 3

    def test_a_folder_that_cannot_be_made_is_the_users_to_mend(self, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        with pytest.raises(UserError) as caught:
            Store(tmp_path / "file" / "reports", version="1.0")
        assert str(caught.value) == (
            f"{tmp_path}/file/reports: cannot write a record there: "
            f"[Errno 20] Not a directory: '{tmp_path}/file/reports'\n"
            "hint: --out takes a folder that can be written; so does `reports` in [tool.parity]"
        )

    def test_an_unknown_value_of_keep(self, tmp_path: Path) -> None:
        with pytest.raises(UserError, match=r"\(got some; allowed all, non-identical, none\)"):
            Store(tmp_path, version="1.0", keep="some")


class TestOutputs:
    def kept(self, tmp_path: Path, made: list[Made], **how: Any) -> Store:
        store = Store(tmp_path, version="1.0", **how)
        for result, outputs in made:
            store.add(result, outputs)
        return store

    def left_out(self, store: Store) -> list[tuple[str, str | None]]:
        return query(
            store.file, "SELECT path, left_out FROM results ORDER BY case_result, position"
        )

    def test_bits_come_back(self, tmp_path: Path, make_result: MakeResult) -> None:
        result, outputs = make_result(base=(np.nan, -0.0), other=(np.inf, 1e-45))
        store = self.kept(tmp_path, [(result, outputs)])
        found = store.results().outputs(result.case.id, "default")
        assert list(found) == [("eager", "out"), ("jit", "out"), ("strict", "out")]
        for key, array in outputs.items():
            assert found[key].dtype == array.dtype
            assert found[key].tobytes() == array.tobytes()

    @pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn", "int4", "complex64", "bool"])
    def test_every_kind_of_element_is_kept(
        self, tmp_path: Path, make_result: MakeResult, dtype: str
    ) -> None:
        from parity.dtypes import DTYPES

        result, _ = make_result(other=(5.0, 6.0))
        array = np.zeros((2, 0, 3) if dtype == "bool" else (2, 3), DTYPES[dtype].numpy())
        store = self.kept(tmp_path, [(result, {("jit", "out"): array})])
        found = store.results().outputs(result.case.id, "default")["jit", "out"]
        assert (found.dtype, found.shape) == (array.dtype, array.shape)

    def test_equal_bits_are_stored_once(self, tmp_path: Path, make_result: MakeResult) -> None:
        made = [make_result("a", other=(3.0, 4.0)), make_result("b", other=(3.0, 4.0))]
        store = self.kept(tmp_path, made)
        assert query(store.file, "SELECT count(*) FROM outputs") == [(2,)]
        assert [why for _, why in self.left_out(store)] == [None] * 6

    def test_compressed_if_that_is_smaller(self, tmp_path: Path, make_result: MakeResult) -> None:
        zeros, noise = (0.0,) * 1000, np.random.default_rng(0).bytes(4000)
        made = [make_result(base=zeros, other=np.frombuffer(noise, np.float32))]
        store = self.kept(tmp_path, made, keep="all")
        found = query(store.file, "SELECT compression, length(data) FROM outputs ORDER BY rowid")
        assert found[0][0] == "zlib"
        assert found[0][1] < 100
        assert found[1] == (None, 4000)

    @pytest.mark.parametrize(
        ("keep", "same", "differs"),
        [
            ("all", [None, None, None], [None, None, None]),
            ("non-identical", ["keep", "keep", "keep"], [None, None, None]),
            ("none", ["keep", "keep", "keep"], ["keep", "keep", "keep"]),
        ],
    )
    def test_what_is_kept(
        self,
        tmp_path: Path,
        make_result: MakeResult,
        keep: str,
        same: list[str | None],
        differs: list[str | None],
    ) -> None:
        made = [make_result("a", base=(7.0, 8.0), other=(7.0, 8.0)), make_result(other=(3.0, 4.0))]
        store = self.kept(tmp_path, made, keep=keep)
        assert [why for _, why in self.left_out(store)] == same + differs

    def test_the_limit_is_on_what_is_stored_and_said(
        self, tmp_path: Path, make_result: MakeResult
    ) -> None:
        noise = np.random.default_rng(1).integers(1, 2**31, (4, 100)).astype(float)
        made = [make_result("a", base=noise[0], other=noise[1])]
        made += [make_result("b", base=noise[2], other=noise[3])]
        made += [make_result("c", base=(1.0, 2.0), other=(1.0, 3.0))]
        store = self.kept(tmp_path, made, limit=1000)
        assert self.left_out(store) == [
            ("eager", None),
            ("jit", None),
            ("strict", None),
            ("eager", "limit"),
            ("jit", "limit"),
            ("strict", "absent"),
            ("eager", None),
            ("jit", None),
            ("strict", None),
        ]
        assert query(store.file, "SELECT sum(length(data)) <= 1000 FROM outputs") == [(1,)]

    def test_a_resumed_record_keeps_to_its_limit(
        self, tmp_path: Path, make_result: MakeResult
    ) -> None:
        noise = np.random.default_rng(1).integers(1, 2**31, (4, 100)).astype(float)
        store = self.kept(tmp_path, [make_result("a", base=noise[0], other=noise[1])], limit=1000)
        store.finish("ok")
        assert store.file is not None
        store = Store.resume(store.file, version="1.0")
        store.add(*make_result("b", base=noise[2], other=noise[3]))
        assert [why for _, why in self.left_out(store)][3:] == ["limit", "limit", "absent"]


class TestResuming:
    @pytest.fixture
    def begun(self, store: Store, make_result: MakeResult) -> Path:
        store.environment("default", {"jax": "0.7.1"})
        store.add(*make_result("a"))
        store.finish("interrupted", interrupted=True)
        store.close()
        assert store.file is not None
        return store.file

    def test_it_goes_on(self, begun: Path, make_result: MakeResult) -> None:
        store = Store.resume(begun, version="1.0", options={"repeats": 1}, wanted=2)
        assert store.file == begun
        assert store.done() == {("cases/a.yaml::a:k=2", "default"): ("eager", "jit")}
        reader = open_record(begun)
        assert reader.interrupted, "it is not finished now"
        store.environment("default", {"jax": "0.7.1"})
        store.add(*make_result("b"))
        store.finish("ok")
        past = open_record(begun)
        assert [r.case.name for r in past.cases] == ["a", "b"]
        assert (past.interrupted, past.wanted) == (False, 3)
        assert [r.case.name for r in reader.cases] == ["a"], "who reads is not disturbed"

    def test_a_case_that_was_edited_is_not_known(
        self, begun: Path, make_case: Callable[..., Case]
    ) -> None:
        store = Store.resume(begun, version="1.0", options={"repeats": 1})
        case = make_case("a")
        assert store.knows(case)
        assert store.knows(make_case("a", line=5, about="Other words."))
        assert not store.knows(make_case("a", operands=case.operands[:1]))
        assert not store.knows(make_case("z"))

    @pytest.mark.parametrize(
        ("how", "message"),
        [
            (
                {"version": "1.1", "options": {"repeats": 1}},
                "was written by another parity (got 1.0; allowed 1.1)\nhint: start a new run",
            ),
            (
                {"version": "1.0", "options": {"repeats": 2, "memory": None, "fail_on": "x"}},
                'was run with other options (fail_on: null then, "x" now; repeats: 1 then, 2 now)'
                "\nhint: give the same ones, or start a new run",
            ),
        ],
    )
    def test_another_run_is_refused(self, begun: Path, how: dict[str, Any], message: str) -> None:
        with pytest.raises(UserError) as caught:
            Store.resume(begun, **how)
        assert str(caught.value) == f"{begun}: {message}"
        assert facts(begun)["verdict"] == "interrupted", "nothing was changed"

    def test_another_environment_is_refused(self, begun: Path) -> None:
        store = Store.resume(begun, version="1.0", options={"repeats": 1})
        with pytest.raises(UserError) as caught:
            store.environment("default", {"jax": "0.7.2", "flax": "0.12"})
        assert str(caught.value) == (
            f"{begun}: environment default is no longer what it was "
            "(flax: none then, 0.12 now; jax: 0.7.1 then, 0.7.2 now)\nhint: start a new run"
        )

    def test_what_is_no_record_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "text").write_text("some text " * 200)
        with pytest.raises(UserError, match=r"text: is not a record \(file is not a database\)"):
            Store.resume(tmp_path / "text", version="1.0")
        with pytest.raises(UserError, match=r"nowhere: no such record"):
            Store.resume(tmp_path / "nowhere", version="1.0")
        assert not (tmp_path / "nowhere").exists()
        assert (tmp_path / "text").read_text() == "some text " * 200


FULL = """
import json, resource, sys
from pathlib import Path
from parity.errors import UserError
from parity.record import opening
from parity.record.store import Store
from parity.record.result import open_record

past = open_record(sys.argv[1])
store = Store(Path(sys.argv[2]), version="1.0")
result = past.cases[0]
outputs = past.cases.outputs(result.case.id, "default")
resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))
added = 0
try:
    while added < 10_000:
        from dataclasses import replace
        case = replace(result.case, id=f"{result.case.id}-{added}")
        store.add(replace(result, case=case), outputs)
        added += 1
except UserError as error:
    print(json.dumps([str(store.file), added, str(error)]))
"""


class TestFullDisk:
    def test_it_is_said_and_what_was_finished_stays(
        self, store: Store, make_result: MakeResult
    ) -> None:
        for number in itertools.count():
            if number == 3:
                pages = store._db.execute("PRAGMA page_count").fetchone()[0]
                store._db.execute(f"PRAGMA max_page_count={pages}")
            try:
                noise = np.random.default_rng(number).standard_normal((2, 5000))
                store.add(*make_result(f"c{number}", base=noise[0], other=noise[1]))
            except UserError as error:
                message = str(error)
                break
        assert message == (
            f"{store.file}: cannot be written: database or disk is full; "
            "what was finished before is in it\n"
            f"hint: make room, then: parity run --resume {store.file}"
        )
        assert len(store.results()) == number >= 3
        store._db.execute("PRAGMA max_page_count=1000000")
        store.add(*make_result(f"c{number}"))
        assert [r.case.name for r in store.results()] == [f"c{n}" for n in range(number + 1)]

    @pytest.mark.skipif(sys.platform == "win32", reason="resource is of Unix")
    def test_a_file_that_may_not_grow(
        self, tmp_path: Path, store: Store, make_result: MakeResult
    ) -> None:
        store.add(*make_result(other=(3.0, 4.0)))
        store.finish("ok")
        command = [sys.executable, "-c", FULL, str(store.file), str(tmp_path / "small")]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
        file, added, message = json.loads(done.stdout)
        assert f"{file}: cannot be written: " in message
        assert 3 < added < 10_000
        past = open_record(file)
        kept = len(past.cases)
        assert kept in (added, added + 1)  # one more where the log took it but the file did not
        assert [r.case.id for r in past.cases][-1].endswith(f"-{kept - 1}")
