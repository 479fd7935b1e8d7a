"""Tests that the attempts of a search cost nothing until they are read."""

from planner.model.answer import LevelAttempt
from planner.search.result import Attempts


def test_an_attempt_is_computed_once_and_only_if_it_is_read():
    """The others are not, whether the attempts are counted, or one of them is read."""
    computed = []

    def attempt(level):
        computed.append(level)
        return LevelAttempt(level, (), 0, 1)

    attempts = Attempts([lambda: attempt("host"), lambda: attempt("rack"), lambda: attempt("block")])
    assert (len(attempts), computed) == (3, [])
    assert (attempts[-1].level, attempts[2].level, computed) == ("block", "block", ["block"])
    assert [each.level for each in reversed(attempts)] == ["block", "rack", "host"]
    assert [each.level for each in attempts[:-1]] == ["host", "rack"]
    assert computed == ["block", "rack", "host"]
