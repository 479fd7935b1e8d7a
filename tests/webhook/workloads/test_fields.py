"""The short ways of reading a field say the same as the long ones, whatever the field contains."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from planner.model.errors import InputError
from webhook.workloads.fields import Field

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from([10**12, 1.5, "", "3"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
    max_leaves=4,
)


def outcome(read: Any) -> Any:
    """What the reading returns, or the message with which it refuses."""
    try:
        return read()
    except InputError as refused:
        return str(refused)


@given(VALUES)
def test_a_count_is_read_and_refused_as_by_its_field(value: Any) -> None:
    """Also where the parent is no mapping."""
    field = Field(value)
    assert outcome(lambda: field.count_of("a", 7)) == outcome(lambda: field.get("a").count(7))


@given(VALUES)
def test_no_field_that_is_there_is_overlooked(value: Any) -> None:
    """What `has` denies is missing; a malformed parent is never denied, so that it is read and refused."""
    field = Field(value)
    if not field.has("a"):
        assert field.get("a").value is None


@given(VALUES)
def test_a_field_of_two_keys_is_that_of_one_after_the_other(value: Any) -> None:
    """The same value, place and error."""

    def at_once() -> Any:
        field = Field(value).get("a", "b")
        return field.value, field.path

    def step_by_step() -> Any:
        field = Field(value).get("a").get("b")
        return field.value, field.path

    assert outcome(at_once) == outcome(step_by_step)
