"""What holds for every test: its verdict is the code's, not the machine's nor the day's."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import pytest
from hypothesis import HealthCheck, settings

from webhook.cel import program

# Two of Hypothesis' own checks compare time on the wall with a bound: the run of one example, and how long
# examples take to draw. A busy machine fails them. What an answer may cost is tested where it is promised.
settings.register_profile("explore", deadline=None, suppress_health_check=[HealthCheck.too_slow])
# The same examples each time, so that a commit that passed passes again. `make explore` takes new ones.
settings.register_profile("steady", settings.get_profile("explore"), derandomize=True)
settings.load_profile("steady")


@pytest.fixture(scope="session", autouse=True)
def each_text_is_parsed_once() -> Iterator[None]:
    """The shipped policies are loaded by several hundred tests, half of it by parsing the same texts."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(program, "parse", cache(program.parse))
        yield
