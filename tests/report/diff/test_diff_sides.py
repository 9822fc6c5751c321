"""Which environments of which records are compared."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import parity
from parity.errors import NothingSelected, UserError
from parity.report.diff.compare import diff
from parity.report.diff.model import Diff


def only(found: Diff) -> Any:
    (change,) = found.changes
    return change


class TestSides:
    def envs(self, maker: Any, *names: str) -> str:
        case = maker.case()
        results = [
            maker.result(case, {"eager": maker.gave([n])}, environment=name)
            for n, name in enumerate(names)
        ]
        facts = {name: {"jax": f"0.{n}"} for n, name in enumerate(names)}
        return str(maker.record("several", *results, facts=facts, file=True))

    def test_two_environments_of_one_record(self, maker: Any) -> None:
        record = self.envs(maker, "old", "new")
        found = diff(record)
        assert (found.a.environment, found.b.environment) == ("old", "new")
        assert [(f.name, f.a, f.b) for f in found.facts] == [("jax", "0.0", "0.1")]
        assert only(found).distance.worst[0].b == 1.0
        back = diff(record, a_env="new")
        assert (back.a.environment, back.b.environment) == ("new", "old")

    def test_two_of_several(self, maker: Any) -> None:
        record = self.envs(maker, "x", "y", "z")
        assert only(diff(record, a_env="z", b_env="x")).distance.worst[0].b == 0.0
        assert only(diff(record, record, a_env="z", b_env="x")).distance.worst[0].a == 2.0

    @pytest.mark.parametrize(
        ("names", "second", "how", "message"),
        [
            (
                ["x", "y", "z"], False, {},
                "has 3 environments (x, y, z); which two are to be compared?\n"
                "hint: --a x --b y chooses two",
            ),
            (["x", "y", "z"], False, {"a_env": "x"}, "has 3 environments (x, y, z); which two"),
            (
                ["x"], False, {},
                "has one environment, x, and there is no second record\n"
                "hint: parity diff A B compares two records",
            ),
            (
                ["x", "y"], False, {"a_env": "x", "b_env": "x"},
                "A and B are the same environment, x\nhint: it has x, y",
            ),
            (
                ["xx", "yy"], False, {"a_env": "xxx"},
                "unknown environment (got xxx; allowed xx, yy)\nhint: did you mean 'xx'?",
            ),
            (
                ["x", "y"], True, {"a_env": "x"},
                "has 2 environments (x, y); which one is to be compared?\n"
                "hint: --b x chooses it",
            ),
        ],
    )  # fmt: skip
    def test_what_is_not_clear_is_an_error(
        self, maker: Any, names: Any, second: bool, how: Any, message: str
    ) -> None:
        record = self.envs(maker, *names)
        with pytest.raises(UserError) as caught:
            diff(record, record if second else None, **how)
        assert str(caught.value).startswith(f"{record}: {message}")

    def test_an_empty_record(self, maker: Any) -> None:
        record = maker.record("empty", wanted=3, file=True)
        with pytest.raises(UserError, match="has no results"):
            diff(record, record)

    def test_nothing_in_common(self, maker: Any) -> None:
        a, b = (
            maker.record(n, maker.result(maker.case(n), {"eager": maker.gave([1])})) for n in "xy"
        )
        with pytest.raises(NothingSelected, match="A and B have no case in common"):
            diff(a, b)
        with pytest.raises(NothingSelected, match=r"A and B have no case in 'z\*' in common"):
            diff(a, a, case="z*")
        with pytest.raises(NothingSelected, match="A and B have no row of jti"):
            diff(a, a, paths=["jti"])

    def test_cases_of_one_side_and_selections(self, maker: Any) -> None:
        def record(names: str, value: float) -> Any:
            made = {"eager": maker.gave([1]), "jit": maker.gave([value])}
            return maker.record(names, *(maker.result(maker.case(n), made) for n in names))

        a, b = record("uvw", 1), record("xvw", 2)
        found = diff(a, b)
        assert (found.only_a, found.only_b) == (("cases/u.yaml::u",), ("cases/x.yaml::x",))
        assert [c.case for c in found.changes] == ["cases/v.yaml::v", "cases/w.yaml::w"]
        chosen = diff(a, b, case="cases/v.yaml", paths=["jit"])
        assert [c.case for c in chosen.changes] == ["cases/v.yaml::v"]
        assert (chosen.unchanged, chosen.only_a, chosen.only_b) == (0, (), ())

    def test_facts_that_are_lists(self, maker: Any) -> None:
        case, made = maker.case(), {"eager": maker.gave([1])}
        a, b = (
            maker.record(str(n), maker.result(case, made), facts={"default": of}, version=f"1.{n}")
            for n, of in enumerate(
                (
                    {"jax": "1", "cpu": "x86_64 avx amx", "XLA_FLAGS": "--b"},
                    {"jax": "1", "cpu": "x86_64 avx fma"},
                )
            )
        )
        found = {fact.name: fact for fact in diff(a, b).facts}
        assert list(found) == ["cpu", "XLA_FLAGS", "parity"]
        assert (found["cpu"].removed, found["cpu"].added) == (("amx",), ("fma",))
        assert (found["XLA_FLAGS"].removed, found["XLA_FLAGS"].b) == (("--b",), None)
        assert (found["parity"].a, found["parity"].b) == ("1.0", "1.1")

    def test_runs_in_memory_and_the_public_name(self, maker: Any) -> None:
        case = maker.case()
        runs = [
            parity.open_record(maker.record(str(n), maker.result(case, made), file=True))
            for n, made in enumerate({"eager": maker.gave([v])} for v in (1, 2))
        ]
        assert only(parity.diff(*runs)).distance is not None
        loose = [replace(run, cases=tuple(run.cases), record=None) for run in runs]
        found = parity.diff(*loose)
        assert isinstance(found, parity.Diff)
        assert only(found).distance.worst[0].b == 2.0
        assert (found.a.record, found.a.parity, found.a.program("0")) == (None, "", None)
