"""How long gangs had their places, read ahead of a replay. Pure.

A gang that begins earlier in a replay than it did has its end before the entry that tells of it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass, field

from webhook.journal.courses import gangs_of
from webhook.journal.entries import JournalEntry


@dataclass(slots=True)
class RunLengths:
    """By reservation its runs in their order: when each began, in seconds since the epoch, and how many
    seconds it took. Two numbers for each run, so that a journal of gigabytes has its runs in memory."""

    _begun: dict[str, list[float]] = field(default_factory=dict)
    _seconds: dict[str, list[float]] = field(default_factory=dict)

    def add(self, reservation: str, begun: float, seconds: float) -> None:
        """A run, later than all of the same reservation before it."""
        self._begun.setdefault(reservation, []).append(begun)
        self._seconds.setdefault(reservation, []).append(seconds)

    def next_from(self, reservation: str, moment: float) -> float | None:
        """The seconds that the first run took that began at a moment or later; None where none is known."""
        begun = self._begun.get(reservation, [])
        place = bisect_left(begun, moment)
        return self._seconds[reservation][place] if place < len(begun) else None


def run_lengths(entries: Iterable[JournalEntry]) -> RunLengths:
    """Of all gangs whose place was given back because they had ended. Who deleted a gang that ran did so when
    they did, however long it had run: such a run has no length."""
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
