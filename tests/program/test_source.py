"""Code beside a case file: imported anew, as it was, and with nothing left of it."""

import hashlib
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from parity.program import source
from parity.program.build import build
from parity.program.outputs import ProgramError

X = {"x": ((2,), "float32")}
PLAIN = "def f(x): return 2 * x\ndef _hidden(x): return x\nSCALE = 2\nfrom math import sqrt\n"


def run(program, *arrays):
    outputs = program.function(*map(jnp.asarray, arrays))
    return dict(zip(program.outputs, outputs, strict=True))


def refused(spec):
    with pytest.raises(ProgramError) as caught:
        build(spec)
    return str(caught.value)


def test_a_file_is_imported_anew_for_each_program(spec):
    text = "import jax\ncalls = []\ndef f(x):\n    calls.append(1)\n    return x + len(calls)\n"
    for _ in range(2):
        program = build(spec(text, "counter:f", X))
        np.testing.assert_array_equal(run(program, np.float32([0, 1]))["out"], [1, 2])


def test_nothing_is_left_of_it(spec, tmp_path):
    build(spec(PLAIN, "plain:f", X))
    assert "plain" in sys.modules
    source.use({})
    assert "plain" not in sys.modules
    with pytest.raises(ProgramError, match="there is no module plain"):
        source.named("plain:f")
    assert not (tmp_path / "__pycache__").exists()


def test_the_same_name_in_another_folder_is_another_module(spec, tmp_path):
    first = spec("def f(x): return x + 1\n", "same:f", X)
    np.testing.assert_array_equal(run(build(first), np.zeros(2, np.float32))["out"], [1, 1])
    second = spec("def f(x): return x + 2\n", "same:f", X)
    np.testing.assert_array_equal(run(build(second), np.zeros(2, np.float32))["out"], [2, 2])


def test_an_edited_file_is_refused(spec, tmp_path):
    known = spec(PLAIN, "plain:f", X)
    (tmp_path / "plain.py").write_text(PLAIN + "\n")
    assert refused(known) == "plain.py was changed after its case file was loaded: run it again"


def test_only_what_the_case_lists_is_found(spec, tmp_path):
    (tmp_path / "unlisted.py").touch()
    known = spec("import unlisted\ndef f(x): return x\n", "plain:f", X)
    with pytest.raises(ModuleNotFoundError, match="No module named 'unlisted'"):
        build(known)


