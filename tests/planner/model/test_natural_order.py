"""Names are sorted as people read them, and always in the same order."""

from __future__ import annotations

import random
import re

from hypothesis import given
from hypothesis import strategies as st

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


def parts(name: str) -> list[tuple[int, int, str]]:
    """The definition: each run of digits as its number of significant digits and these, each other part as
    text, which numbers precede and the end follows.
    """
    runs = [part for part in re.split(r"(\d+)", name) if part]
    numbers = [part.lstrip("0") if part.isdecimal() else None for part in runs]
    keys = [
        (1, 0, part) if number is None else (0, len(number), number)
        for part, number in zip(runs, numbers, strict=True)
    ]
    return [*keys, (2, 0, name)]


NAMES = st.text(st.sampled_from("ab-./019éß中"), max_size=12)


@given(NAMES, NAMES)
def test_the_order_of_the_keys_is_the_order_of_the_parts(name: str, other: str) -> None:
    assert (natural(name) < natural(other)) == (parts(name) < parts(other))
    assert (natural(name) == natural(other)) == (name == other)
