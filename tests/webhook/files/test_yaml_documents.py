"""YAML as Kubernetes reads it, and files that mean harm."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from webhook.files.yaml_documents import DEPTH_LIMIT, YamlError, load_all


def only_document(text: str) -> object:
    """The only document of a text."""
    (value,) = load_all(text.encode())
    return value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2026-01-01", "2026-01-01"),
        ("12:30", "12:30"),
        ("1e3", 1000.0),
        ("0644", 420),
        ("0o644", 420),
        ("0X1F", 31),
        ("-0b11", -3),
        ("08", 8),
        ("1.5E3", 1500),
        ("yes", True),
        ("=", "="),
        ('"1"', "1"),
        ("{1: a, true: b, null: c}", {"1": "a", "true": "b", "null": "c"}),
        ("{a: &x {b: 1}, c: {<<: *x, d: 2}}", {"a": {"b": 1}, "c": {"b": 1, "d": 2}}),
        ("{a: &x {b: 1}, c: {<<: *x, b: 2}}", {"a": {"b": 1}, "c": {"b": 2}}),
    ],
)
def test_values_are_read_as_kubernetes_reads_them(text: str, value: object) -> None:
    """No dates, no base 60, keys are text."""
    assert only_document(text) == value


@pytest.mark.parametrize("text", ["2.0", "2e0", "02.", "0.2E+1"])
def test_a_whole_number_is_an_integer(text: str) -> None:
    """As kubectl sends it to the API server, which accepts it in integer fields."""
    assert repr(only_document(text)) == "2"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{a: 1, a: 2}", "'a' occurs twice"),
        ("a: 99999999999999999999999", "does not fit in 64 bits"),
        ("a: .inf", "no number that JSON can hold"),
        ("a: " + "9" * 5000, "does not fit in 64 bits"),
        ("a: !!int ''", "'' is no int"),
        ("a: !!int 1:30", "'1:30' is no int"),
        ("a: !!float 1:30.5", "'1:30.5' is no float"),
        ("a: !!bool x", "'x' is no bool"),
        ("a: !who b", "the tag '!who' is not supported"),
        ("? [a]\n: b", "a key must be text"),
        ("a: " + "[" * 100_000, f"nested deeper than {DEPTH_LIMIT}"),
        ("a: " + "- " * 100_000, "not allowed in this context"),
        ("- " * 100_000, f"nested deeper than {DEPTH_LIMIT}"),
        ("\n".join(" " * i + "a:" for i in range(2000)), f"nested deeper than {DEPTH_LIMIT}"),
        ("? " * 50_000, f"nested deeper than {DEPTH_LIMIT}"),
    ],
    ids=[
        "twice",
        "huge",
        "infinite",
        "long",
        "empty",
        "base-60",
        "base-60-float",
        "bool",
        "tag",
        "key",
        "brackets",
        "inline-dashes",
        "dashes",
        "indent",
        "questions",
    ],
)
def test_what_no_manifest_holds_is_an_error_with_its_place(text: str, words: str) -> None:
    """An error, never a crash of the parser below."""
    with pytest.raises(YamlError, match=re.escape(words)) as caught:
        load_all(text.encode())
    assert caught.value.line > 0


def test_aliases_that_unfold_to_millions_are_refused() -> None:
    """Ten lines that would be a hundred million values."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 9)]
    with pytest.raises(YamlError, match="unfold"):
        load_all("\n".join(lines).encode())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("- " * 100_000, f"nested deeper than {DEPTH_LIMIT}"),
        ("[" * 100_000, f"nested deeper than {DEPTH_LIMIT}"),
        ("a: &a [x, x]\n" + "".join(f"b{i}: &a [*a, *a]\n" for i in range(30)), "unfold"),
    ],
    ids=["dashes", "brackets", "aliases"],
)
def test_the_limits_hold_in_utf_16(text: str, words: str) -> None:
    """As PowerShell writes it. The parser below would crash the process."""
    with pytest.raises(YamlError, match=words):
        load_all(text.encode("utf-16"))


def test_utf_16_is_read_and_half_a_character_is_an_error() -> None:
    """With a byte order mark, as kubectl does."""
    assert load_all("kind: Pod ☸\n".encode("utf-16")) == [{"kind": "Pod ☸"}]
    with pytest.raises(YamlError, match="utf-16"):
        load_all("kind: Pod\n".encode("utf-16")[:-1])


def test_an_alias_inside_its_own_anchor_is_an_error() -> None:
    """A value that holds itself has no end."""
    with pytest.raises(YamlError):
        load_all(b"a: &a [*a]")


@given(st.text(max_size=300) | st.text("[]{}-?: *&a\n,'\"", max_size=400))
@settings(max_examples=300)
def test_whatever_the_text_the_loader_gives_values_or_a_yaml_error(text: str) -> None:
    """Nothing else comes out."""
    try:
        load_all(text.encode("utf-8", "surrogatepass"))
    except YamlError as error:
        assert str(error)  # noqa: PT017 - either outcome is right
