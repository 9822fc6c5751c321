"""What is wrong with a file before its fields are looked at."""

import pytest

from parity.casefile.document import MAX_BYTES, read
from parity.errors import CaseFileError


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", " the file is empty\nhint: parity new prints a template"),
        ("- 1\n", "1:1: a case file is a mapping of fields, such as name: and op:"),
        (
            "a: [1\nb: 2\n",
            "2:2: not YAML: while parsing a flow sequence, expected ',' or ']', but got ':'",
        ),
        (
            "a:\n\tb: 1\n",
            "2:1: not YAML: a tab may not indent a line\nhint: indent with spaces",
        ),
        ("a: *z\n", "1:4: not YAML: found undefined alias 'z'"),
        (
            "a: 1\n---\nb: 1\n",
            "2:1: more than one YAML document\nhint: write one file per case file",
        ),
        (
            "a: 1\nb:\n  c: 1\n  c: 2\n",
            "4:3: duplicate key 'c' (first at line 3, column 3)\nhint: keep one of the two",
        ),
        ("a: 1\nb: x\x01\n", "2:5: a control character is not allowed (got U+0001)"),
        (
            b"a: 1\nb: caf\xe9\n",
            "2:7: not UTF-8 (got byte 0xe9)\nhint: save the file as UTF-8",
        ),
        (
            "a: 1".encode("utf-16"),
            "1:1: not UTF-8 (got byte 0xff)\nhint: save the file as UTF-8",
        ),
        (
            "a: !!python/object/apply:os.system [exit]\n",
            "1:4: tags are not allowed (got !!python/object/apply:os.system)\n"
            "hint: case files are plain data",
        ),
        ("a: !mine 1\n", "1:4: tags are not allowed (got !mine)\nhint: case files are plain data"),
        ("a: &a [1, *a]\n", "1:4: an alias may not stand inside its own anchor"),
        ("[1, 2]: 3\n", "1:1: a key must be a name (got a list or mapping)"),
        (
            "a: 1e999\n",
            "1:4: a number beyond the range of float64 (got 1e999)\n"
            "hint: write .inf if infinity is meant",
        ),
        ("a: " + "[" * 500 + "]" * 500, " lists or mappings are nested too deeply"),
        (
            "a: 1 #" + "x" * MAX_BYTES,
            " larger than 1,048,576 bytes, the most a case file may have\n"
            "hint: put large arrays into an .npy file",
        ),
    ],
)
def test_what_is_not_plain_yaml_is_refused_at_its_place(folder, text, message):
    assert folder.error(text) == message


def test_a_yaml_bomb_is_refused_without_being_expanded(folder):
    lines = ["a0: &a0 [" + "x, " * 10 + "]"]
    lines += [f"a{i}: &a{i} [" + f"*a{i - 1}, " * 10 + "]" for i in range(1, 30)]
    message = folder.error("\n".join(lines))
    assert message.endswith(
        "more than 200,000 nodes once aliases are expanded\n"
        "hint: put large arrays into an .npy file"
    )


def test_anchors_may_be_used_plainly(folder, dot):
    text = dot.replace("{shape: [2, 3]", "&a {shape: [3, 3]").replace(
        "{shape: [3, 4], dtype: float32, draw: normal}", "*a"
    )
    (case,) = folder.cases(text)
    assert [spec.shape for spec in case.program.operands] == [(3, 3), (3, 3)]


def test_yaml_1_2_numbers(folder):
    (folder.path / "dot.yaml").write_text("a: [1e-5, 010, yes, 0x10, .nan]\n")
    first, *rest, last = read(folder.path / "dot.yaml").data["a"]
    assert [first, *rest] == [1e-5, 10, "yes", 16]
    assert last != last


@pytest.mark.parametrize(
    ("name", "reason"), [("missing.yaml", "No such file or directory"), (".", "Is a directory")]
)
def test_an_unreadable_file_says_why(folder, name, reason):
    with pytest.raises(CaseFileError, match=rf"cannot be read \({reason}\)"):
        read(folder.path / name)


def test_a_file_below_the_working_directory_is_shown_relative_to_it(folder):
    (folder.path / "sub").mkdir()
    (folder.path / "sub" / "x.yaml").write_text("- 1\n")
    with pytest.raises(CaseFileError, match=r"^sub/x\.yaml:1:1: a case file"):
        read(folder.path / "sub" / "x.yaml")
