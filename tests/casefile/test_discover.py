"""Finding case files in folders."""

from pathlib import Path

import pytest

from parity.casefile.load import discover
from parity.errors import UserError


@pytest.fixture
def tree(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("b/z.yaml", "b/a.yml", "a.yaml", "b/c/d.yaml", "b/notes.txt", "b/.hidden/x.yaml"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return tmp_path


def test_folders_are_searched_and_sorted(tree):
    assert discover(["b"]) == [Path("b/a.yml"), Path("b/c/d.yaml"), Path("b/z.yaml")]


def test_files_are_taken_as_they_are_and_named_once(tree):
    assert discover(["b/notes.txt", "b", tree / "b" / "z.yaml", "b/c"]) == [
        Path("b/notes.txt"),
        Path("b/a.yml"),
        Path("b/c/d.yaml"),
        Path("b/z.yaml"),
    ]


def test_a_loop_of_links_ends(tree):
    (tree / "b" / "c" / "back").symlink_to(tree / "b", target_is_directory=True)
    (tree / "b" / "self").symlink_to("self")
    assert discover(["b"]) == [Path("b/a.yml"), Path("b/c/d.yaml"), Path("b/z.yaml")]


def test_a_link_to_a_folder_elsewhere_is_followed(tree):
    (tree / "e").mkdir()
    (tree / "e" / "link").symlink_to(tree / "b" / "c", target_is_directory=True)
    assert discover(["e"]) == [Path("e/link/d.yaml")]


@pytest.mark.parametrize("name", ["missing", "self"])
def test_a_path_that_is_not_there(tree, name):
    (tree / "self").symlink_to("self")
    with pytest.raises(UserError) as caught:
        discover([name])
    assert str(caught.value) == f"{name}: no such file or folder\nhint: parity run cases/"


def test_a_folder_without_case_files(tree):
    (tree / "empty").mkdir()
    with pytest.raises(UserError) as caught:
        discover(["b", "empty"])
    assert str(caught.value) == (
        "empty: no case file in this folder\n"
        "hint: a case file ends in .yaml or .yml; parity new prints a template"
    )