def test_nothing_else_of_the_folder_is_found(spec, tmp_path, monkeypatch):
    """Not even where PYTHONPATH leads there; what stands in it is found again afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), "", *sys.path])
    before = list(sys.path)
    (tmp_path / "unlisted.py").touch()
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "unlisted.py").touch()
    for name in ("unlisted", "inner.unlisted"):
        text = f"import importlib\nimportlib.import_module({name!r})\ndef f(x): return x\n"
        with pytest.raises(ModuleNotFoundError, match="No module named"):
            build(spec(text, "plain:f", X))
    source.use({})
    assert sys.path == before


@pytest.fixture
def package(tmp_path):
    """The attributes of `sub.inner.g:g`, where sub/ is a package of the folder."""
    texts = {
        "sub/__init__.py": "from sub.k import K\n",
        "sub/k.py": "K = 3\n",
        "sub/inner/__init__.py": "",
        "sub/plain/deep/h.py": "from sub import K\n",
        "sub/inner/g.py": "import importlib\nfrom ..k import K\n"
        "def g(x): return K * x\ndef h(x): importlib.import_module('sub.late')\n",
    }
    for file, text in texts.items():
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(text)
    sources = {file: hashlib.sha256(text.encode()).hexdigest() for file, text in texts.items()}
    yield {"folder": str(tmp_path), "sources": sources}
    source.use({})


def test_packages_are_found_and_forgotten(package):
    source.use(package)
    assert source.named("sub.inner.g:g")(2) == 6
    assert source.named("sub:K") == source.named("sub.plain.deep.h:K") == 3
    source.use({})
    assert not [name for name in sys.modules if name.partition(".")[0] == "sub"]


@pytest.mark.parametrize("file", ["sub/__init__.py", "sub/k.py"])
def test_an_edited_file_of_a_package_is_refused(package, tmp_path, file):
    (tmp_path / file).write_text("K = 4\n")
    source.use(package)
    with pytest.raises(ProgramError) as caught:
        source.named("sub.inner.g:g")
    message = f"{file} was changed after its case file was loaded: run it again"
    assert str(caught.value) == message


def test_a_file_that_came_later_is_not_found(package, tmp_path):
    (tmp_path / "sub" / "late.py").touch()
    source.use(package)
    function = source.named("sub.inner.g:h")
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'sub\.late'") as caught:
        function(1)
    assert source.raised_in(caught.value) == "sub/inner/g.py:4 in h"


def test_what_is_missing_in_a_package_is_said_with_its_file(package):
    source.use(package)
    with pytest.raises(ProgramError) as caught:
        source.named("sub.inner.g:gg")
    assert str(caught.value) == "sub/inner/g.py has no 'gg' (it has g, h); did you mean 'g'?"


def test_where_an_exception_was_raised(spec):
    text = "import jax.numpy as jnp\ndef f(x):\n    def g():\n        return x @ jnp.ones(3)\n"
    program = build(spec(text + "    return g()\n", "plain:f", X))
    with pytest.raises(TypeError) as caught:
        run(program, np.zeros(2, np.float32))
    assert source.raised_in(caught.value) == "plain.py:4 in g"
    assert source.raised_in(ValueError()) == ""


def test_operands_that_a_function_does_not_take(spec):
    program = build(spec("def f(x, y, z): return x\n", "plain:f", {**X, "y": ((), "float32")}))
    with pytest.raises(ProgramError) as caught:
        run(program, np.zeros(2, np.float32), np.zeros((), np.float32))
    assert str(caught.value) == (
        "plain:f does not take what it is passed: missing a required argument: 'z' "
        "(the operands are, in order: x, y)"
    )


def test_installed_modules_need_no_file(spec):
    program = build(spec(None, "jax.numpy:negative", X))
    np.testing.assert_array_equal(run(program, np.float32([1, 2]))["out"], [-1, -2])


def test_arguments_name_objects(spec):
    text = "def f(x, *, g, axes, inner): return g(x).astype(inner['to'])[axes[0]]\n"
    arguments = {"g": {"callable": "jax.numpy:square"}, "axes": [1], "inner": {"to": "float16"}}
    program = build(spec(text, "plain:f", X, attributes={"arguments": arguments}))
    out = run(program, np.float32([3, 4]))["out"]
    assert (out, out.dtype) == (16, jnp.float16)


@pytest.mark.parametrize(
    ("text", "name", "message"),
    [
        (PLAIN, "plain:g", "plain.py has no 'g' (it has f)"),
        (
            "def relu(x): ...",
            "plain:rleu",
            "plain.py has no 'rleu' (it has relu); did you mean 'relu'?",
        ),
        ("", "plain:f", "plain.py has no 'f' (it has no functions)"),
        (PLAIN, "plain:SCALE", "plain:SCALE is no function (got int)"),
        (PLAIN, "plain:f.g", "f has no 'g'"),
        ("import sys; sys.exit(3)", "plain:f", "importing plain called sys.exit(3)"),
        (
            "import jax; jax.config.update('jax_enable_x64', not jax.config.jax_enable_x64)",
            "plain:f",
            "plain sets jax_enable_x64: write x64: true in the case file",
        ),
        (None, "jax.nn:geluu", "jax.nn has no 'geluu'; did you mean 'gelu'?"),
        (
            None,
            "jax.nowhere:f",
            "there is no module jax.nowhere in jax",
        ),
        (
            None,
            "flax.lnen:Dense",
            "there is no module flax.lnen in flax; did you mean 'flax.linen'?",
        ),
        (
            None,
            "nowhere.inner:f",
            "there is no module nowhere: neither nowhere.py nor nowhere/__init__.py is beside the "
            "case file, nor is it installed here",
        ),
    ],
)
def test_what_is_not_there(spec, text, name, message):
    before = jax.config.jax_enable_x64
    assert refused(spec(text, name, X)) == message
    assert jax.config.jax_enable_x64 == before


def test_leaving_is_an_error_like_others(spec):
    program = build(spec("import sys\ndef f(x): sys.exit('bye')\n", "plain:f", X))
    with pytest.raises(ProgramError, match=r"plain:f called sys.exit\('bye'\)"):
        program.function(np.ones(2, np.float32))


def test_settings_hold_for_one_program(spec):
    text = "import jax\njax.config.update('jax_default_matmul_precision', 'high')\n" + PLAIN
    build(spec(text, "plain:f", X))
    assert source.changed_settings() == {"jax_default_matmul_precision": "high"}
    build(spec(PLAIN, "other:f", X))
    assert source.changed_settings() == {}
    assert jax.config.jax_default_matmul_precision is None
