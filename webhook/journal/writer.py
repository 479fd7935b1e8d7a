"""The files of a journal: bounded, rotated, and written by a thread of their own.

A call never waits for the disk: what does not fit the queue is counted and left out, and so is what cannot be
written.
"""

from __future__ import annotations

import logging
import os
import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

import orjson
from prometheus_client import Counter

from planner.model.reservation import Reservation
from webhook.admission.decision_record import Decision, Phase
from webhook.journal.entries import HEAD, VERSION, line_of, reserved
from webhook.wire.request import AdmissionRequest

FILES = 8
"""Files that are kept of one process; the oldest is removed where another is begun."""
QUEUE = 2_000
"""Admissions that wait to be written: some seconds of a storm."""
STOP_SECONDS = 10.0
"""How long a server that stops waits for the rest to be written."""

_Call = tuple[float, Phase, AdmissionRequest, Decision]

log = logging.getLogger("bayplan")


def dropped_admissions() -> Counter:
    """A counter on no registry."""
    return Counter(
        "bayplan_journal_dropped", "Admissions that the journal lacks (`serve --journal`)", registry=None
    )


@dataclass
class JournalWriter:
    """Keeps admissions in `folder`, at most `most_bytes` of them by this process. `name` is that of its
    files, of which no other process has the same."""

    folder: Path
    most_bytes: int
    name: str = field(default_factory=lambda: f"{os.uname().nodename}-{os.getpid()}")
    clock: Callable[[], float] = time.time
    dropped: Counter = field(default_factory=dropped_admissions)
    _queue: queue.Queue[_Call | None] = field(default_factory=lambda: queue.Queue(QUEUE))
    _thread: threading.Thread | None = None
    _file: BinaryIO | None = None
    _written: int = 0
    _files: list[Path] = field(default_factory=list)
    _revision: int = -1
    _held: frozenset[str] = frozenset()
    _written_ids: set[str] = field(default_factory=set)
    """Reservations of decisions that are written already, by id."""
    _failed: bool = False

    def start(self) -> None:
        """Begin to write. Raises `OSError` where the folder cannot be written."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self._begin()
        self._thread = threading.Thread(target=self._work, name="journal", daemon=True)
        self._thread.start()

    def record(self, phase: Phase, request: AdmissionRequest, decision: Decision) -> None:
        """Have an admission written some time. Never waits, never raises."""
        try:
            self._queue.put_nowait((self.clock(), phase, request, decision))
        except queue.Full:
            self.dropped.inc()

    def close(self) -> None:
        """Write what is left, and stop."""
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join(STOP_SECONDS)
        if self._file is not None:
            self._file.close()

    def _work(self) -> None:
        while (call := self._queue.get()) is not None:
            try:
                gone, came = self._changes(call[2], call[3])
                self._write(line_of(*call, gone, came))
            except (OSError, TypeError, ValueError) as error:
                self.dropped.inc()
                if not self._failed:
                    log.warning("the journal in %s lacks admissions: %s", self.folder, error)
                self._failed = True

    def _write(self, line: bytes) -> None:
        if self._written + len(line) > self.most_bytes // FILES:
            self._begin()
        assert self._file is not None, "it is begun before the first line"
        self._file.write(line)
        if self._queue.empty():  # in a storm the file's own buffer is enough
            self._file.flush()
        self._written += len(line)
        self._failed = False

    def _begin(self) -> None:
        """Begin another file, and remove the oldest of this process where there are too many."""
        if self._file is not None:
            self._file.close()
        moment = datetime.fromtimestamp(self.clock(), UTC)
        path = self.folder / f"{moment:%Y%m%dT%H%M%S.%fZ}-{self.name}.jsonl"
        self._file = path.open("xb")
        head = {HEAD: VERSION, "started": moment.isoformat(timespec="seconds")}
        self._written = self._file.write(orjson.dumps(head, option=orjson.OPT_APPEND_NEWLINE))
        self._files.append(path)
        while len(self._files) > FILES:
            self._files.pop(0).unlink(missing_ok=True)

    def _changes(self, request: AdmissionRequest, decision: Decision) -> tuple[list[str], list[Reservation]]:
        """The reservations that ended, and those that others made, since the admission before: where a newer
        book tells it. What stood when the journal began is told by nobody."""
        own_ids = {held.id for held in reserved(request, decision)}
        if decision.plan is None or decision.plan.snapshot.revision <= self._revision:
            self._written_ids |= own_ids
            return [], []
        snapshot = decision.plan.snapshot
        own = {held.id for held in decision.plan.reservations}
        book = {
            held.id: held for held in snapshot.reservations if held.id not in own or held.id in self._held
        }
        gone = self._held - book.keys()
        came = [book[name] for name in sorted(book.keys() - self._held - self._written_ids)]
        came = came if self._revision >= 0 else []
        self._revision, self._held = snapshot.revision, frozenset(book)
        self._written_ids = (self._written_ids - gone) | own_ids
        return sorted(gone), came
