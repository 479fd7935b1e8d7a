"""Whatever text is given, the answer is a value or a CelError, soon."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.effort import cpu_seconds
from tests.webhook.cel.expressions import BINDINGS
from webhook.cel import CelError, CostBudget, Declarations, compile, lookup, to_json

_LIBRARIES = frozenset({"math", "base64", "bind", "strings"})
_CHECKED = Declarations(variables=dict.fromkeys(BINDINGS), libraries=_LIBRARIES, mutations=True)
_TYPED = Declarations(variables={**dict.fromkeys(BINDINGS), "o": lookup("v1", "Pod")}, mutations=True)
_UNCHECKED = Declarations(variables=dict.fromkeys(BINDINGS), libraries=_LIBRARIES, strict=False)

_PLAIN_WORDS = """
    ( ) [ ] { } . , : ? ! - + * / % < <= == != && || .? [? `a-b` ' " // b' r' true null 0 1u
    -9223372036854775808 1e999 0x1F .5 'a' i d s l m o names none e x Object Object.spec{ has( size(
    string( int( timestamp( duration('1h') quantity('1Gi') ip('::1') semver('1.2.3') .matches(
    .format([ .split( .replace( .join( .findAll( .flatten() .sum() .orValue( optional.of(
    optional.none() lists.range( math.greatest( sets.contains( url('/a?b=c')
"""
_WORDS = (
    *_PLAIN_WORDS.split(),
    ' in ', "'''", '\\', '\n', "'\\x", "b'\\377'", 'e, ', 'JSONPatch{op: ', 'cel.bind(e, ',
    '.map(e, ', '.all(e, ', '.exists(e, v, ', '.filter(e, ', '.optMap(e, ', '.transformMap(k, v, ',
    '.sortBy(e, ', "'%s %d %.3f'",
)  # fmt: skip


SOON = 30.0
"""CPU seconds: what hangs takes more, whatever the machine; 20,000 units of budget take some milliseconds."""


def _answer(text: str, declared: Declarations) -> None:
    assert cpu_seconds(lambda: _answered(text, declared)) < SOON


def _answered(text: str, declared: Declarations) -> None:
    try:
        to_json(compile(text, declared).evaluate(BINDINGS, CostBudget(20_000)))
    except CelError as bad:
        rendered, short = bad.render(), len(bad.message) < 500
    else:
        return
    assert rendered
    assert short


@given(st.text(max_size=200))
@settings(max_examples=300)
@example("'" + "\\n" * 200)
@example('"""' + '\\"' * 200)
@example("b'" + "\\\\" * 99 + "\\")
@example("\ud800")
@example("'\ud800'.matches('a')")
@example("bytes('\ud800')")
def test_any_text_gives_a_value_or_an_error(text: str) -> None:
    """Random text never crashes the parser nor hangs it."""
    _answer(text, _CHECKED)


@given(st.lists(st.sampled_from(_WORDS), max_size=14).map("".join))
@settings(max_examples=600)
def test_any_run_of_words_gives_a_value_or_an_error(text: str) -> None:
    """Text of the language's own words neither crashes nor hangs, checked or not."""
    _answer(text, _CHECKED)
    _answer(text, _UNCHECKED)


def _grow(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    names = (
        "size",
        "string",
        "int",
        "timestamp",
        "dyn",
        "type",
        "quantity",
        "ip",
        "optional.of",
        "url",
        "bytes",
    )
    methods = (
        "sum",
        "flatten",
        "value",
        "hasValue",
        "sort",
        "join",
        "reverse",
        "distinct",
        "lowerAscii",
        "first",
    )
    macros = ("all", "exists", "map", "filter", "exists_one", "sortBy")
    return st.one_of(
        st.builds(
            "({} {} {})".format,
            parts,
            st.sampled_from(["+", "-", "*", "/", "==", "<", "in", "&&", "||"]),
            parts,
        ),
        st.builds("({} ? {} : {})".format, parts, parts, parts),
        st.builds("{}({})".format, st.sampled_from(names), parts),
        st.builds("({}).{}()".format, parts, st.sampled_from(methods)),
        st.builds("({}).{}(e, {})".format, parts, st.sampled_from(macros), parts),
        st.builds("({}).transformMap(k, e, {})".format, parts, parts),
        st.builds("{{{}: {}, ?'z': optional.of({})}}".format, parts, parts, parts),
        st.builds("[{}, ?{}]".format, parts, parts),
        st.builds("({})[?{}]".format, parts, parts),
        st.builds("({}).format([{}])".format, parts, parts),
        st.builds("Object{{spec: Object.spec{{a: {}}}}}".format, parts),
        st.builds("JSONPatch{{op: 'add', path: {}, value: {}}}".format, parts, parts),
    )


_LEAVES = st.sampled_from(
    ["1", "2u", "-1.5", "'a'", "b'z'", "true", "null", "e", "s", "l", "m", "o", "o.a", "l[0]", "[]", "{}"]
)


@given(st.recursive(_LEAVES, _grow, max_leaves=12))
@settings(max_examples=400)
def test_any_tree_gives_a_value_or_an_error(text: str) -> None:
    """Well-formed trees of whatever types neither crash nor hang."""
    for declared in (_CHECKED, _TYPED, _UNCHECKED):
        _answer(text, declared)


@pytest.mark.parametrize(
    "text",
    [
        "(" * 5000 + "1" + ")" * 5000,
        "[" * 3000 + "]" * 3000,
        "!" * 5000 + "true",
        "-" * 5001 + "i",
        "1" + "+1" * 5000,
        "o" + ".a" * 5000,
        "l" + "[0]" * 5000,
        "true" + " ? true : false" * 2000,
        "l.all(e, " * 500 + "true" + ")" * 500,
        "{1: " * 2000 + "1" + "}" * 2000,
        "a" * 40_000,
    ],
    ids=lambda text: f"{text[:6]}…{len(text)}",
)
def test_no_depth_or_length_exhausts_the_stack(text: str) -> None:
    """Text that is nested or long beyond reason is refused, or works."""
    _answer(text, _CHECKED)
    _answer(text, _UNCHECKED)


def test_a_deep_value_is_an_error_and_no_crash() -> None:
    """An object nested ten thousand deep cannot be compared, and the answer says so."""
    deep: Any = []
    for _ in range(10_000):
        deep = [deep]
    program = compile("l == m", Declarations(variables={"l": None, "m": None}))
    other: Any = []
    for _ in range(10_000):
        other = [other]
    with pytest.raises(CelError, match="nested too deeply"):
        program.evaluate({"l": deep, "m": other})
    with pytest.raises(CelError, match="nested too deeply"):
        to_json(deep)


def test_a_binding_that_json_cannot_hold_is_an_error_and_no_crash() -> None:
    """An integer of 400 digits compares with a double as an error."""
    with pytest.raises(CelError):
        compile("l == 1.5", Declarations(variables={"l": None})).evaluate({"l": 10**400})
