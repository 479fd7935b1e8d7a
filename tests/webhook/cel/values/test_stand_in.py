"""Stand-ins: nobody can look at one and not be noticed."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import orjson
import pytest

from planner.model.errors import Where
from planner.model.quantity import parse
from webhook.cel import CelError, Declarations, compile, to_json
from webhook.cel.values.stand_in import StandIn, StandInRead
from webhook.jsontools.diff import equal, patch_between

DECLARED = Declarations({"c": None}, libraries=frozenset({"strings"}))
LOOKS: dict[str, Callable[[Any], object]] = {
    "==": lambda value: value == "a",
    "== from the other side": lambda value: "a" == value,  # noqa: SIM300 - the side is what is tried
    "!=": lambda value: value != 1,
    "<": lambda value: value < "a",
    "hash": hash,
    "in a dict": lambda value: value in {"a": 1},
    "in a list": lambda value: value in ["a"],
    "in it": lambda value: "a" in value,
    "bool": lambda value: not value,
    "len": len,
    "iter": list,
    "index": lambda value: value["a"],
    "str": str,
    "repr": repr,
    "format": lambda value: f"{value}",
    "percent": lambda value: "%s" % value,  # noqa: UP031 - the operator is what is tried
    "int": int,
    "float": float,
    "+": lambda value: value + "a",
    "+ from the other side": lambda value: "a" + value,
    "attribute": lambda value: value.startswith("a"),
    "isinstance": lambda value: isinstance(value, str),
    "isinstance of an abstract class": lambda value: isinstance(value, Mapping),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "sorted": lambda value: sorted([value, value]),
    "join": lambda value: ",".join(map(str, [value])),
    "json": json.dumps,
    "a cached function": lru_cache(len),
    "a quantity": lambda value: parse(value, Where()),
    "another stand-in": lambda value: value == StandIn(),
    "JSON equality": lambda value: equal(value, "a"),
    "a difference": lambda value: patch_between({"a": value}, {"a": "b"}),
}


@pytest.mark.parametrize("look", LOOKS.values(), ids=LOOKS)
def test_whoever_looks_at_a_stand_in_is_noticed(look: Callable[[Any], object]) -> None:
    """Each way to use a value raises, whichever side begins."""
    with pytest.raises((StandInRead, TypeError)) as caught:
        look(StandIn())
    assert caught.type is StandInRead or look is json.dumps, "json refuses a type that it does not know"


def test_a_stand_in_may_be_passed_on() -> None:
    """Told by type and identity alone, it lies in containers, which are equal where it is the same one."""
    stand_in = StandIn()
    assert type(stand_in) is StandIn
    assert equal({"a": [stand_in]}, {"a": [stand_in]})
    assert orjson.dumps({"a": stand_in}, default=lambda _: None) == b'{"a":null}'
    assert equal(to_json({"a": [stand_in]}), {"a": [stand_in]})


@pytest.mark.parametrize(
    "expression",
    [
        "c.image == 'a'",
        "'a' == c.image",
        "c.image != c.name",
        "c.name == c.image",
        "1 == c.image",
        "c.image == null",
        "c.image == [1]",
        "{'a': 1} == c.image",
        "c == {'name': 'main', 'image': 'a'}",
        "c.image in ['a', 'b']",
        "c.name in [c.image]",
        "c.image in {'a': 1}",
        "c.image < 'a'",
        "c.image + 'a' == 'ba'",
        "c.image.startsWith('a')",
        "size(c.image) > 1",
        "string(c.image) == 'a'",
        "type(c.image) == string",
        "c.image.a == 1",
        "has(c.image.a)",
        "c.image[?'a'].hasValue()",
        "c.image ? true : false",
        "[c.image, 'a'].distinct().size() == 1",
        "[c.image, c.image].sort().size() == 2",
        "'%s'.format([c.image]) == 'a'",
        "c.image.exists(x, x == 1)",
        "c.image.matches('a')",
        "timestamp('2026-01-01T00:00:00Z') == c.image",
    ],
)
def test_an_expression_that_looks_at_one_is_noticed_or_fails(expression: str) -> None:
    """It never comes to a value that it would not come to for each value in the stand-in's place."""
    program = compile(expression, DECLARED)
    with pytest.raises((StandInRead, CelError)):
        program.evaluate({"c": {"name": "main", "image": StandIn()}})


@pytest.mark.parametrize(
    "expression", ["has(c.image)", "'image' in c", "[c].map(x, x.image).size() == 1", "c.?image.hasValue()"]
)
def test_an_expression_may_see_that_there_is_a_value(expression: str) -> None:
    """A place is there or not, which a stand-in does not change."""
    assert compile(expression, DECLARED).evaluate({"c": {"name": "m", "image": StandIn()}}) is True
