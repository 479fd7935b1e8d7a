"""JSON Patch with the API server's semantics."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from webhook.jsontools.diff import equal, patch_between
from webhook.jsontools.patch import PatchError, TestFailedError, apply
from webhook.jsontools.path import pointer

DOCUMENT = {"map": {"a": 1, "s/l~t": 2}, "list": [0, 1, 2], "null": None}


@pytest.mark.parametrize(
    ("operation", "path", "expected"),
    [
        ({"op": "add", "path": "/map/b", "value": 3}, "map", {"a": 1, "s/l~t": 2, "b": 3}),
        ({"op": "add", "path": "/map", "value": {}}, "map", {}),
        ({"op": "add", "path": "/list/-", "value": 3}, "list", [0, 1, 2, 3]),
        ({"op": "add", "path": "/list/0", "value": 3}, "list", [3, 0, 1, 2]),
        ({"op": "add", "path": "/list/3", "value": 3}, "list", [0, 1, 2, 3]),
        ({"op": "replace", "path": "/map/new", "value": 3}, "map", {"a": 1, "s/l~t": 2, "new": 3}),
        ({"op": "replace", "path": "/list/1", "value": 9}, "list", [0, 9, 2]),
        ({"op": "remove", "path": "/list/0"}, "list", [1, 2]),
        ({"op": "remove", "path": "/map/s~1l~0t"}, "map", {"a": 1}),
        ({"op": "move", "from": "/list/0", "path": "/list/2"}, "list", [1, 2, 0]),
        ({"op": "copy", "from": "/map/a", "path": "/list/-"}, "list", [0, 1, 2, 1]),
        ({"op": "test", "path": "/map/a", "value": 1}, "map", DOCUMENT["map"]),
        ({"op": "test", "path": "/map/none", "value": None}, "map", DOCUMENT["map"]),
        ({"op": "test", "path": "/null", "value": None}, "null", None),
    ],
)
def test_each_operation(operation: dict[str, Any], path: str, expected: Any) -> None:
    """On one document, which itself stays as it is."""
    before = copy.deepcopy(DOCUMENT)
    assert apply(DOCUMENT, [operation])[path] == expected
    assert before == DOCUMENT


def test_a_copy_is_a_value_of_its_own() -> None:
    """Later operations change one of the two, and a value may be copied into itself."""
    begin = {"op": "add", "path": "/map/new", "value": {}}
    copied = {"op": "copy", "from": "/map", "path": "/other"}
    for end, changed in (("/map/new/x", "map"), ("/other/new/x", "other")):
        patched = apply(DOCUMENT, [begin, copied, {"op": "add", "path": end, "value": 1}])
        assert [patched[name]["new"] for name in ("map", "other")] == [
            {"x": 1} if name == changed else {} for name in ("map", "other")
        ]
    inside = apply(DOCUMENT, [begin, {"op": "copy", "from": "/map", "path": "/map/new/map"}])
    assert inside["map"] == {**DOCUMENT["map"], "new": {"map": {**DOCUMENT["map"], "new": {}}}}


@pytest.mark.parametrize(
    ("operation", "message"),
    [
        ({"op": "add", "path": "/list/4", "value": 3}, "index 4 is past the end of a list of 3"),
        ({"op": "replace", "path": "/list/3", "value": 3}, "index 3 is past the end of a list of 3"),
        ({"op": "replace", "path": "/list/-", "value": 3}, "'-' is no index of a list"),
        ({"op": "add", "path": "/list/-1", "value": 3}, "'-1' is no index of a list"),
        ({"op": "add", "path": "/list/01", "value": 3}, "'01' is no index of a list"),
        ({"op": "add", "path": "/list/99999999999999999999", "value": 3}, "past the end of a list of 3"),
        ({"op": "remove", "path": "/map/none"}, "path /map/none: nothing to remove"),
        ({"op": "add", "path": "/none/x", "value": 1}, "path /none/x: nothing at /none"),
        ({"op": "add", "path": "/map/a/x", "value": 1}, "path /map/a/x: nothing at /map/a"),
        ({"op": "test", "path": "/none/x", "value": None}, "nothing at /none"),
        ({"op": "copy", "from": "/map/none", "path": "/x"}, "path /map/none: nothing there"),
        ({"op": "move", "from": "/map", "path": "/map/b"}, "cannot move /map into itself"),
        ({"op": "move", "path": "/map/b"}, "needs from"),
        ({"op": "add", "path": "map", "value": 1}, "must begin with '/'"),
        ({"op": "remove", "path": ""}, "cannot remove the whole object"),
        ({"op": "merge", "path": "/map", "value": 1}, "unknown operation 'merge'"),
        ({"op": "add", "value": 1}, "needs a path"),
    ],
)
def test_each_error_names_the_path(operation: dict[str, Any], message: str) -> None:
    """And is no failing test."""
    with pytest.raises(PatchError) as caught:
        apply(DOCUMENT, [operation])
    assert message in str(caught.value)
    assert not isinstance(caught.value, TestFailedError)


@pytest.mark.parametrize(
    ("path", "value"), [("/map/a", 2), ("/map/a", True), ("/map/none", 1), ("/list", [0, 1])]
)
def test_a_test_that_does_not_hold_is_its_own_error(path: str, value: Any) -> None:
    """So that the layer above can pass over it."""
    with pytest.raises(TestFailedError):
        apply(DOCUMENT, [{"op": "test", "path": path, "value": value}])


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(0, 1), st.text("ab/~", max_size=3)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.text("ab/~", max_size=2), inner, max_size=4)
    ),
    max_leaves=12,
)


@settings(max_examples=200)
@example({"a": {}, "": [None]}, {"": [0], "a": {"": None}})
@example({"a": 1}, {"a": True})
@given(st.dictionaries(st.text("ab/~", max_size=2), JSON), st.dictionaries(st.text("ab/~", max_size=2), JSON))
def test_the_patch_between_two_objects_leads_from_one_to_the_other(before: Any, after: Any) -> None:
    """Also where true stands in the place of 1."""
    assert equal(apply(before, patch_between(before, after)), after)


@given(st.lists(st.text("ab/~", min_size=1), min_size=1))
def test_a_pointer_leads_back_to_its_steps(steps: list[str]) -> None:
    """Escaped and unescaped."""
    document: Any = 1
    for step in reversed(steps):
        document = {step: document}
    with pytest.raises(TestFailedError):
        apply(document, [{"op": "test", "path": pointer(tuple(steps)), "value": 2}])
