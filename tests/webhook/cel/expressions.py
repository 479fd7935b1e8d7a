"""Random expressions: well typed, so that most have a value, over bindings with a bit of everything."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

BINDINGS: dict[str, Any] = {
    "i": 7,
    "d": -2.5,
    "s": "gang-α/0",
    "flag": True,
    "none": None,
    "l": [3, -1, 0, 3],
    "names": ["a", "bb", "", "ccc"],
    "m": {"a": 1, "b": [1, 2], "c": {"d": "x"}},
    "o": {
        "metadata": {"name": "train-0", "labels": {"app": "trainer", "x/y": "z"}},
        "spec": {
            "replicas": 4,
            "containers": [{"name": "main", "cpu": 1.5}, {"name": "side", "ports": [80]}],
        },
    },
}
_INTS = st.sampled_from(
    [
        '0', '1', '-1', '2', '7', '9223372036854775807', '-9223372036854775808', 'i', 'size(s)',
        'size(l)', 'l[0]', 'o.spec.replicas', 'm.a', 'l[9]', 'o.spec.nope', "int('12')", 'int(d)',
        'int(3.99)', 'names.size()',
    ]
)  # fmt: skip
_UINTS = st.sampled_from(["0u", "1u", "7u", "18446744073709551615u", "uint(i)"])
_DOUBLES = st.sampled_from(
    ["0.0", "1.0", "-2.5", "d", "1e300", "double(i)", "o.spec.containers[0].cpu", "7.0"]
)
_STRINGS = st.sampled_from(
    [
        "''", "'a'", "'bb'", '"α"', 's', 'names[1]', 'o.metadata.name', "o.metadata.labels['x/y']",
        'string(i)', 'string(flag)', 'm.c.d', "m['nope']", 'string(1u)', "'gang-'", r"r'\d'",
        r"'\u00e9\n'",
    ]
)  # fmt: skip
_BOOLS = st.sampled_from(
    [
        'true', 'false', 'flag', 'has(o.spec)', 'has(o.spec.nope)', 'has(m.c.d)', 'has(o.a.b)',
        "'a' in m", "'a' in names", '3 in l', 'none == null', "s.matches('^g.*[0-9]$')", 'l[9] == 1',
    ]
)  # fmt: skip

_LISTS = st.sampled_from(["l", "names", "[]", "[1, 2u, 3.0]", "m.b", "o.spec.containers.map(c, c.name)"])


def _extend(kinds: dict[str, st.SearchStrategy[str]]) -> dict[str, st.SearchStrategy[str]]:
    """One more level of nesting on each kind."""
    ints, uints, doubles = kinds["int"], kinds["uint"], kinds["double"]
    strings, bools, lists = kinds["string"], kinds["bool"], kinds["list"]
    numbers = st.one_of(ints, uints, doubles)
    anything = st.one_of(ints, uints, doubles, strings, bools, lists)
    arithmetic = st.sampled_from(["+", "-", "*", "/", "%"])

    def binary(left: Any, op: Any, right: Any) -> st.SearchStrategy[str]:
        return st.builds(lambda a, o, b: f"({a} {o} {b})", left, op, right)

    def chosen(branch: Any) -> st.SearchStrategy[str]:
        return st.builds(lambda c, a, b: f"({c} ? {a} : {b})", bools, branch, branch)

    order = st.sampled_from(["<", "<=", ">", ">=", "==", "!="])
    logic = st.sampled_from(["&&", "||"])
    macro = st.sampled_from(["all", "exists", "exists_one"])
    st.sampled_from(["startsWith", "endsWith", "contains"])
    inner = st.sampled_from(["e > 0", "e == 3", "1 / e > 0", "e < i", "e in l", "e != 0 && 6 % e == 0"])
    return {
        "int": st.one_of(ints, binary(ints, arithmetic, ints), chosen(ints), st.builds("-({})".format, ints))
        | st.builds("size({})".format, st.one_of(strings, lists)),
        "uint": st.one_of(uints, binary(uints, arithmetic, uints)),
        "double": st.one_of(doubles, binary(doubles, st.sampled_from("+-*/"), doubles), chosen(doubles)),
        "string": st.one_of(strings, binary(strings, st.just("+"), strings), chosen(strings))
        | st.builds("string({})".format, st.one_of(ints, uints, bools)),
        "bool": st.one_of(
            bools,
            binary(bools, logic, bools),
            st.builds("!({})".format, bools),
            binary(numbers, order, numbers),
            binary(strings, order, strings),
            binary(anything, st.sampled_from(["==", "!="]), anything),
            binary(anything, st.just("in"), lists),
            st.builds("({}).{}(e, {})".format, lists, macro, inner),
            st.builds(
                "({}).{}({})".format,
                strings,
                st.sampled_from(["startsWith", "endsWith", "contains"]),
                strings,
            ),
        ),
        "list": st.one_of(
            lists,
            st.builds("[{}, {}]".format, anything, anything),
            st.builds("({}).map(e, [e, {}])".format, lists, anything),
            st.builds("({}).filter(e, {})".format, lists, inner),
            binary(lists, st.just("+"), lists),
        ),
    }


def expressions(levels: int = 3) -> st.SearchStrategy[str]:
    """Expressions nested up to so many levels."""
    kinds = {
        "int": _INTS,
        "uint": _UINTS,
        "double": _DOUBLES,
        "string": _STRINGS,
        "bool": _BOOLS,
        "list": st.sampled_from(
            ["l", "names", "[]", "[1, 2u, 3.0]", "m.b", "o.spec.containers.map(c, c.name)", "[[1]]"]
        ),
    }
    for _ in range(levels):
        kinds = _extend(kinds)
    return st.one_of(*kinds.values())
