"""Phrases of messages."""

from __future__ import annotations

import pytest

from planner.model.words import counted


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
