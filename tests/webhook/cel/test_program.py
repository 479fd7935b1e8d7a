"""The seam: what a program tells of itself, how it asks for its bindings, and what comes back."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from webhook.cel import (
    CelError,
    Declarations,
    Duration,
    Function,
    Optional,
    Timestamp,
    UInt,
    compile,
    lookup,
    to_json,
)
from webhook.cel.values.values import from_key

ANY = Declarations(variables=dict.fromkeys(("object", "variables", "plan", "a.b", "request")))


class Lazy(Mapping[str, Any]):
    """Values that are worked out when they are asked for, and a list of what was."""

    def __init__(self, **values: Any) -> None:
        self.values_by_name = values
        self.asked: list[str] = []

    def __getitem__(self, name: str) -> Any:
        self.asked.append(name)
        return self.values_by_name[name]

    def __contains__(self, name: object) -> bool:
        return name in self.values_by_name

    def __iter__(self) -> Iterator[str]:
        return iter(self.values_by_name)

    def __len__(self) -> int:
        return len(self.values_by_name)


def test_a_program_tells_the_variables_and_paths_that_it_reads() -> None:
    """Names bound by a macro are not variables; a path ends where it is no longer constant."""
    text = "object.items.all(plan, plan.x > 1) && variables.foo.bar == object['kind']"
    text += " && has(object.spec.replicas)"
    program = compile(text, ANY)
    assert program.references == {"object", "variables"}
    assert {"object.items", "variables.foo.bar", "object.kind", "object.spec.replicas"} <= program.reads
    assert not any(path.startswith("plan") for path in program.reads)


def test_a_binding_is_asked_for_only_when_it_is_needed() -> None:
    """The right side of a decided `&&` costs nothing, so a plan is not made for it."""
    bindings = Lazy(object={"gang": False}, plan=Lazy(nodes=[]))
    assert compile("object.gang && plan.nodes.size() > 0", ANY).evaluate(bindings) is False
    assert bindings.asked == ["object"]


def test_a_lazy_mapping_may_be_a_value() -> None:
    """Fields come from `[name]`, presence from `in`; a lazy field that is not asked for stays unmade."""
    variables = Lazy(foo=1, bar=2)
    program = compile("variables.foo == 1 && has(variables.bar) && !has(variables.baz)", ANY)
    assert program.evaluate({"variables": variables}) is True
    assert variables.asked == ["foo"]


def test_an_error_inside_a_lazy_binding_passes_through() -> None:
    """The place that is told is that of the inner expression."""

    class Broken(Lazy):
        def __getitem__(self, name: str) -> Any:
            return compile("object.missing", ANY).evaluate({"object": {}})

    with pytest.raises(CelError, match="no such key: missing") as caught:
        compile("variables.foo", ANY).evaluate({"variables": Broken(foo=1)})
    assert caught.value.text == "object.missing"


def test_the_object_is_neither_copied_nor_changed() -> None:
    """What comes back is the very part of what went in."""
    pod = {"spec": {"containers": [{"name": "a"}]}}
    assert compile("object.spec", ANY).evaluate({"object": pod}) is pod["spec"]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("1 + 1", "int"),
        ("'a'", "string"),
        ("object.a", "dyn"),
        ("object.a == 1", "bool"),
        ("object.list.map(x, x)", "list"),
        ("{'a': 1}", "map"),
        ("true ? 1 : 'a'", "dyn"),
        ("true ? 1 : 2", "int"),
        ("object.?a", "optional_type"),
        ("[1, 2].filter(x, x > 1)", "list"),
        ("quantity('1')", "kubernetes.Quantity"),
    ],
)
def test_a_program_knows_its_result_type(text: str, kind: str) -> None:
    """The type that can be known without an object, else dyn."""
    assert compile(text, ANY).result_type == kind


def test_types_follow_the_schema_into_macros() -> None:
    """A container's name is a string, its resources are not known to be text or number."""
    declared = Declarations(variables={"object": lookup("v1", "Pod")})
    assert compile("object.spec.containers[0].name", declared).result_type == "string"
    assert compile("object.spec.containers[0].resources.limits['cpu']", declared).result_type == "dyn"


