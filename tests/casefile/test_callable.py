"""Python functions as case files name them; nothing of them is imported."""

import hashlib
import sys

import pytest

from parity.record.cases import case_as_dict, case_from_dict

OPERANDS = """\
operands:
  q: {shape: [2, 3], dtype: float32, draw: normal}
  n: {shape: [2], dtype: int32, draw: integers}
"""
CALLABLE = f"about: A function.\nprogram: {{callable: 'attention:scores'}}\n{OPERANDS}"


def sha256(text):
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.fixture
def write(folder):
    def written(**files):
        for name, text in files.items():
            (folder.path / f"{name}.py").write_text(text)

    return written


def test_what_travels(folder, write):
    write(attention="def scores(q, n): ...\n")
    text = CALLABLE.replace(
        "scores'",
        "scores', arguments: {axes: [0, [1]], dtype: bfloat16, f: {callable: 'jax.nn:relu'}}",
    )
    (case,) = folder.cases(text)
    assert case.program.op == "callable"
    assert case.program.attributes == {
        "callable": "attention:scores",
        "arguments": {"axes": (0, (1,)), "dtype": "bfloat16", "f": {"callable": "jax.nn:relu"}},
        "folder": str(folder.path),
        "sources": {"attention.py": sha256("def scores(q, n): ...\n")},
    }
    assert [spec.name for spec in case.program.inputs()] == ["q", "n"]


def test_nothing_is_run(folder, write):
    marker = folder.path / "marker"
    write(attention=f"open({str(marker)!r}, 'w')\nraise SystemExit\n")
    folder.cases(CALLABLE)
    assert not marker.exists()
    assert "attention" not in sys.modules


def test_what_it_imports_from_beside_is_part_of_it(folder, write):
    write(
        attention="import helper, numpy\ndef scores(q, n):\n    from inner import f\n",
        helper="import jax.numpy as jnp, deep.er\n",
        inner="import attention\n",
        deep="",
        stranger="",
        jax="raise SystemExit\n",
    )
    (case,) = folder.cases(CALLABLE)
    assert list(case.program.attributes["sources"]) == [
        "attention.py",
        "deep.py",
        "helper.py",
        "inner.py",
    ]


@pytest.fixture
def package(folder):
    for file in ("__init__", "k", "inner/__init__", "inner/g", "nested/h"):
        path = folder.path / "sub" / f"{file}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"name = '{file}'\n")


INNER = ["sub/inner/__init__.py", "sub/inner/g.py", "sub/k.py", "sub/nested/h.py"]
FILES = ["sub/__init__.py", *INNER]


@pytest.mark.parametrize("name", ["sub:f", "sub.k:f", "sub.inner.g:f", "sub.inner:f"])
def test_of_a_package_every_file_counts(folder, package, name):
    (case,) = folder.cases(CALLABLE.replace("attention:scores", name))
    sources = case.program.attributes["sources"]
    assert list(sources) == FILES
    assert sources["sub/k.py"] == sha256("name = 'k'\n")


def test_a_package_is_imported_and_imports(folder, write, package):
    write(attention="from sub.inner import g\n", helper="")
    (folder.path / "sub" / "k.py").write_text("import helper, attention\n")
    (case,) = folder.cases(CALLABLE)
    assert list(case.program.attributes["sources"]) == ["attention.py", "helper.py", *FILES]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "sub.kk:f",
            "2:21: program.callable names no module (got 'sub.kk'; allowed sub, sub.inner, "
            "sub.inner.g, sub.k, sub.nested.h)\nhint: did you mean 'sub.k'?",
        ),
        (
            "plain.h:f",
            "2:21: program.callable: plain is no package: it has no __init__.py (got 'plain.h')\n"
            "hint: add an empty plain/__init__.py",
        ),
        (
            "escape.k:f",
            "2:21: program.callable: escape/__init__.py leads outside the case file's folder\n"
            "hint: put the file itself beside the case file",
        ),
        (
            "suub:f",
            "2:21: program.callable names no module (got 'suub'; suub.py does not exist)\n"
            "hint: did you mean 'sub'?",
        ),
    ],
)
def test_packages_that_are_none(folder, package, tmp_path_factory, monkeypatch, name, message):
    monkeypatch.syspath_prepend(folder.path)  # as `python -m parity` has it
    outside = tmp_path_factory.mktemp("outside")
    for path in (outside / "__init__.py", outside / "k.py"):
        path.touch()
    (folder.path / "escape").symlink_to(outside)
    (folder.path / "plain").mkdir()
    (folder.path / "plain" / "h.py").touch()
    assert folder.error(CALLABLE.replace("attention:scores", name)) == message


