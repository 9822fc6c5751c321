"""Values of options: names with a hint, numbers of bytes with units."""

from __future__ import annotations

from pathlib import Path

import pytest

from parity.commands.values import Bytes
from parity.errors import UserError

from .project import Invoke


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1000", 1000),
        ("512M", 512 * 1024 * 1024),
        ("8GB", 8 * 1024**3),
        ("1.5GiB", 3 * 1024**3 // 2),
        ("2 k", 2048),
        ("1T", 1024**4),
    ],
)
def test_bytes_have_units(text: str, value: int) -> None:
    assert Bytes().convert(text, None, None) == value


@pytest.mark.parametrize("text", ["8X", "", "G", "-1", "1e9", "8 GBs"])
def test_what_is_no_number_of_bytes(text: str) -> None:
    with pytest.raises(UserError, match=r"wrong the value \(got .*allowed a number of bytes"):
        Bytes().convert(text, None, None)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "--fail-on", "divergant"], "unknown --fail-on (got divergant; allowed identical,"),
        (["run", "--fail-on", "divergant"], "\nhint: did you mean 'divergent'?\n"),
        (["run", "--format", "tabel"], "\nhint: did you mean 'table'?\n"),
        (["show", "x", "--format", "jsn"], "\nhint: did you mean 'json'?\n"),
        (["diff", "x", "y", "--format", "cvs"], "\nhint: did you mean 'csv'?\n"),
        (["run", "--keep", "zzz"], "unknown --keep (got zzz; allowed all, non-identical, none)\n"),
        (["run", "--memory", "8XB"], "wrong --memory (got 8XB; "),
        (["run", "--memory", "8XB"], "\nhint: such as 512M or 8G\n"),
        (["run", "cases/fien.yaml"], "\nhint: did you mean 'cases/fine.yaml'?\n"),
        (["run", "notes.md"], "\nhint: a case file ends in .yaml or .yml; is this one?\n"),
        (
            ["run", "cases/fine.yaml", "--out", "notes.md"],
            "error: notes.md: is a file\nhint: -",
        ),
    ],
)
def test_mistakes(here: Path, invoke: Invoke, arguments: list[str], message: str) -> None:
    Path("notes.md").write_text("# A: title\n\nNotes: a: b\n")
    code, out, err = invoke(*arguments)
    assert (code, out) == (2, "")
    assert message in err
