"""Tests phrases of messages."""

from __future__ import annotations

import pytest

from planner.model.words import counted, joined


@pytest.mark.parametrize(
    ("count", "words", "phrase"),
    [
        (0, ("node",), "0 nodes"),
        (1, ("node",), "1 node"),
        (2, ("node",), "2 nodes"),
        (1, ("policy", "policies"), "1 policy"),
        (3, ("policy", "policies"), "3 policies"),
    ],
)
def test_what_is_counted_agrees_with_its_number(count: int, words: tuple[str, ...], phrase: str):
    """Also where the plural is another word."""
    assert counted(count, *words) == phrase


def test_sentences_follow_each_other_and_other_parts_are_joined_by_semicolons():
    """A full stop is never followed by a semicolon."""
    assert joined(["Placed in r1.", "warning: no level", "warning: no queue"]) == (
        "Placed in r1. warning: no level; warning: no queue"
    )


def test_what_is_said_twice_is_said_once():
    """And nothing is nothing."""
    assert joined(["no", "", "no"]) == "no"
    assert joined([]) == ""
