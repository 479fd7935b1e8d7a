"""The difference between two versions of a sequence leads from the former to the latest."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from planner.persistent.sequence_delta import Splice, sequence_delta, spliced

ITEMS = tuple((number,) for number in range(6))
LISTS = st.lists(st.sampled_from(ITEMS), max_size=8)
CHANGES = st.lists(st.tuples(st.integers(0, 400), st.sampled_from(["add", "remove", "replace"])), max_size=30)


@given(LISTS, LISTS)
def test_a_sequence_follows_another(former: list[object], latest: list[object]) -> None:
    """Whatever differs, and whatever is twice in it."""
    assert spliced(former, sequence_delta(former, latest)) == tuple(latest)


@given(CHANGES)
def test_of_a_long_sequence_little_more_is_named_than_what_changed(changes: list[tuple[int, str]]) -> None:
    """Of changes at any places, some of them beside each other."""
    former = [(number,) for number in range(300)]
    latest = list(former)
    for place, change in changes:
        place %= len(latest) + 1
        latest[place : place + (change != "add")] = [] if change == "remove" else [("new", place, change)]
    splices = sequence_delta(former, latest)
    assert spliced(former, splices) == tuple(latest)
    assert [splice.place for splice in splices] == sorted(splice.place for splice in splices)
    if len(changes) < 9:
        assert sum(max(splice.gone, len(splice.new)) for splice in splices) <= len(changes)


def test_one_item_in_the_middle_is_one_splice() -> None:
    """And nothing is named where nothing changed."""
    former = [(number,) for number in range(1000)]
    latest = [*former[:500], ("new",), *former[501:]]
    assert sequence_delta(former, latest) == (Splice(500, 1, (("new",),)),)
    assert sequence_delta(former, list(former)) == ()


def test_many_changes_beside_each_other_are_one_splice_up_to_the_equal_end() -> None:
    """More than are looked for one by one."""
    former = [(number,) for number in range(1000)]
    added = tuple(("new", number) for number in range(20))
    assert sequence_delta(former, [*former[:100], *added, *former[100:]]) == (Splice(100, 0, added),)