def test_another_text_is_another_case(folder, write):
    write(attention="import helper\n", helper="a = 1\n")
    (before,) = folder.cases(CALLABLE)
    write(helper="a = 2\n")
    (after,) = folder.cases(CALLABLE)
    assert case_as_dict(before) != case_as_dict(after)


def test_another_folder_is_no_other_case(folder, write):
    write(attention="")
    (case,) = folder.cases(CALLABLE)
    flat = case_as_dict(case)
    assert str(folder.path) not in repr(flat["program"])
    assert case_from_dict(flat) == case


def test_an_installed_module_has_no_file(folder):
    (case,) = folder.cases(CALLABLE.replace("attention:scores", "somewhere.inner:Class.method"))
    assert case.program.attributes["sources"] == {}


def test_a_file_that_cannot_be_parsed_is_the_environments_to_judge(folder, write):
    write(attention="def scores(:\n")
    (case,) = folder.cases(CALLABLE)
    assert list(case.program.attributes["sources"]) == ["attention.py"]


def test_names_of_callables_in_ids(folder):
    text = CALLABLE + "sweep: {program.callable: ['a.b:f', 'a.b:g']}\n"
    assert folder.ids(text) == ["dot:callable=a.b.f", "dot:callable=a.b.g"]


def test_wide_dtypes_in_arguments_need_x64(folder):
    wide = CALLABLE.replace("scores'", "scores', arguments: {how: [{dtype: float64}]}")
    assert folder.cases(wide)[0].program.x64
    assert not folder.cases(CALLABLE)[0].program.x64


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "attenton:f",
            "2:21: program.callable names no module (got 'attenton'; attenton.py does not "
            "exist)\n"
            "hint: did you mean 'attention'?",
        ),
        (
            "../attention:f",
            "2:21: program.callable is no name of a callable (got '../attention:f'; allowed "
            "module:name, such as attention:scores or jax.nn:gelu)\n"
            "hint: name the module alone: its file NAME.py stands beside the case file",
        ),
        (
            "attention",
            "2:21: program.callable is no name of a callable (got 'attention'; allowed "
            "module:name, such as attention:scores or jax.nn:gelu)",
        ),
        (
            "attention.py:f",
            "2:21: program.callable: attention.py is no package (got 'attention.py'; allowed "
            "'attention')",
        ),
        (
            "random:f",
            "2:21: program.callable: random.py has the name of a module that is there already\n"
            "hint: rename the file",
        ),
        (
            "escape:f",
            "2:21: program.callable: escape.py leads outside the case file's folder\n"
            "hint: put the file itself beside the case file",
        ),
        (
            "importer:f",
            "2:21: program.callable: escape.py leads outside the case file's folder\n"
            "hint: put the file itself beside the case file",
        ),
    ],
)
def test_wrong_names(folder, write, tmp_path_factory, name, message):
    write(attention="", random="", importer="import escape\n")
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "escape.py"
    elsewhere.touch()
    (folder.path / "escape.py").symlink_to(elsewhere)
    assert folder.error(CALLABLE.replace("attention:scores", name)) == message


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "scores'",
            "scores', arguments: {day: 2020-01-01}",
            "2:58: program.arguments.day is no plain data (got 2020-01-01; allowed numbers, "
            "strings)",
        ),
        (
            "scores'",
            "scores', arguments: {f: {callable: relu}}",
            "2:67: program.arguments.f.callable is no name of a callable (got 'relu'; allowed "
            "module:name, such as jax.nn:gelu)",
        ),
        (
            "scores'",
            "scores', arguments: {a b: 1}",
            "2:58: program.arguments.a b is no keyword (got 'a b'; allowed letters, digits, _)",
        ),
        (
            "program: {",
            "op: dot_general\nprogram: {",
            "3:1: program cannot stand beside op\nhint: keep one of the two",
        ),
        (
            "program: {",
            "attributes: {a: 1}\nprogram: {",
            "2:1: attributes stands beside op only\nhint: put them under program",
        ),
        (
            "program: {callable: 'attention:scores'}\n",
            "",
            "1:1: missing key 'op'\n"
            "hint: op: the op, one of casefile/ops; or write program, flax or steps",
        ),
        (
            "program: {callable: 'attention:scores'}\n",
            "program: attention\n",
            "2:10: program is not a mapping (got 'attention'; allowed a mapping)",
        ),
        (
            "program: {callable",
            "program: {calable",
            "2:11: unknown key 'calable' in program (got calable; allowed callable, arguments) "
            "(and 1 more)\nhint: did you mean 'callable'?",
        ),
    ],
)
def test_wrong_fields(folder, old, new, message):
    assert folder.error(CALLABLE.replace(old, new)) == message
