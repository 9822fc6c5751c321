"""Entries put into case files, changed and taken out; every other character stays."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from parity.casefile.problem import Problem
from parity.casefile.splice import with_entry, with_fields, without_entries

ENTRY = {"path": "jit", "where": {"k": ["a", 1]}, "grade": "divergent", "because": "it, is: so"}
IN_BLOCK = """\
  - path: jit
    where: {k: [a, 1]}
    grade: divergent
    because: "it, is: so"
"""
IN_FLOW = '{path: jit, where: {k: [a, 1]}, grade: divergent, because: "it, is: so"}'


def read(text: str) -> dict[str, Any]:
    """What another parser than ours makes of a text."""
    loaded: dict[str, Any] = YAML(typ="safe", pure=True).load(text)
    return loaded


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("name: x\n", f"name: x\nexpect:\n{IN_BLOCK}"),
        ("name: x", f"name: x\nexpect:\n{IN_BLOCK.rstrip()}"),
        ("name: x\n# that is all\n", f"name: x\n# that is all\nexpect:\n{IN_BLOCK}"),
        ("name: x\n\n\n", f"name: x\nexpect:\n{IN_BLOCK}\n\n"),
        ("---\nname: x\n...\n", f"---\nname: x\nexpect:\n{IN_BLOCK}...\n"),
        (
            "links:\n- a\nname: x\n",
            "links:\n- a\nname: x\nexpect:\n"
            + "".join(line[2:] + "\n" for line in IN_BLOCK.splitlines()),
        ),
        ("expect: []  # none\nname: x\n", f"expect:  # none\n{IN_BLOCK}name: x\n"),
        (
            "expect: [  # none\n]\nname: x\n",
            f"expect: [  # none\n{IN_FLOW}]\nname: x\n",
        ),
        ("expect: [{path: a}]\n", f"expect: [{{path: a}}, {IN_FLOW}]\n"),
        (
            "expect: [\n  {path: a},  # a, here\n  {path: b}   # b, too\n]\n",
            f"expect: [\n  {{path: a}},  # a, here\n  {{path: b}},   # b, too\n  {IN_FLOW}\n]\n",
        ),
        (
            "expect: [\n  {path: a},  # a, here\n]\n",
            f"expect: [\n  {{path: a}},  # a, here\n  {IN_FLOW},\n]\n",
        ),
        (
            "expect:\n  - path: a  # why\n    # its own\n  # not its own\nname: x\n",
            f"expect:\n  - path: a  # why\n    # its own\n{IN_BLOCK}  # not its own\nname: x\n",
        ),
        (
            "expect:\n  - path: a\n\n  - path: b\n\nname: x\n",
            f"expect:\n  - path: a\n\n  - path: b\n\n{IN_BLOCK}\nname: x\n",
        ),
        ("expect:\n  - {path: a}\n", f"expect:\n  - {{path: a}}\n  - {IN_FLOW}\n"),
        (
            '{"name": "x"}\n',
            '{"name": "x", "expect": [{"path": "jit", "where": {"k": ["a", 1]}, '
            '"grade": "divergent", "because": "it, is: so"}]}\n',
        ),
    ],
)
def test_an_entry_is_written_as_those_before_it(before: str, after: str) -> None:
    assert with_entry(before, ENTRY) == after
    assert read(after)["expect"][-1] == ENTRY


def test_a_day_is_a_day_and_in_json_a_string() -> None:
    entry = {"path": "jit", "because": "x", "until": datetime.date(2026, 1, 31)}
    assert with_entry("name: x\n", entry).endswith("    until: 2026-01-31\n")
    assert with_entry('{"name": "x"}', entry).endswith('"until": "2026-01-31"}]}')


@pytest.mark.parametrize(
    ("before", "indices", "after"),
    [
        (
            "expect:\n  # of a\n  - path: a\n    # of a\n    because: x  # of a\n"
            "  # of b\n  - path: b\n    # of b\n# of x\nname: x\n",
            [0],
            "expect:\n  # of b\n  - path: b\n    # of b\n# of x\nname: x\n",
        ),
        (
            "expect:\n  - path: a\n  # of b\n  - path: b\n    # of b\n# of x\nname: x\n",
            [1],
            "expect:\n  - path: a\n# of x\nname: x\n",
        ),
        (
            "name: x\n# of x\nexpect:\n  - path: a\n  - path: b\n# of y\ny: 1\n",
            [0, 1],
            "name: x\n# of x\n# of y\ny: 1\n",
        ),
        ("name: x\nexpect:\n  - path: a\n  - path: b", [1], "name: x\nexpect:\n  - path: a"),
        ("name: x\nexpect: [{path: a}]", [0], "name: x"),
        ("expect: [{path: a}, {path: b}, {path: c}]\n", [0, 2], "expect: [{path: b}]\n"),
        (
            "expect: [\n  {path: a},  # a\n  {path: b}  # b\n]\n",
            [1],
            "expect: [\n  {path: a}  # a\n]\n",
        ),
        (
            "expect: [\n  {path: a},  # a, here\n  {path: b},  # b\n]\n",
            [0],
            "expect: [\n  {path: b},  # b\n]\n",
        ),
        ('{"expect": [{"path": "a"}], "name": "x"}', [0], '{"name": "x"}'),
        ('{"name": "x", "expect": [{"path": "a"}]}', [0], '{"name": "x"}'),
        (
            "expect:\r\n  - path: a\r\n  # of b\r\n  - path: b\r\nname: x\r\n",
            [1],
            "expect:\r\n  - path: a\r\nname: x\r\n",
        ),
    ],
)
def test_what_belongs_to_others_stays(before: str, indices: list[int], after: str) -> None:
    assert without_entries(before, indices) == after


@pytest.mark.parametrize(
    ("before", "fields", "after"),
    [
        (
            "expect:\n  - path: a  # why\n    grade: divergent  # now\n",
            {"grade": "inaccurate"},
            "expect:\n  - path: a  # why\n    grade: inaccurate  # now\n",
        ),
        (
            "expect:\n  - path: [a, b]  # why\n    grade: divergent  # now\nname: x\n",
            {"path": "b", "where": {"k": 1}, "link": "l"},
            "expect:\n  - path: b  # why\n    where: {k: 1}\n    grade: divergent  # now\n"
            "    link: l\nname: x\n",
        ),
        (
            "expect:\n  - path:\n      - a\n      - b\n    grade: divergent\n",
            {"path": ["b", "c"]},
            "expect:\n  - path: [b, c]\n    grade: divergent\n",
        ),
        (
            "expect: [{path: a, grade: divergent}]\n",
            {"where": {"k": [1, 2]}, "grade": ["divergent", "inaccurate"]},
            "expect: [{path: a, where: {k: [1, 2]}, grade: [divergent, inaccurate]}]\n",
        ),
        (
            '{"expect": [{"path": "a"}]}',
            {"path": ["a", "b"], "link": "l"},
            '{"expect": [{"path": ["a", "b"], "link": "l"}]}',
        ),
        ("expect:\n  - path: a\n", {"path": "a"}, "expect:\n  - path: a\n"),
    ],
)
def test_fields_are_changed_in_place(before: str, fields: dict[str, Any], after: str) -> None:
    assert with_fields(before, 0, fields) == after


def test_where_no_splice_is_possible_it_says_what_to_write() -> None:
    shared = "known: &known [{path: a}]\nexpect: *known\n"
    with pytest.raises(Problem) as caught:
        with_entry(shared, ENTRY)
    assert caught.value.what == "expect cannot be edited without changing more than that"
    assert caught.value.hint == f"write by hand, under expect: - {IN_FLOW}"
    with pytest.raises(Problem, match="expect is no list that can be edited"):
        without_entries(shared, [0])
    anchored = "expect:\n  - &a {path: a}\nother: *a\n"
    with pytest.raises(Problem) as caught:
        without_entries(anchored, [0])
    assert (caught.value.at, caught.value.hint) == (("expect", 0), "take out by hand: expect[0]")
    with pytest.raises(Problem) as caught:
        with_fields(anchored, 0, {"path": "b"})
    assert caught.value.hint == "write by hand as expect[0]: - {path: b}"
    commented = "expect: [{path: a}, # of a\n  {path: b}, {path: c}]\n"
    with pytest.raises(Problem, match="a comment stands in the way"):
        without_entries(commented, [0])
    assert without_entries(commented, [2]) == "expect: [{path: a}, # of a\n  {path: b}]\n"


def test_an_alias_among_the_entries_is_no_obstacle() -> None:
    text = "known: &known {path: a}\nexpect:\n  - *known\n  - path: b\n"
    new = with_entry(text, ENTRY)
    assert new == text + IN_BLOCK
    assert without_entries(new, [0]) == text.replace("  - *known\n", "") + IN_BLOCK


@dataclass(frozen=True)
class Made:
    """A case file.

    Attributes:
        text: all of it.
        bare: the same without `expect`.
        head: what stands before `expect`.
        tail: what stands after it.
        entries: each with all that is its own.
    """

    text: str
    bare: str
    head: str
    tail: str
    entries: tuple[str, ...]


texts = st.text(st.characters(exclude_categories=["Cs", "Cc", "Co", "Cn"]), min_size=1, max_size=20)
names = st.from_regex(r"[a-z]{1,6}", fullmatch=True)
scalars = st.one_of(
    names, texts, st.integers(-9, 9), st.booleans(), st.none(), st.just(1e-5), st.just("1.0")
)
entries = st.fixed_dictionaries(
    {"path": st.one_of(names, st.lists(names, min_size=1, max_size=3))},
    optional={
        "where": st.dictionaries(
            names, st.one_of(scalars, st.lists(scalars, min_size=1, max_size=3)), min_size=1
        ),
        "grade": st.sampled_from(["divergent", "inaccurate"]),
        "because": texts,
        "until": st.dates(),
    },
)


@st.composite
def files(draw: st.DrawFn) -> Made:
    """Case files in the styles that people write."""
    newline = draw(st.sampled_from(["\n", "\r\n"]))
    head = ["name: x", "about: a  # 'quoted' [and, more", "seed: 0x10"]
    head += draw(st.sampled_from([[], ["# of nothing"], ["links: [a,", "  b]"], ["links:", "- a"]]))
    tail = draw(
        st.sampled_from([[], [""], ["# of the tail"], ["", "batch: 1"], ["batch: 1  # b", "# c"]])
    )
    count = draw(st.integers(0, 3))
    of_its_own = []
    style = draw(st.sampled_from(["block", "flow in block", "inline", "lines"]))
    body: list[str] = []
    indent = " " * draw(st.sampled_from([0, 2, 4]))
    gap = draw(st.booleans())
    for number in range(count):
        reason = f"r{number}"
        if style == "block":
            keys = indent + "  "
            mine = [f"{indent}# above {number}"] if draw(st.booleans()) else []
            mine += [f"{indent}- path: p{number}  # c{number}", f"{keys}because: {reason}"]
            mine += [f"{keys}# below {number}"] if draw(st.booleans()) else []
            body += [""] if gap and number else []
            body += mine
            of_its_own.append(newline.join(mine))
        else:
            mine_flow = f"{{path: p{number}, because: {reason}}}"
            of_its_own.append(mine_flow)
            body.append(mine_flow)
    has_key = count > 0 or draw(st.booleans())
    if style == "flow in block":
        body = [f"{indent}- {one}" for one in body]
    if not has_key:
        lines = [*head, *tail]
    elif count == 0:
        lines = [*head, "expect: []  # none", *tail]
    elif style == "inline":
        lines = [*head, f"expect: [{', '.join(body)}]  # e", *tail]
    elif style == "lines":
        comma = draw(st.sampled_from(["", ","]))
        rows = [f"  {one}{',' if one != body[-1] else comma}  # of, it" for one in body]
        lines = [*head, "expect: [", *rows, "]", *tail]
    else:
        lines = [*head, "expect:  # e", *body, *tail]
    end = draw(st.sampled_from(["", newline, newline * 2]))
    bom = draw(st.sampled_from(["", "\ufeff"]))
    text, bare = (bom + newline.join(each) + end for each in (lines, [*head, *tail]))
    return Made(text, bare, bom + newline.join(head), newline.join(tail) + end, tuple(of_its_own))


@settings(max_examples=40, deadline=None)
@given(files(), entries)
def test_what_is_put_in_comes_out_and_nothing_else_changes(
    made: Made, entry: dict[str, Any]
) -> None:
    before = read(made.text)
    new = with_entry(made.text, entry)
    after = read(new)
    assert after.pop("expect") == [*before.pop("expect", []), entry]
    assert after == before
    again = without_entries(new, [len(made.entries)])
    assert again == (made.text if made.entries else made.bare)


@settings(max_examples=40, deadline=None)
@given(files(), st.data())
def test_what_is_taken_out_leaves_the_rest_as_it_was(made: Made, data: st.DataObject) -> None:
    if not made.entries:
        return
    numbers = range(len(made.entries))
    doomed = data.draw(st.sets(st.sampled_from(numbers), min_size=1))
    new = without_entries(made.text, doomed)
    before, after = read(made.text), read(new)
    left = [entry for number, entry in enumerate(before.pop("expect")) if number not in doomed]
    assert after.pop("expect", []) == left
    assert after == before
    assert ("expect" in new) is bool(left)
    for number, own in enumerate(made.entries):
        assert (own in new) is (number not in doomed)
    assert new.startswith(made.head)
    assert new.endswith(made.tail)
    assert left or new == made.bare


@settings(max_examples=40, deadline=None)
@given(files(), st.data())
def test_a_changed_field_changes_its_entry_only(made: Made, data: st.DataObject) -> None:
    if not made.entries:
        return
    number = data.draw(st.sampled_from(range(len(made.entries))))
    fields = data.draw(entries)
    new = with_fields(made.text, number, fields)
    before, after = read(made.text), read(new)
    before["expect"][number] = {**before["expect"][number], **fields}
    assert after == before
    for other, own in enumerate(made.entries):
        assert other == number or own in new
