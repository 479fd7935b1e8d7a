"""Names are sorted as people read them, and always in the same order."""

from __future__ import annotations

import random

from planner.model.natural_order import natural


def test_digits_are_compared_by_value_and_ties_by_the_whole_name() -> None:
    """Zeros before a number change nothing but the last comparison."""
    names = ["r0", "r1", "r01", "r2-n9", "r2-n10", "r10", "r010", "rack"]
    ordered = ["r0", "r01", "r1", "r2-n9", "r2-n10", "r010", "r10", "rack"]
    random.Random(1).shuffle(names)
    assert sorted(names, key=natural) == ordered


def test_a_number_may_have_any_length() -> None:
    """A node, label or resource whose name has 5,000 digits ended a command in a traceback."""
    smaller, larger = "r" + "1" * 5_000, "r1" + "0" * 5_000
    assert sorted([larger, smaller, "r9"], key=natural) == ["r9", smaller, larger]
