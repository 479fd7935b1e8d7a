"""What is wrong with an expression is said when it is compiled, with its place, and without values."""

from __future__ import annotations

import pytest

from webhook.cel import CelError, Declarations, Function, Origin, compile, lookup

POD = lookup("v1", "Pod")
DECLARED = Declarations(
    variables={"object": POD, "request": "map", "free": None, "count": "int"},
    functions={"nodeAffinity.require": Function(lambda a, b: a, 2, 2)},
    mutations=True,
)

REFUSED = [
    ("obj.spec", "undeclared", 0, "undeclared name 'obj'"),
    ("free.all(x, y > 1)", "undeclared", 12, "undeclared name 'y'"),
    ("sizes(free)", "undeclared", 0, "unknown function 'sizes'; did you mean 'size'?"),
    ("free.startWith('a')", "undeclared", 5, "unknown function 'startWith'; did you mean 'startsWith'?"),
    ("startsWith(free, 'a')", "undeclared", 0, "is called as value.name(…)"),
    ("free.quantity()", "undeclared", 5, "is called without a receiver"),
    ("Pod{}", "undeclared", 0, "unknown type 'Pod'"),
    ("size(free, 1)", "type", 0, "size takes 1 argument"),
    ("nodeAffinity.require(free)", "type", 13, "nodeAffinity.require takes 2 arguments"),
    ("1 + 'a'", "type", 2, "no overload of + for (int, string)"),
    ("!5", "type", 0, "no overload of ! for (int)"),
    ("-'a'", "type", 0, "no overload of - for (string)"),
    ("size(3)", "type", 0, "no overload of size for (int)"),
    ("1 == 'a'", "type", 2, "no overload of == for (int, string)"),
    ("1 == 1.0", "type", 2, "no overload of == for (int, double)"),
    ("1 != 2u", "type", 2, "no overload of != for (int, uint)"),
    ("1 in [1u]", "type", 2, "no overload of in for (int, list)"),
    ("'a' in [1]", "type", 4, "no overload of in for (string, list)"),
    ("count < 'a'", "type", 6, "no overload of < for (int, string)"),
    ("'a' in 'b'", "type", 4, "no overload of in for (string, string)"),
    ("count && true", "type", 0, "&& needs bool, not int"),
    ("count ? 1 : 2", "type", 0, "a condition must be bool, not int"),
    ("[1, 2].all(e, e + 1)", "type", 16, "all needs a bool, not int"),
    ("count.all(e, true)", "type", 6, "all needs a list or a map, not int"),
    ("[1]['a']", "type", 3, "a list's index must be an int, not string"),
    ("{1.5: 1}", "type", 1, "a double is no map key"),
    ("count.field", "type", 6, "int has no field 'field'"),
    ("object.spec.containrs", "type", 12, "no field 'containrs'; did you mean 'containers'?"),
    ("has(object.spec.nodeselector)", "type", 16, "did you mean 'nodeSelector'?"),
    ("object.spec.containers.all(c, c.imagee == '')", "type", 32, "did you mean 'image'?"),
    ("object.spec.containers[0].ports.exists(p, p.hostPort == 'a')", "type", 53, "(int, string)"),
    ("object.metadata.name.size() == 1 && object.spec.priority.size() == 1", "type", 57, "(int)"),
    ("free.matches('(')", "type", 5, "not a valid RE2 regular expression"),
    ("duration('1 hour')", "type", 0, "duration() needs a form"),
    ("timestamp('2026-02-30T00:00:00Z')", "type", 0, "a date that exists"),
    ("1 +", "syntax", 3, "unexpected end"),
    ("a b", "syntax", 2, "unexpected 'b'"),
    ("'abc", "syntax", 0, "unfinished string"),
    ("1 # 2", "syntax", 2, "unexpected '#'"),
    (r"'\q'", "syntax", 0, "escape"),
    ("package", "syntax", 0, "reserved word"),
    ("free.true", "syntax", 5, "keyword"),
    ("9223372036854775808", "syntax", 0, "out of range"),
    ("has(free)", "syntax", 0, "has() takes one field selection"),
    ("free.map(a.b, 1)", "syntax", 11, "simple name"),
    ("free.all(x, x, true)", "syntax", 12, "two names"),
]


@pytest.mark.parametrize(("text", "kind", "offset", "message"), REFUSED, ids=[case[0] for case in REFUSED])
def test_a_mistake_is_found_before_any_object_is_seen(
    text: str, kind: str, offset: int, message: str
) -> None:
    """The kind, the place and the words of each mistake that can be known at compile time."""
    with pytest.raises(CelError) as caught:
        compile(text, DECLARED)
    assert (caught.value.kind, caught.value.offset) == (kind, offset)
    assert message in caught.value.message


def test_an_error_shows_file_line_column_and_a_caret() -> None:
    """The rendering points into the policy file, from the place where the expression begins."""
    origin = Origin("policy.yaml", line=12, column=21, label="spec.validations[0].expression")
    with pytest.raises(CelError) as caught:
        compile("object.spec > 3", DECLARED, origin=origin)
    assert caught.value.render() == (
        "policy.yaml:12:33: no overload of > for (map, int) (spec.validations[0].expression)\n"
        "  object.spec > 3\n"
        "              ^"
    )


def test_the_lines_of_a_block_scalar_count_from_its_indentation() -> None:
    """A mistake in the third line of an expression is shown in the file's third line after the first."""
    with pytest.raises(CelError) as caught:
        compile("true &&\ntrue &&\n  nope", DECLARED, origin=Origin("p.yaml", line=7, column=9, indent=8))
    assert (caught.value.line, caught.value.column) == (9, 11)
    assert caught.value.render().endswith("\n    nope\n    ^")


def test_an_error_never_holds_the_objects_values() -> None:
    """A failed evaluation names keys and types; the value of an environment variable stays where it is."""
    pod = {"spec": {"containers": [{"env": [{"name": "TOKEN", "value": "s3cr3t"}]}]}, "list": ["s3cr3t"]}
    for text in (
        "free.spec.containers[0].env[0].value + 1",
        "free.spec.containers[0].env[0].value.deeper",
        "int(free.spec.containers[0].env[0].value)",
        "free.spec.containers[0].env[0].value.matches('(' + free.list[0])",
        "quantity(free.list[0])",
        "timestamp(free.list[0])",
        "free.list[0] && true",
        "duration(free.list[0])",
        "free.list.map(x, ip(x))",
    ):
        with pytest.raises(CelError) as caught:
            compile(text, DECLARED).evaluate({"free": pod})
        assert "s3cr3t" not in caught.value.render()


def test_an_error_of_evaluation_points_at_its_place() -> None:
    """A missing key is named, with the column of the field that asked for it."""
    with pytest.raises(CelError, match="no such key: spec") as caught:
        compile("true && free.spec.replicas > 1", DECLARED).evaluate({"free": {}})
    assert (caught.value.kind, caught.value.column) == ("evaluation", 14)


def test_a_message_stays_short_whatever_the_names() -> None:
    """A name of ten thousand letters is cut, in the message and in the line that is shown."""
    with pytest.raises(CelError) as caught:
        compile("a" * 10_000, DECLARED)
    assert len(caught.value.message) < 310
    assert len(caught.value.render()) < 600


def test_null_may_be_compared_with_anything() -> None:
    """`== null` is how policies ask for an unset value, whatever the field's type."""
    assert compile("object.metadata.name == null", DECLARED).evaluate(
        {"object": {"metadata": {"name": None}}}
    )
