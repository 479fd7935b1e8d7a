"""What `make attack` makes of the logs of its replicas."""

from __future__ import annotations

import traceback

import pytest

from tests.attack.run import logs

WORDS = "decided research/Job/train in 12 ms\nledger: unavailable; retry\n"


def traceback_of(error: Exception) -> str:
    """The text with which Python reports an error."""
    try:
        raise error
    except type(error):
        return traceback.format_exc()


CHAINED = traceback_of(KeyError("gang")) + "\nDuring handling …\n\n" + traceback_of(SystemError())


@pytest.mark.parametrize(
    ("output", "measured", "holds"),
    [
        (WORDS, "0 tracebacks ", True),
        (WORDS + traceback_of(KeyError("gang")) + WORDS, "1 tracebacks [\"KeyError: 'gang'\"]", False),
        (CHAINED + CHAINED, "4 tracebacks [\"KeyError: 'gang'\", 'SystemError']", False),
    ],
)
def test_tracebacks_are_counted_and_told_by_their_last_lines(output: str, measured: str, holds: bool) -> None:
    """Each kind of error once; what is logged in words is none."""
    line = logs(output)
    assert (line.measured, line.holds) == (measured, holds)
