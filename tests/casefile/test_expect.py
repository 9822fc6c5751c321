"""Entries of `expect`: to which cases they apply, and what is refused."""

import datetime

import pytest


def entry(text):
    return f"expect:\n  - {{{text}}}\n"


def test_everything_an_entry_can_say(folder, dot):
    (case,) = folder.cases(
        dot
        + entry(
            "path: [jit, eager], output: out, outcome: error, stage: trace, match: 'a.*b', "
            "because: it is known, link: https://example.org, until: 2026-01-01, "
            "when: {jax: '>=0.7,<0.8', platform: linux}"
        )
    )
    (known,) = case.expect
    assert (known.paths, known.outputs, known.grades) == (("jit", "eager"), ("out",), None)
    assert (known.outcome, known.stage, known.match) == ("error", "trace", "a.*b")
    assert (known.because, known.link) == ("it is known", "https://example.org")
    assert known.until == datetime.date(2026, 1, 1)
    assert known.when == {"jax": ">=0.7,<0.8", "platform": "linux"}
    assert known.line == 10


@pytest.mark.parametrize(
    ("where", "applies"),
    [
        ("{}", [True, True, True, True]),
        ("{dtype: float32}", [True, True, False, False]),
        ("{operands.lhs.dtype: [float16, bfloat16]}", [False, False, True, True]),
        ("{transform: vjp}", [False, True, False, True]),
        ("{transform: vjp, dtype: float16}", [False, False, False, True]),
        ("{attributes.precision: high, batch: 3}", [True, True, True, True]),
    ],
)
def test_where_filters_on_axes_and_fields(folder, dot, where, applies):
    text = dot + "  precision: high\ntransforms: [forward, vjp]\ncompute_dtype: float32\n"
    text += "sweep: {operands.lhs.dtype: [float32, float16]}\n"
    text += entry(f"path: jit, grade: [divergent, equivalent], because: x, where: {where}")
    assert [bool(case.expect) for case in folder.cases(text)] == applies


def test_a_path_that_only_some_cases_run(folder, dot):
    text = dot + "sweep: {paths: [[eager], [eager, jit]]}\n"
    text += entry("path: jit, grade: divergent, because: x")
    assert [len(case.expect) for case in folder.cases(text)] == [0, 1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "path: jit, grade: divergent",
            "10:5: missing key 'because' in expect[0]\nhint: because: why",
        ),
        (
            "path: jit, grade: divergnt, because: x",
            "10:24: expect[0].grade[0] is no grade (got 'divergnt'; allowed identical, equivalent, "
            "divergent, inaccurate, mismatched)\nhint: did you mean 'divergent'?",
        ),
        (
            "path: jit, because: x",
            "10:5: expect[0] needs either a grade or an outcome (got neither)\n"
            "hint: grade: divergent, or outcome: unsupported",
        ),
        (
            "path: jit, because: x, grade: divergent, outcome: error",
            "10:5: expect[0] needs either a grade or an outcome (got both)\n"
            "hint: grade: divergent, or outcome: unsupported",
        ),
        (
            "path: jit, because: x, outcome: ok",
            "10:38: expect[0].outcome is no outcome (got 'ok'; allowed unsupported, error, "
            "crashed, timeout, out-of-memory)",
        ),
        (
            "path: jit, because: x, outcome: crashed, stage: run",
            "10:47: expect[0].stage stands beside outcome: error only",
        ),
        (
            "path: jit, because: x, grade: divergent, match: y",
            "10:47: expect[0].match stands beside outcome only",
        ),
        (
            "path: jit, because: x, outcome: error, match: '('",
            "10:52: expect[0].match is not a regular expression "
            "(got '(': missing ), unterminated subpattern at position 0)",
        ),
        (
            "path: jit, because: x, grade: divergent, until: 2025-12-31",
            "10:54: expect[0] expired on 2025-12-31 (today is 2026-01-01)\n"
            "hint: look whether it still comes true; then remove the entry or move the day",
        ),
        (
            "path: jit, because: x, grade: divergent, until: '31.12.2025'",
            "10:54: expect[0].until is not a day (got '31.12.2025'; allowed YYYY-MM-DD)",
        ),
        (
            "path: jit, because: x, grade: divergent, when: {jax: '=>0.7'}",
            "10:59: expect[0].when.jax is not a version specifier "
            "(got '=>0.7'; allowed such as '>=0.7,<0.8')\n"
            "hint: see https://packaging.python.org/specifications/version-specifiers",
        ),
        (
            "path: jit, because: x, grade: divergent, when: {torch: '2'}",
            "10:54: unknown key 'torch' in expect[0].when "
            "(got torch; allowed jax, tensorflow, platform, cpu)",
        ),
        (
            "path: [eager, jitt], because: x, grade: divergent",
            "10:20: expect[0].path is not run "
            "(got 'jitt'; allowed eager, jax2tf-native, jax2tf-nonnative, jit)\n"
            "hint: did you mean 'jit'?",
        ),
        (
            "path: jit, because: x, grade: divergent, where: {compute_dtype: float16}",
            '10:54: expect[0].where matches no case (got {"compute_dtype": "float16"})',
        ),
        (
            "path: jit, because: x, grade: divergent, where: {seeds: 1}",
            "10:55: 'seeds' is neither a sweep axis nor a field (got seeds; allowed transform, "
            "program, flax, steps, op, "
            "operands, attributes, compute_dtype, output_dtype, residual, batch, cotangent, "
            "cotangents, gradients, batched, "
            "tangents, paths, baseline, tolerance, licences, x64, devices, seed, timeout)\n"
            "hint: did you mean 'seed'?",
        ),
    ],
)
def test_an_entry_that_makes_no_sense_is_refused(folder, dot, text, message):
    assert folder.error(dot + entry(text)) == message
