"""A comparison as people read it."""

from __future__ import annotations

from typing import Any

import pytest

from parity.report.diff.compare import diff
from parity.report.diff.markdown import diff_markdown
from parity.report.diff.render import render
from parity.report.diff.terminal import diff_lines

F64 = [3.0, 4.0]


class TestTerminal:
    def test_the_whole(self, pair: tuple[str, str]) -> None:
        a, b = pair
        lines = [line.plain for line in diff_lines(diff(a, b), None)]
        assert lines[0].startswith(f"A: environment default of {a}, parity 1.0, 20")
        assert lines[2:10] == [
            "",
            "environment    A      B",
            "  jax          0.7.1  0.10.2",
            "  cpu                 +fma",
            "",
            "worse: 7 rows in 7 cases: 6 newly divergent, 1 newly unsupported; "
            "1 got worse as expected: 1 farther from f64; 1 not comparable; 6 unchanged",
            "",
            "worse: newly divergent: dot_general on jit in 6 cases: compiler changed",
        ]
        assert lines[10:] == [
            "  worst cases/a.yaml::a[jit]  float32[2]",
            "                            A          B",
            "    grade           identical  divergent",
            "    max ulp vs f64          0    1048576",
            "    rms rel vs f64          0        0.1",
            "    faithful              yes         no",
            "    A to B: 1 of 2 elements differ, by at most 0.5 (1048576 ulp)",
            "                 A      B           A           B   A to B",
            "    element  value  value        bits        bits      ulp  f64",
            "    [1]        4.0    4.5  0x40800000  0x40900000  1048576    4",
            "    optimized HLO, - A, + B:",
            "    @@ -1,2 +1,2 @@",
            "     add",
            "    -mul a",
            "    +mul b",
            "  also in",
            "    cases/b.yaml::b",
            "    cases/c.yaml::c",
            "    cases/d.yaml::d",
            "    and 2 more; -v lists them",
            "",
            "worse: newly unsupported: dot_general on nonnative: outcome changed "
            "(removed in JAX 0.7.2)",
            "  cases/lost.yaml::lost[nonnative]  float32[2]",
            "                            A            B",
            "    grade           identical  unsupported",
            "    max ulp vs f64          0",
            "    rms rel vs f64          0",
            "    faithful              yes",
            "    B: unsupported: removed in JAX 0.7.2",
            "",
            "expected: farther from f64: dot_general on native: compiler or runtime changed "
            "(no optimized HLO to compare)",
            "  expected in B, because excess-precision (https://x.org/1)",
            "  cases/known.yaml::known[native]  float32[2]",
            "                            A          B  change",
            "    grade           divergent  divergent",
            "    max ulp vs f64     524288    1048576  2 times",
            "    rms rel vs f64       0.05        0.1  2 times",
            "    faithful               no         no",
            "    A to B: 1 of 2 elements differ, by at most 0.25 (524288 ulp)",
            "                 A      B           A           B  A to B",
            "    element  value  value        bits        bits     ulp  f64",
            "    [1]       4.25    4.5  0x40880000  0x40900000  524288    4",
            "",
            "not comparable: 1 row of 1 case",
            '  case changed: tolerance: null became '
            '{"rtol":0.5,"atol":null,"max_ulp":null,"against":"baseline"}',
            "    cases/other.yaml::other",
            "",
            "only in A: 1 case",
            "    cases/dropped.yaml::dropped",
            "only in B: 1 case",
            "    cases/added.yaml::added",
            "unchanged: 6 rows of 9 cases",
            f"look further: parity diff {a} {b} --a default --b default "
            "--case cases/a.yaml::a --path jit -v",
        ]  # fmt: skip

    def test_verbose_shows_every_change(self, pair: tuple[str, str]) -> None:
        lines = [line.plain for line in diff_lines(diff(*pair), None, verbose=True)]
        assert sum(line.startswith("  cases/") for line in lines) == 8
        assert not any("more" in line for line in lines)

    @pytest.mark.parametrize("width", [40, 80, 200])
    def test_nothing_is_lost_at_any_width(self, pair: tuple[str, str], width: int) -> None:
        found = diff(*pair)
        narrow = [line.plain for line in diff_lines(found, width)]
        words = {w for line in diff_lines(found, None) for w in line.plain.split()}
        assert words - {"-", "A"} <= {w for line in narrow for w in line.split()} | {"-", "A"}
        ids = ("cases/", "look further")
        long = [x for x in narrow if len(x) > width and not any(i in x for i in ids)]
        assert [x for x in long if "/" not in x and '{"rtol"' not in x and width > 40] == []

    def test_nothing_changed(self, maker: Any) -> None:
        made = {"eager": maker.gave([3, 4])}
        a, b = maker.pair(made, made, f64=F64)
        lines = [line.plain for line in diff_lines(diff(a, b), 80)]
        assert "environment: the same on both sides" in lines
        assert "ok: nothing got worse; 1 unchanged" in lines

    def test_long_facts_continue_below(self, maker: Any) -> None:
        case, made = maker.case(), {"eager": maker.gave([1])}
        many = " ".join(f"avx512_{n}" for n in range(12))
        a, b = (
            maker.record(n, maker.result(case, made), facts={"default": {"cpu": f"x86_64{c}"}})
            for n, c in (("A", ""), ("B", f" {many}"))
        )
        lines = [line.plain for line in diff_lines(diff(a, b), 60)]
        at = lines.index("  cpu")
        assert lines[at + 1].startswith("    B  +avx512_0 +avx512_1")
        assert max(len(line) for line in lines[at : at + 4]) <= 60

    def test_an_interrupted_run_says_what_is_missing(self, maker: Any) -> None:
        result = maker.result(maker.case(), {"eager": maker.gave([1])})
        a, b = maker.record("A", result), maker.record("B", result, wanted=5)
        assert "4 results missing" in " ".join(x.plain for x in diff_lines(diff(a, b), None))

    def test_colours_stand_beside_words(self, pair: tuple[str, str]) -> None:
        found = diff(*pair)
        plain = "".join(render(found, "table"))
        painted = "".join(render(found, "table", color=True))
        assert "\x1b[1;31mworse" in painted
        assert "\x1b" not in plain

    def test_markup_in_messages_is_text(self, maker: Any) -> None:
        failed = maker.failed(said="[bold]x[/bold] @team `a|b` <b>", type="E")
        found = diff(*maker.pair({"jit": maker.gave([1])}, {"jit": failed}))
        assert "[bold]x[/bold]" in "".join(render(found, "table", color=True))
        comment = diff_markdown(found)
        assert "- ``B: error at compile: E: [bold]x[/bold] @team `a|b` <b>``\n" in comment

    def test_a_message_cannot_control_the_terminal(self, maker: Any) -> None:
        failed = maker.failed(said="\x1b[31mred \u202etfel")
        found = diff(*maker.pair({"jit": maker.gave([1])}, {"jit": failed}))
        shown = "".join(render(found, "table"))
        assert "B: error at compile: E: ⟨U+001B⟩[31mred ⟨U+202E⟩tfel\n" in shown
        assert shown.replace("\n", "").isprintable()
