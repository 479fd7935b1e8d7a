"""Tests whether the time of a decision is over, as checked during its work."""

from __future__ import annotations

import pytest

from planner.model.effort.deadline import DeadlinePassed, poll, watched
from planner.model.effort.work_budget import POLL_EVERY, BudgetEnded, WorkBudget


def test_without_a_deadline_there_is_time() -> None:
    """Commands without a cluster set no deadline."""
    poll("search")


def test_the_part_at_work_is_told_when_the_time_is_over() -> None:
    """And only inside: the next decision of the thread has its own."""
    with watched(lambda: True), pytest.raises(DeadlinePassed) as passed:
        poll("reading")
    assert passed.value.part == "reading"
    poll("reading")


def test_no_handler_of_errors_takes_it_for_one() -> None:
    """A policy function's errors become answers; the deadline does not."""
    assert not issubclass(DeadlinePassed, Exception)


def test_a_search_asks_after_so_many_steps() -> None:
    """Also where its budget is far from its end."""
    with watched(lambda: True), pytest.raises(DeadlinePassed):
        WorkBudget().spend(POLL_EVERY)
    with watched(lambda: False), pytest.raises(BudgetEnded):
        WorkBudget(POLL_EVERY).spend(POLL_EVERY + 1)
