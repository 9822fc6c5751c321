"""Selecting by id, glob and -k; pytest's own -k is the oracle."""

import pytest
from _pytest.mark.expression import Expression

from parity.casefile.load import items, match_ids, select
from parity.errors import NothingSelected, UserError


@pytest.fixture
def chosen(folder, dot):
    text = dot + "sweep: {compute_dtype: [bfloat16, float16]}\n"
    return items(folder.cases(text))


def short(found):
    return [item.id.partition("compute_dtype=")[2] for item in found]


ALL = [
    f"{dtype}[{path}]"
    for dtype in ("bfloat16", "float16")
    for path in ("eager", "jit", "jax2tf-native", "jax2tf-nonnative")
]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("jax2tf-native", ["bfloat16[jax2tf-native]", "float16[jax2tf-native]"]),
        ("JIT and bfloat16", ["bfloat16[jit]"]),
        ("compute_dtype=bfloat16 and (jit or eager)", ["bfloat16[eager]", "bfloat16[jit]"]),
        ("not jax2tf and not bfloat16", ["float16[eager]", "float16[jit]"]),
        ("bfloat16 or jit", [*ALL[:4], "float16[jit]"]),
        ("[jit]", ["bfloat16[jit]", "float16[jit]"]),
        ("nothing", []),
    ],
)
def test_k_selects_by_part_of_the_id(chosen, expression, expected):
    assert short(select(chosen, expression)) == expected


@pytest.mark.parametrize(
    "expression",
    [
        "jit", "not jit", "not not jit", "jit or eager and bfloat16", "(jit or eager) and bfloat16",
        "not (jit or eager)", "not jit and bfloat16", "JAX2TF-Native or float16[eager]",
    ],
)  # fmt: skip
def test_k_agrees_with_pytest(chosen, expression):
    oracle = Expression.compile(expression)
    expected = [
        i for i in chosen if oracle.evaluate(lambda name, i=i: name.lower() in i.id.lower())
    ]
    assert select(chosen, expression) == expected
    assert 0 < len(expected) < len(chosen)


@pytest.mark.parametrize(
    ("expression", "what"),
    [
        ("", "got its end; allowed a name, not, ("),
        ("jit and", "got its end; allowed a name, not, ("),
        ("or jit", "got 'or'; allowed a name, not, ("),
        ("(jit", "allowed )"),
        ("jit eager", "got 'eager'; allowed and, or"),
        ("jit)", "got ')'; allowed and, or"),
        ("a & b", "got '&'"),
    ],
)
def test_an_unreadable_expression_says_what_is_allowed(chosen, expression, what):
    with pytest.raises(UserError) as caught:
        select(chosen, expression)
    assert str(caught.value) == (
        f"-k {expression!r} cannot be read ({what})\n"
        "hint: names joined by and, or, not, such as -k 'conv and not jit'"
    )


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("dot.yaml::dot:compute_dtype=bfloat16[jit]", ["bfloat16[jit]"]),
        ("dot.yaml::dot:compute_dtype=bfloat16", ALL[:4]),
        ("dot.yaml::dot", ALL),
        ("dot.yaml", ALL),
        ("*float16[jit]", ["bfloat16[jit]", "float16[jit]"]),
        ("*=float16[j?t]", ["float16[jit]"]),
        ("*[jax2tf-native]", ["bfloat16[jax2tf-native]", "float16[jax2tf-native]"]),
    ],
)
def test_ids_and_globs(chosen, pattern, expected):
    assert short(match_ids(chosen, [pattern])) == expected


def test_several_patterns_keep_the_order_and_name_each_item_once(chosen):
    assert short(match_ids(chosen, ["*float16[jit]", "*[eager]", "*=bfloat16[jit]"])) == [
        "bfloat16[eager]",
        "bfloat16[jit]",
        "float16[eager]",
        "float16[jit]",
    ]


def test_a_pattern_that_matches_nothing_is_said_with_the_nearest_id(chosen):
    with pytest.raises(NothingSelected) as caught:
        match_ids(chosen, ["*[eager]", "dot.yaml::dot:compute_dtype=bfloat16[jot]"])
    assert str(caught.value) == (
        "no case matches 'dot.yaml::dot:compute_dtype=bfloat16[jot]'\n"
        "hint: did you mean 'dot.yaml::dot:compute_dtype=bfloat16[jit]'?"
    )
