from __future__ import annotations

from pathlib import Path

import pytest

from parity.config import Config, load_config, nearest_root
from parity.errors import CaseFileError


def write(folder: Path, text: str) -> Path:
    (folder / "pyproject.toml").write_text(text, encoding="utf-8")
    return folder


def test_without_a_file_the_defaults_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert load_config(tmp_path) == Config(root=tmp_path)


def test_every_key_is_read(tmp_path: Path) -> None:
    write(
        tmp_path,
        '[project]\nname = "x"\n[tool.parity]\ncases = ["a", "b/c.yaml"]\nfail_on = "inaccurate"\n'
        'timeout = 20\nreports = "out"\nmax_cases = 20000\n',
    )
    assert load_config(tmp_path) == Config(
        root=tmp_path,
        cases=("a", "b/c.yaml"),
        fail_on="inaccurate",
        timeout=20.0,
        reports="out",
        max_cases=20_000,
        is_configured=True,
    )


def test_the_nearest_file_counts(tmp_path: Path) -> None:
    write(tmp_path, "[tool.parity]\ntimeout = 1\n")
    inner = tmp_path / "a"
    deep = inner / "b"
    deep.mkdir(parents=True)
    assert nearest_root(deep / "x.yaml") == tmp_path
    write(inner, "")
    assert nearest_root(deep / "x.yaml") == inner
    assert nearest_root(deep) == inner
    assert load_config(deep).timeout == 300.0


def test_without_a_file_the_current_folder_is_the_root_of_what_lies_below(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    (here / "cases").mkdir(parents=True)
    there.mkdir()
    monkeypatch.chdir(here)
    assert nearest_root(here / "cases" / "x.yaml") == here
    assert nearest_root(there / "x.yaml") == there


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "[tool.parity]\nfail-on = 'divergent'\n",
            ":2:1: unknown key in [tool.parity] (got fail-on; allowed cases, fail_on, timeout, "
            "reports, max_cases, memory, keep, environments)\nhint: did you mean fail_on?",
        ),
        (
            "[tool.parity]\ntimeout = 3\nfail_on = 'bad'\n",
            ":3:1: wrong value for fail_on in [tool.parity] (got 'bad'; allowed identical, "
            "equivalent, divergent, inaccurate, mismatched)",
        ),
        (
            "[tool.parity]\ncases = 'cases'\n",
            ":2:1: wrong value for cases in [tool.parity] (got 'cases'; allowed a list of folders "
            "or files)",
        ),
        (
            "[tool.parity]\ntimeout = nan\n",
            ":2:1: wrong value for timeout in [tool.parity] (got nan; allowed a positive number of "
            "seconds)",
        ),
        (
            "[tool.parity]\ntimeout = true\n",
            ":2:1: wrong value for timeout in [tool.parity] (got True; allowed a positive number "
            "of seconds)",
        ),
        (
            "[tool.parity]\nmax_cases = 0\n",
            ":2:1: wrong value for max_cases in [tool.parity] (got 0; allowed a positive integer)",
        ),
        (
            "[tool.parity]\nreports = 3\n",
            ":2:1: wrong value for reports in [tool.parity] (got 3; allowed a folder)",
        ),
        ("[tool]\nparity = 3\n", ": tool.parity is not a table (got 3)"),
        (
            "[tool.parity\n",
            ":1:13: is not valid TOML: Expected ']' at the end of a table declaration",
        ),
    ],
)
def test_a_mistake_is_placed(tmp_path: Path, text: str, message: str) -> None:
    write(tmp_path, text)
    with pytest.raises(CaseFileError) as caught:
        load_config(tmp_path)
    assert str(caught.value) == f"{tmp_path / 'pyproject.toml'}{message}"


def test_bytes_that_are_not_utf8_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(CaseFileError, match=r"is not UTF-8 \(invalid start byte\)"):
        load_config(tmp_path)
