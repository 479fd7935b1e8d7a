"""Several messages as one text."""

from webhook.policy.engine.sentences import joined


def test_sentences_follow_each_other_and_other_parts_are_joined_by_semicolons():
    """A full stop is never followed by a semicolon."""
    assert joined(["Placed in r1.", "warning: no level", "warning: no queue"]) == (
        "Placed in r1. warning: no level; warning: no queue"
    )


def test_what_is_said_twice_is_said_once():
    """And nothing is nothing."""
    assert joined(["no", "", "no"]) == "no"
    assert joined([]) == ""
