"""The one patch of a decision."""

from __future__ import annotations

import jsonpatch
from hypothesis import given, settings
from hypothesis import strategies as st

from webhook.jsontools.diff import patch_between

_json = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text("ab/~", max_size=3),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text("ab/~", max_size=2), inner, max_size=4)
    ),
    max_leaves=12,
)
_objects = st.dictionaries(st.text("abc", max_size=2), _json, max_size=5)


@given(_objects, _objects)
@settings(max_examples=300)
def test_the_patch_leads_from_the_one_to_the_other_without_moves(
    before: dict[str, object], after: dict[str, object]
) -> None:
    """Applied to the original it gives the result, and people see only add, remove and replace."""
    patch = patch_between(before, after)
    assert jsonpatch.apply_patch(before, patch) == after
    assert {op["op"] for op in patch} <= {"add", "remove", "replace"}


def test_equal_objects_need_no_patch() -> None:
    """An empty list, not a test operation."""
    assert patch_between({"a": [1]}, {"a": [1]}) == []
