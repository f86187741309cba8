"""The acceptance language: what it can say, what it cannot reach, and that nothing makes it run away."""

from __future__ import annotations

import ast
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from orrery_worldedit import expression
from orrery_worldedit.expression import FUNCTIONS, ExpressionError, evaluate, names, parse

VALUES: dict[str, Any] = {
    "dig": {"seconds": 0.2, "gone": True, "got": {"default:cobble": 1}, "cheats": []},
    "light": [14, 12, 8],
    "items": ["apple", "stick", "apple"],
    "text": "Mana: 5",
    "nothing": None,
    "vanilla": {"dig": {"seconds": 0.4}},
}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("dig.seconds == 0.2", True),
        ("near(2 * dig.seconds, vanilla.dig.seconds)", True),
        ("near(dig.seconds, 0.21, 0.01)", True),
        ("near(dig.seconds, 0.22, 0.01)", False),
        ("dig['gone'] and not dig.cheats", True),
        ("dig.got == {'default:cobble': 1}", True),
        ("light[0] - light[-1]", 6),
        ("light == [14, 12, 8]", True),
        ("all(level > 7 for level in light)", True),
        ("any(level > 14 for level in light)", False),
        ("[a + b for a in [1, 2] for b in [10, 20] if a + b > 11]", [21, 12, 22]),
        ("count(items, 'apple')", 2),
        ("contains(text, 'MANA')", True),
        ("contains(items, 'app')", False),
        ("contains(dig, 'gone')", True),
        ("between(light[1], 12, 12)", True),
        ("1 < 2 < 3", True),
        ("1 < 2 > 3", False),
        ("'apple' in items and 'stone' not in items", True),
        ("5 if dig.gone else 6", 5),
        ("nothing == null and true and not false", True),
        ("sum(light) == 34 and max(light) == 14 and min(light) == 8 and len(light) == 3", True),
        ("sorted(items) == ['apple', 'apple', 'stick'] and set(items) == set(['stick', 'apple'])", True),
        ("round(dig.seconds * 10 / 3, 2)", 0.67),
        ("abs(-7) // 2 + 7 % 4", 6),
        ("'a' + 'b'", "ab"),
    ],
)
def test_what_it_can_say(text: str, value: object) -> None:
    assert evaluate(text, VALUES) == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x = 1",
        "x := 1",
        "(x := 1)",
        "lambda: 1",
        "import os",
        "dig.got.keys()",
        "__import__('os')",
        "open('/etc/passwd')",
        "().__class__()",
        "f'{text}'",
        "b'bytes'",
        "1j",
        "...",
        "2 ** 8",
        "1 << 9",
        "1 | 2",
        "~1",
        "+1",
        "a is b",
        "{1, 2}",
        "{a: 1 for a in light}",
        "{a for a in light}",
        "[*light]",
        "{**dig}",
        "len(*light)",
        "near(1, 1, tolerance=5)",
        "max(light, key=len)",
        "(lambda: 1)()",
        "FUNCTIONS['len'](light)",
        "[a for a, b in light]",
        "[a for dig.seconds in light]",
        "[a async for a in light]",
        "light[0:2]",
        "await x",
        "yield",
        "'" + "x" * 500 + "'",
        "1 ; 2",
        "\0",
        "'\ud800",
        "(" * 150 + "1" + ")" * 150 + "]",
        "-" * 300 + "1",
        "not " * 90 + "1",
        "[" * 40 + "]" * 40,
    ],
)
def test_what_is_refused_when_a_spec_is_read(text: str) -> None:
    with pytest.raises(ExpressionError):
        parse(text)


def test_a_refusal_names_the_part() -> None:
    with pytest.raises(ExpressionError, match="Lambda is not part of the expression language: 'lambda: 1'"):
        parse("lambda: 1")
    with pytest.raises(ExpressionError, match=r"only abs, .* can be called: 'open\(1\)'"):
        parse("open(1)")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("missing == 1", "missing was not measured"),
        ("len", "len was not measured"),
        ("dig.speed", "KeyError"),
        ("dig.__class__", "KeyError"),
        ("light.append", "TypeError"),
        ("light[9]", "IndexError"),
        ("nothing.part", "None has no part 'part'"),
        ("text < 5", "TypeError"),
        ("1 / 0", "ZeroDivisionError"),
        ("text * 1000000000", "Mult needs two numbers"),
        ("light * 1000000000", "Mult needs two numbers"),
        ("'%1000000000d' % 5", "Mod needs two numbers"),
        ("round(5, -1000000000)", "digits must be 0 to 12"),
        ("sum(light, [])", "TypeError"),
        ("set([light])", "TypeError"),
        ("sorted([1, 'a'])", "TypeError"),
        ("max([])", "ValueError"),
        ("[1 for x in 5]", "TypeError"),
        ("9" * 390 + " / 7", "OverflowError"),
    ],
)
def test_values_of_the_wrong_shape(text: str, words: str) -> None:
    with pytest.raises(ExpressionError, match=words):
        evaluate(text, VALUES)


