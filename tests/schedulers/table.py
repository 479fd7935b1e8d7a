"""What a run prints: a row for each scenario, with the scheduler's version, the seconds and the end."""

from __future__ import annotations

import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from tests.schedulers.site import Site

Scenario = Callable[[Site], str]
"""Plays on a site, and returns its end in words. Raises `AssertionError` or `TimeoutError` where it ends
neither in running pods nor in a refusal that is right."""


@dataclass(frozen=True, slots=True)
class Row:
    """One scenario: the numbers of issue's cases that it plays, how long it took, and its end."""

    name: str
    version: str
    seconds: float
    end: str
    holds: bool

    def __str__(self) -> str:
        head = f"{'holds' if self.holds else 'FAILS':6} {self.version:22} {self.seconds:7.1f} s"
        return f"{head}  {self.name:56} {self.end}"


def play(site: Site, scenarios: Sequence[Scenario], version: str) -> Iterator[Row]:
    """Each scenario on an empty cluster; after each nothing may be left, neither pods nor holds."""
    for scenario in scenarios:
        name = (scenario.__doc__ or scenario.__name__).strip().partition("\n")[0].rstrip(".")
        begin = time.monotonic()
        holds = True
        try:
            end = scenario(site)
        except Exception as error:
            traceback.print_exc(file=sys.stderr)
            end, holds = f"{type(error).__name__}: {error}"[:700], False
        seconds = time.monotonic() - begin
        try:
            site.clear()
        except TimeoutError as error:
            end, holds = f"{end}; left behind: {error}: {site.held()}", False
        yield Row(name, version, seconds, " ".join(end.split()), holds)
