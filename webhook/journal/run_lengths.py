"""Determines how long gangs ran, before a replay starts. Pure.

The replay needs this in advance: a gang that starts earlier than recorded ends before the replay reaches the
entry with its recorded end.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass, field

from webhook.journal.courses import gangs_of
from webhook.journal.entries import JournalEntry


@dataclass(slots=True)
class RunLengths:
    """The runs of each reservation in order of time, by reservation id: start (seconds since the epoch) and
    length (seconds). Only these two numbers are kept, so that a journal of gigabytes needs little memory.
    """

    _begun: dict[str, list[float]] = field(default_factory=dict)
    _seconds: dict[str, list[float]] = field(default_factory=dict)

    def add(self, reservation: str, begun: float, seconds: float) -> None:
        """Adds a run. The runs of one reservation must be added in the order of their starts."""
        self._begun.setdefault(reservation, []).append(begun)
        self._seconds.setdefault(reservation, []).append(seconds)

    def next_from(self, reservation: str, moment: float) -> float | None:
        """Returns the length in seconds of the first run that started at `moment` or later; None if there is
        none.
        """
        begun = self._begun.get(reservation, [])
        index = bisect_left(begun, moment)
        return self._seconds[reservation][index] if index < len(begun) else None


def run_lengths(entries: Iterable[JournalEntry]) -> RunLengths:
    """Returns the run lengths of all gangs that ended by themselves. Gangs that a user deleted are left out,
    because the time of a deletion does not depend on the start of the gang.
    """
    lengths = RunLengths()
    running: dict[str, tuple[str, float]] = {}
    for entry in entries:
        for name in entry.gone:
            if name in running:
                _, begun = running.pop(name)
                lengths.add(name, begun, entry.time - begun)
        for held in entry.came:
            running.setdefault(held.id, (held.gang, entry.begun(held)))
        if entry.request.operation == "DELETE" and not entry.request.dry_run:
            ids = {gang: name for name, (gang, _) in running.items()}
            for gang in gangs_of(entry.request, ids):
                running.pop(ids[gang])
    return lengths
