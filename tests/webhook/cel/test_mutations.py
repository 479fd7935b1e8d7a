"""`Object{}` and `JSONPatch{}`: what they give, and what is checked before they are used."""

from __future__ import annotations

from typing import Any

import pytest

from webhook.cel import CelError, Declarations, JSONPatch, ObjectValue, compile, lookup, to_json

POD = Declarations(variables={"object": lookup("v1", "Pod"), "free": None}, mutations=True)
UNKNOWN = Declarations(variables={"object": None, "free": None}, mutations=True)


def _value(text: str, declared: Declarations = POD, **bindings: Any) -> Any:
    return compile(text, declared).evaluate(bindings)


def test_an_object_carries_its_type_path_and_only_the_fields_that_were_set() -> None:
    """Unset fields are absent, so that apply leaves them alone."""
    value = _value("Object{spec: Object.spec{schedulerName: 'kai', ?priority: optional.none()}}")
    assert isinstance(value, ObjectValue)
    assert value == {"spec": {"schedulerName": "kai"}}
    assert (value.type_name, value["spec"].type_name) == ("Object", "Object.spec")


def test_a_lists_elements_have_the_lists_path() -> None:
    """A container is `Object.spec.containers{}`, its variables `Object.spec.containers.env{}`."""
    text = "Object{spec: Object.spec{containers: [Object.spec.containers{name: 'main',"
    text += " env: [Object.spec.containers.env{name: 'A', value: 'b'}]}]}}"
    container = {"name": "main", "env": [{"name": "A", "value": "b"}]}
    assert to_json(_value(text)) == {"spec": {"containers": [container]}}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Object{spec: Object.spec{schedulerNam: 'x'}}", "did you mean 'schedulerName'?"),
        ("Object{spec: Object.spec.template{}}", "unknown type Object.spec.template"),
        ("Object{spec: Object.metadata{}}", "Object.spec must be Object.spec, not Object.metadata"),
        ("Object{spec: {'schedulerName': 'x'}}", "Object.spec must be Object.spec, not map"),
        ("Object{spec: Object.spec{priority: 'high'}}", "Object.spec.priority must be int, not string"),
        ("Object{spec: Object.spec{containers: {}}}", "Object.spec.containers must be list, not map"),
        ("Object{spec: Object.spec{containers: [{'name': 'a'}]}}", "Object.spec.containers must be"),
        ("Object{metadata: Object.metadata{labels: 'x'}}", "must be map or Object.metadata.labels"),
        ("Object{kind: 'a', kind: 'b'}", "field 'kind' is set twice"),
    ],
)
def test_a_known_kinds_fields_are_checked_before_any_object_is_seen(text: str, message: str) -> None:
    """Field names, type paths and field types come from the schema."""
    with pytest.raises(CelError) as caught:
        compile(text, POD)
    assert caught.value.kind == "type"
    assert message in caught.value.message


def test_an_unknown_kinds_fields_are_not_checked() -> None:
    """Without a schema any field may be set, but a type must still stand where its path says."""
    assert _value("Object{spec: Object.spec{anything: 1}}", UNKNOWN) == {"spec": {"anything": 1}}
    with pytest.raises(CelError, match=r"Object\.spec cannot hold Object\.other"):
        _value("Object{spec: Object.other{}}", UNKNOWN)


def test_a_patch_tells_null_from_no_value() -> None:
    """`value: null` sets null; a remove has no value at all."""
    text = "[JSONPatch{op: 'add', path: '/a', value: null}, JSONPatch{op: 'remove', path: '/a'}]"
    null, none = _value(text, UNKNOWN)
    assert null == JSONPatch("add", "/a", value=None, has_value=True)
    assert to_json(null) == {"op": "add", "path": "/a", "value": None}
    assert to_json(none) == {"op": "remove", "path": "/a"}


def test_a_patch_may_move_and_hold_objects() -> None:
    """`from` is a field like the others, and an `Object{}` is a value."""
    moved, added = _value(
        "[JSONPatch{op: 'move', from: '/a', path: '/b'},"
        " JSONPatch{op: 'add', path: '/spec', value: Object.spec{x: [1u, b'a']}}]",
        UNKNOWN,
    )
    assert to_json(moved) == {"op": "move", "path": "/b", "from": "/a"}
    assert to_json(added) == {"op": "add", "path": "/spec", "value": {"x": [1, "YQ=="]}}


def test_a_key_is_escaped_for_a_pointer() -> None:
    """`~` and `/` have their escapes, in this order."""
    assert _value("jsonpatch.escapeKey('a/b~c')") == "a~1b~0c"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("JSONPatch{op: 'ad', path: '/spec'}", "op must be one of"),
        ("JSONPatch{op: 'add', path: 1}", "path must be a string, not int"),
        ("JSONPatch{op: 'add', paths: '/spec'}", "JSONPatch has no field 'paths'"),
        ("JSONPatch{op: 'remove', path: 'spec'}", "a JSON pointer begins with '/'"),
        ("JSONPatch{op: 'remove', path: '/spec/nodeselector'}", "did you mean 'nodeSelector'?"),
        ("JSONPatch{op: 'remove', path: '/spec/containers/x/image'}", "'x' is no index of a list"),
        ("JSONPatch{op: 'remove', path: '/spec/priority/x'}", "'x' lies below a integer"),
        ("JSONPatch{op: 'remove', path: '/spec/container/' + string(free)}", "no field 'container'"),
        ("JSONPatch{op: 'move', from: '/speck', path: '/spec'}", "no field 'speck'"),
    ],
)
def test_a_patch_is_checked_before_any_object_is_seen(text: str, message: str) -> None:
    """Operations, pointers and their known beginnings are checked against the schema."""
    with pytest.raises(CelError) as caught:
        compile(text, POD)
    assert caught.value.kind == "type"
    assert message in caught.value.message


@pytest.mark.parametrize(
    "path",
    [
        "'/metadata/labels/' + jsonpatch.escapeKey('example.com/x')",
        "'/spec/containers/-'",
        "'/spec/containers/' + string(free) + '/image'",
        "'/spec/tolera' + free",
        "free",
    ],
)
def test_a_pointer_that_may_be_right_is_let_through(path: str) -> None:
    """Map keys, the end of a list and what is not known yet are no mistakes."""
    assert compile(f"JSONPatch{{op: 'remove', path: {path}}}", POD).result_type == "JSONPatch"


def test_the_types_of_mutations_do_not_exist_elsewhere() -> None:
    """A validation knows no `Object{}`."""
    with pytest.raises(CelError, match=r"belong to mutations"):
        compile("Object{}", Declarations())


@pytest.mark.parametrize("text", ['double("NaN")', 'double("Infinity")', '{"a": [double("-Infinity")]}'])
def test_a_number_that_json_does_not_have_is_an_error(text: str) -> None:
    """As a patch it would become null."""
    with pytest.raises(CelError, match="has no JSON form"):
        to_json(_value(text))
