"""`bayplan serve --deadline`: a hold outlives the call that made it, whatever book it stands in."""

from __future__ import annotations

from webhook.cli.installation.serve import times_within
from webhook.placement.hold import HOLD_SECONDS
from webhook.server.http import DEADLINE


def test_a_hold_grows_with_the_deadline_and_never_shrinks() -> None:
    """Twice the deadline, twice the hold; half the deadline, the hold of the default."""
    assert times_within(DEADLINE)["hold_seconds"] == HOLD_SECONDS
    assert times_within(2 * DEADLINE)["hold_seconds"] == 2 * HOLD_SECONDS
    assert times_within(DEADLINE / 2)["hold_seconds"] == HOLD_SECONDS


def test_trying_again_ends_in_proportion_to_the_deadline() -> None:
    """So that an answer is left time for in short calls too."""
    assert times_within(DEADLINE / 2)["try_seconds"] == times_within(DEADLINE)["try_seconds"] / 2
