"""Writes the files of a journal in a thread, with limits and rotation.

A call never waits for the disk. Admissions that do not fit into the queue, or cannot be written, are dropped
and counted.
"""

from __future__ import annotations

import glob
import logging
import os
import queue
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

import orjson
from prometheus_client import Counter

from planner.model.reservation import Reservation
from webhook.admission.decision_record import Decision, Phase
from webhook.journal.entries import HEAD, LINE_LIMIT, VERSION, line_of, reserved
from webhook.wire.request import AdmissionRequest

FILES = 8
"""Number of files kept of one name; a new file replaces the oldest."""
QUEUE = 2_000
"""Maximum number of admissions that wait to be written: those of a few seconds under heavy load."""
_MOMENT = "%Y%m%dT%H%M%S.%fZ"
"""Format of the time at which a file was begun, the beginning of its name."""
_ANY_MOMENT = "????????T??????.??????Z"
"""The times in this format as a pattern of file names."""
STOP_SECONDS = 10.0
"""Maximum time, in seconds, that a stopping server waits for the queue to be written."""

_Call = tuple[float, Phase, AdmissionRequest, Decision]

log = logging.getLogger("bayplan")


def dropped_admissions() -> Counter:
    """Returns the counter of dropped admissions, not yet registered for `/metrics`."""
    return Counter(
        "bayplan_journal_dropped", "Admissions that the journal lacks (`serve --journal`)", registry=None
    )


@dataclass
class JournalWriter:
    """Writes admissions to files in `folder`, in which this process keeps at most `most_bytes` bytes.

    `name`: part of the file names, unique to the process. `clock`: returns seconds since the epoch.
    """

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
    """The newest revision of the ledger that a decision saw, -1 before the first decision with a plan."""
    _held: frozenset[str] = frozenset()
    """Ids of the reservations in the ledger at that revision, without new ones of the decision's plan."""
    _written_ids: set[str] = field(default_factory=set)
    """Ids of reservations in the decisions that are already written."""
    _failed: bool = False
    _torn: bool = False
    """A write failed, so that the file may end in a part of a line."""

    def start(self) -> None:
        """Starts the thread. Raises `OSError` if the folder cannot be written.

        Files of an earlier process of this name count too: a container has it again after a restart.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        self._files = sorted(self.folder.glob(f"{_ANY_MOMENT}-{glob.escape(self.name)}.jsonl"))
        self._warn_of_small_volume()
        self._begin()
        self._thread = threading.Thread(target=self._work, name="journal", daemon=True)
        self._thread.start()

    def _warn_of_small_volume(self) -> None:
        """Logs a warning if the volume has no room for the whole journal. The oldest file is removed only
        beyond the limit, so the journal would lack everything after the volume is full.
        """
        volume = os.statvfs(self.folder)
        room = volume.f_bavail * volume.f_frsize + sum(file.stat().st_size for file in self._files)
        if room < self.most_bytes:
            log.warning(
                "the journal in %s may take %d MiB, and its volume has room for %d MiB: once it is full, "
                "admissions are dropped; give it a larger volume or a smaller --journal-size",
                self.folder,
                self.most_bytes // 2**20,
                room // 2**20,
            )

    def record(self, phase: Phase, request: AdmissionRequest, decision: Decision) -> None:
        """Queues an admission for writing. Never blocks, never raises."""
        try:
            self._queue.put_nowait((self.clock(), phase, request, decision))
        except queue.Full:
            self.dropped.inc()

    def close(self) -> None:
        """Writes the rest of the queue, for up to `STOP_SECONDS`, stops the thread, and closes the file.

        If the disk hangs, the thread stays behind with the file: closing it would wait for the same disk.
        """
        if self._thread is not None:
            end = time.monotonic() + STOP_SECONDS
            with suppress(queue.Full):
                self._queue.put(None, timeout=STOP_SECONDS)
            self._thread.join(max(0.0, end - time.monotonic()))
            if self._thread.is_alive():
                return
        if self._file is not None:
            self._file.close()

    def _work(self) -> None:
        while (call := self._queue.get()) is not None:
            try:
                gone, came = self._changes(call[2], call[3])
                self._write(line_of(*call, gone, came))
            except Exception as error:  # one odd admission must not end the journal
                self.dropped.inc()
                if not self._failed:
                    log.warning("the journal in %s lacks admissions: %s", self.folder, error)
                self._failed = True

    def _write(self, line: bytes) -> None:
        if self._torn:
            self._cut()
        try:
            self._append(line)
        except OSError:
            self._torn = True
            raise

    def _append(self, line: bytes) -> None:
        if self._written + len(line) > self.most_bytes // FILES:
            self._begin()
        assert self._file is not None, "`start` opens the first file"
        self._file.write(line)
        if self._queue.empty():  # under load, lines are flushed in batches by the file's buffer
            self._file.flush()
        self._written += len(line)
        self._failed = False

    def _cut(self) -> None:
        """Removes the part of a line in which the file may end after a full disk: a reader stops there, and
        would miss all lines after it.
        """
        if self._file is not None:
            with suppress(OSError):
                self._file.close()
        if not self._files[-1].exists():
            self._begin()
            self._torn = False
            return
        self._file = self._files[-1].open("r+b")
        self._written = self._file.seek(0, os.SEEK_END)
        tail = min(self._written, LINE_LIMIT)
        self._file.seek(-tail, os.SEEK_END)
        self._written += self._file.read(tail).rfind(b"\n") + 1 - tail
        self._file.truncate(self._written)
        self._file.seek(self._written)
        self._torn = False

    def _begin(self) -> None:
        """Opens a new file, and removes the oldest of this name if there are too many."""
        if self._file is not None:
            self._file.close()
        moment = datetime.fromtimestamp(self.clock(), UTC)
        path = self.folder / f"{moment:{_MOMENT}}-{self.name}.jsonl"
        self._file = path.open("xb")
        head = {HEAD: VERSION, "started": moment.isoformat(timespec="seconds")}
        self._written = self._file.write(orjson.dumps(head, option=orjson.OPT_APPEND_NEWLINE))
        self._files.append(path)
        while len(self._files) > FILES:
            self._files.pop(0).unlink(missing_ok=True)

    def _changes(self, request: AdmissionRequest, decision: Decision) -> tuple[list[str], list[Reservation]]:
        """Returns the ids of the reservations that ended since the last admission, and the reservations that
        the controller or other replicas made since then. Both are empty unless the decision saw a newer
        revision of the ledger. Reservations that existed when the journal started are not returned.
        """
        own_ids = {held.id for held in reserved(request, decision)}
        if decision.plan is None or decision.plan.snapshot.revision <= self._revision:
            self._written_ids |= own_ids
            return [], []
        snapshot = decision.plan.snapshot
        # The plan's snapshot contains the reservations of the plan, even if they are not made (a dry run).
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