@pytest.mark.parametrize(
    "text",
    [
        "[1 for a in wide for b in wide for c in wide]",
        "all(a == a for a in wide for b in wide)",
        "any(contains(wide, -1) for a in wide)",
        "any(wide == other for a in wide)",
        "any(len(sorted(wide)) == 0 for a in wide)",
        "any(len(wide + wide) == 0 for a in wide)",
        "any(count(long, 'y') for a in wide)",
        "[[[0 for a in wide] for b in wide] for c in wide]",
    ],
)
def test_work_is_bounded_whatever_was_measured(text: str) -> None:
    values = {"wide": list(range(5000)), "other": list(range(5000)), "long": "x" * 1_000_000}
    with pytest.raises(ExpressionError, match="too much to look through"):
        evaluate(text, values)


def test_a_measured_value_cannot_stand_in_for_a_word_of_the_language() -> None:
    assert evaluate("true and not false", {"true": 0, "false": 1}) is True
    assert evaluate("len(x)", {"len": 5, "x": [1]}) == 1


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("dig.seconds == vanilla.dig.seconds", {"dig"}),
        ("all(x > y for x in light)", {"y", "light"}),
        ("any(x for x in x)", {"x"}),
        ("x == 1 and any(x for x in light)", {"x", "light"}),
        ("[a for a in b for b in a]", {"b"}),
        ("len(light) == count", {"light", "count"}),
        ("true or null", set()),
    ],
)
def test_names_that_must_have_been_measured(text: str, read: set[str]) -> None:
    assert names(text) == read


# -- whatever the text, whatever the values

_words = st.sampled_from(
    [
        *FUNCTIONS,
        *(
            "x",
            "y",
            "vanilla",
            "self",
            "open",
            "__import__",
            "eval",
            "1",
            "0",
            "-1",
            "1e308",
            "2.5",
            "'a'",
            "''",
        ),
        *(
            "(",
            ")",
            "[",
            "]",
            "{",
            "}",
            ",",
            ":",
            ".",
            "==",
            "<",
            "in",
            "not in",
            "+",
            "-",
            "*",
            "/",
            "//",
            "%",
        ),
        *("and", "or", "not", "if", "else", "for", "lambda", "**", "<<", "@", "is", "null", "true", "await"),
    ]
)
_data = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)


@given(st.one_of(st.lists(_words, max_size=14).map(" ".join), st.text(max_size=40)), _data, _data)
def test_nothing_but_an_expression_error_comes_out(text: str, x: object, y: object) -> None:
    try:
        evaluate(text, {"x": x, "y": y, "vanilla": {"x": y}})
    except ExpressionError:
        return


@given(st.lists(_words, max_size=14).map(" ".join))
def test_only_declared_functions_are_ever_called(text: str) -> None:
    try:
        tree = parse(text)
    except ExpressionError:
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            assert isinstance(node.func, ast.Name) and node.func.id in FUNCTIONS
        assert not isinstance(node, ast.Lambda | ast.NamedExpr | ast.Await | ast.Starred)


_leaves = st.sampled_from(
    ["x", "y", "x.a", "y[0]", "vanilla.x", "1", "2.5", "'a'", "null", "[1, 2]", "{'a': 1}"]
)
_expressions = st.recursive(
    _leaves,
    lambda inner: st.one_of(
        st.tuples(
            inner,
            st.sampled_from(["+", "-", "*", "/", "//", "%", "==", "!=", "<", "<=", "in", "and", "or"]),
            inner,
        ).map(lambda p: f"({p[0]} {p[1]} {p[2]})"),
        st.tuples(st.sampled_from(sorted(FUNCTIONS)), st.lists(inner, max_size=3)).map(
            lambda p: f"{p[0]}({', '.join(p[1])})"
        ),
        st.tuples(inner, inner, inner).map(lambda p: f"[{p[0]} for y in {p[1]} if {p[2]}]"),
        inner.map(lambda p: f"(-{p})"),
    ),
    max_leaves=8,
)


@given(_expressions, _data, _data)
def test_well_formed_expressions_over_any_values(text: str, x: object, y: object) -> None:
    if len(text) > expression.MAX_LENGTH:
        return
    try:
        evaluate(text, {"x": x, "y": y, "vanilla": {"x": y}})
    except ExpressionError:
        return
