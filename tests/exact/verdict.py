"""What an answer must say, given what trying everything found."""

from __future__ import annotations

from collections.abc import Callable

from planner.model.answer import Answer


def placed(answer: Answer, best: object, ever: Callable[[], object], number: int | None = None) -> bool:
    """Whether there is a place (`best` is not None), which the answer must say too.

    Where there is none, the gang waits if there is one on the empty cluster (`ever`), else it is refused.
    `number`: of the instance, to find it again.
    """
    assert not any("SearchBudgetExhausted" in message for message in (answer.reason, *answer.warnings))
    if best is not None:
        assert answer.decision == "admitted", (number, best, answer)
        return True
    assert answer.decision == ("rejected" if ever() is None else "queued"), (number, answer)
    return False