def test_a_hosts_function_gets_plain_values() -> None:
    """Namespaced, global and receiver style, with a range of arguments."""
    functions = {
        "nodeAffinity.require": Function(lambda a, b: {**a, "required": b}, 2, 2),
        "pick": Function(lambda items, index=0: items[index], 1, 2),
        "initial": Function(lambda text: text[0], 1, 1, receiver=True, result="string"),
    }
    declared = Declarations(variables={"object": None}, functions=functions)
    bindings = {"object": {"a": ["x", "y"]}}
    assert compile("nodeAffinity.require(object, ['n'])", declared).evaluate(bindings)["required"] == ["n"]
    assert compile("pick(object.a) + pick(object.a, 1)", declared).evaluate(bindings) == "xy"
    assert compile("'abc'.initial()", declared).evaluate(bindings) == "a"


def test_a_hosts_refusal_is_an_error_with_its_words() -> None:
    """A ValueError's text reaches people; any other exception says only which function failed."""

    def refuse(value: Any) -> Any:
        raise ValueError("no such product")

    functions = {"refuse": Function(refuse, 1, 1), "broken": Function(lambda x: {}[x], 1, 1)}
    declared = Declarations(functions=functions)
    with pytest.raises(CelError, match=r"^refuse: no such product$"):
        compile("refuse(1)", declared).evaluate({})
    with pytest.raises(CelError, match=r"^broken failed$"):
        compile("broken(1)", declared).evaluate({})


def test_a_dotted_variable_is_found_before_a_field() -> None:
    """The longest declared name wins, as the specification has it."""
    assert compile("a.b.c", ANY).evaluate({"a.b": {"c": 1}}) == 1


def test_results_become_plain_json() -> None:
    """Times are text, uints numbers, bytes base64; absent optionals vanish; boolean keys are text."""
    text = (
        "{'t': timestamp('2026-01-02T03:04:05.5Z'), 'd': duration('90s'), 'u': 1u, 'b': b'a', 'o': object.?x}"
    )
    assert to_json(compile(text, ANY).evaluate({"object": {}})) == {
        "t": "2026-01-02T03:04:05.5Z",
        "d": "90s",
        "u": 1,
        "b": "YQ==",
    }
    assert to_json(compile("{true: 1, 2: 3, 4u: 5}", ANY).evaluate({})) == {"true": 1, "2": 3, "4": 5}
    assert to_json(Optional(1)) == 1
    with pytest.raises(CelError, match="no JSON form"):
        to_json(compile("type(1)", ANY).evaluate({}))


def test_values_that_share_their_parts_cannot_blow_up_as_json() -> None:
    """Thirty doublings are small in memory and a billion elements as text: refused."""
    value: list[Any] = [1]
    for _ in range(30):
        value = [value, value]
    with pytest.raises(CelError, match="cost limit"):
        to_json(value)


def test_the_own_classes_of_values_come_out_as_they_are() -> None:
    """Callers tell a uint, a time and an optional by their classes."""
    assert type(compile("1u", ANY).evaluate({})) is UInt
    assert compile("timestamp(1)", ANY).evaluate({}) == Timestamp(10**9)
    assert compile("duration('1ms')", ANY).evaluate({}) == Duration(10**6)
    assert compile("object.?a", ANY).evaluate({"object": {}}).present is False
    assert [from_key(key) for key in compile("{true: 1}", ANY).evaluate({})] == [True]


def test_a_program_is_shared_by_threads() -> None:
    """Eight threads with objects of their own never see each other's answers."""
    program = compile("object.items.filter(i, i > object.limit).map(i, i * 2).size() == object.want", ANY)
    wrong: list[int] = []

    def work(seed: int) -> None:
        for limit in range(200):
            items = list(range(seed, seed + 40))
            want = sum(item > limit for item in items)
            if program.evaluate({"object": {"items": items, "limit": limit, "want": want}}) is not True:
                wrong.append(limit)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
