"""`parity diff`."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from parity import cli
from parity.commands.diff import FORMATS

Invoke = Callable[..., tuple[int, str, str]]


@pytest.fixture
def invoke(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Invoke:
    monkeypatch.delenv("COLUMNS", raising=False)

    def call(*arguments: str) -> tuple[int, str, str]:
        code = cli.invoke(arguments)
        out, err = capsys.readouterr()
        return code, out, err

    return call


class TestCommand:
    def test_exit_codes(self, invoke: Invoke, pair: tuple[str, str]) -> None:
        a, b = pair
        assert invoke("diff", a, b)[0] == 1
        assert invoke("diff", a, b, "--fail-on", "none")[0] == 0
        assert invoke("diff", a, b, "--path", "native")[0] == 0
        assert invoke("diff", a, b, "--path", "native", "--fail-on", "any")[0] == 0
        assert invoke("diff", a, b, "--fail-on", "newly-mismatched")[0] == 0
        assert invoke("diff", b, a, "--fail-on", "recovered,fixed")[0] == 1

    @pytest.mark.parametrize("fail_on", ["worse", "any", "closer-to-f64,farther-from-f64"])
    def test_what_is_expected_never_fails(
        self, invoke: Invoke, pair: tuple[str, str], fail_on: str
    ) -> None:
        code, out, _ = invoke("diff", *pair, "--path", "native", "--fail-on", fail_on)
        assert code == 0
        (verdict,) = (line for line in out.splitlines() if line.startswith("ok: "))
        assert " as expected: 1 farther from f64; " in verdict

    def test_fixed_and_back(self, invoke: Invoke, pair: tuple[str, str]) -> None:
        a, b = pair
        code, out, err = invoke("diff", b, a, "--format", "json")
        assert (code, err) == (0, "")
        found = {change["direction"] for change in json.loads(out)["changes"]}
        assert found == {"fixed", "recovered", "closer-to-f64"}

    @pytest.mark.parametrize("kind", FORMATS)
    def test_formats(self, invoke: Invoke, pair: tuple[str, str], kind: str) -> None:
        code, out, err = invoke("diff", *pair, "--format", kind)
        assert (code, err) == (1, "")
        assert out.endswith("\n")
        assert "cases/a.yaml::a" in out

    @pytest.mark.parametrize(
        ("arguments", "code", "message"),
        [
            (["{a}", "{a}"], 2, "error: {a}: is both A and B (environment default)\nhint: parity "),
            (["{a}"], 2, "error: {a}: has one environment, default, and there is no second"),
            (["{a}", "nowhere"], 2, "error: nowhere: no such record\n"),
            (["{a}", "{b}", "--fail-on", "worst"], 2, "error: unknown direction (got worst; "),
            (["{a}", "{b}", "--case", "z*"], 5, "error: A and B have no case in 'z*' in common\n"),
            (["{a}", "{b}", "--path", "jti"], 5, "error: A and B have no row of jti\nhint: did"),
            (["{a}", "{b}", "--a", "x"], 2, "error: {a}: unknown environment (got x; allowed "),
            ([], 2, "error: Missing argument 'RECORD_A'\nhint: see parity diff --help\n"),
        ],
    )
    def test_mistakes(
        self,
        invoke: Invoke,
        pair: tuple[str, str],
        arguments: list[str],
        code: int,
        message: str,
    ) -> None:
        a, b = pair
        found, out, err = invoke("diff", *(x.format(a=a, b=b) for x in arguments))
        assert (found, out) == (code, "")
        assert err.startswith(message.format(a=a, b=b))
