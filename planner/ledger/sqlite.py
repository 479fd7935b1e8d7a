"""The embedded ledger: reservations in one SQLite file, for one replica and the command line.

Every write is one transaction (BEGIN IMMEDIATE, WAL, synchronous=FULL). A process that is killed at any point
therefore leaves the book as it was before the change or after it, and of two processes that want one rack
exactly one gets it. SQLite calls block, so the ledger runs all of them on one thread of its own and the event
loop never waits; only the first opening runs on the caller's thread. A cancelled call still finishes: what
it reserved is a hold, and expires.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from planner.ledger import sqlite_schema
from planner.ledger.conflicts import NO_HEADROOM, Blocked, Headroom, RecordedReservation, Wish, judge
from planner.ledger.ledger import Conflict, LedgerUnavailable, ReserveResult
from planner.model.reservation import Book, Reservation

MEMORY = ":memory:"
"""The path of a ledger in memory, without a file."""


BUSY_SECONDS = 2.0
"""Seconds that a call waits for the write of another process; well below the timeout of a webhook."""


_OWNER_ALONE = 0o600
"""The mode of a new ledger file: only the owner may read it, because the file names the gangs of every
tenant. SQLite gives the same mode to the files that it creates beside the ledger."""


_Result = TypeVar("_Result")


_Work = Callable[[sqlite3.Connection], _Result]


_ADVICE = {
    sqlite3.SQLITE_FULL: "the disk is full; free space on its file system and retry",
    sqlite3.SQLITE_BUSY: "locked by another process; stop that one or retry",
    sqlite3.SQLITE_LOCKED: "locked by another connection; retry",
    sqlite3.SQLITE_READONLY: "it cannot be written; make the file and its folder writable for this user",
    sqlite3.SQLITE_PERM: "it cannot be opened; give this user read and write permission",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened; check that its folder exists and that you may write there",
    sqlite3.SQLITE_NOTADB: "it is no SQLite database; name another file, or move this one away",
    sqlite3.SQLITE_CORRUPT: "it is damaged; restore it from a backup, or move it away to begin an empty book",
    sqlite3.SQLITE_IOERR: "the disk gave an error; check the file system",
}


class SqliteLedger:
    """The `Ledger` in the SQLite file at `path`, which is created if missing (`:memory:`: in no file).

    Opening the file and every call wait for other processes at most `busy_seconds`. Raises
    `LedgerUnavailable` if the file cannot be opened, is no database, is not a Bayplan ledger, is damaged, or
    was written by a newer version.
    """

    def __init__(self, path: str | os.PathLike[str], *, busy_seconds: float = BUSY_SECONDS) -> None:
        self._path = os.fspath(path)
        self._busy_seconds = busy_seconds
        self._latest = float("-inf")  # the latest `now` of any call: clocks of callers may go back
        self._rows_read: dict[sqlite_schema.Key, Reservation] = {}
        self._revision_read = -1  # no revision read so far
        self._closed = False
        self._connection: sqlite3.Connection | None = None
        self._inode: int | None = None
        self._run(lambda connection: None)  # opens the file, so that an unusable one raises an error here
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="ledger")

    async def book(self, now: float, names: Iterable[str] = ()) -> Book:
        """Returns the live reservations at `now` (seconds since the epoch), in the order of their ids. The
        result is always up to date, so `names` is not used."""
        return await self._call(lambda connection: self._book(connection, now))

    async def reserve(
        self, reservation: Reservation, planned_on: int, now: float, headroom: Headroom = NO_HEADROOM
    ) -> Reservation:
        """Writes one reservation as `reserve_all` does, and returns it as it is in the book."""
        taken = await self.reserve_all([Wish(reservation, planned_on, headroom)], now)
        return taken.reservations[0]

    async def reserve_all(self, wishes: Sequence[Wish], now: float) -> ReserveResult:
        """Writes all wanted reservations in one step. Raises `Conflict` and writes none if one conflicts.

        `planner.ledger.conflicts` defines conflicts, and when a former reservation of the same id is
        replaced; after a conflict the former one stays. Raises `ValueError` for mode `none`, which reserves
        nothing.
        """
        for wish in wishes:
            if wish.reservation.mode == "none":
                raise ValueError(f"reservation {wish.reservation.id}: mode none reserves nothing")
        return await self._call(lambda connection: self._reserve_all(connection, wishes, now))

    async def claim(self, reservation_id: str, owner_uid: str, now: float) -> bool:
        """Makes the hold with this id permanent, because its workload (UID `owner_uid`) exists. Returns False
        if there is no live reservation.
        """
        return await self._call(lambda connection: self._claim(connection, reservation_id, owner_uid, now))

    async def give_back(self, seen: Reservation) -> bool:
        """Removes the reservation if it still equals `seen`. Returns False if it is gone, or was claimed or
        replaced since."""
        return await self._call(lambda connection: self._give_back(connection, seen))

    async def release(self, reservation_id: str) -> bool:
        """Removes the reservation. Returns False if there is none, or if it expired before the latest known
        time."""
        return await self._call(lambda connection: self._release(connection, reservation_id))

    async def close(self) -> None:
        """Finishes running calls and closes the file. Later calls raise `LedgerUnavailable`."""
        if not self._closed:
            self._closed = True
            await asyncio.get_running_loop().run_in_executor(self._worker, self._disconnect)
            self._worker.shutdown(wait=False)

    def _book(self, connection: sqlite3.Connection, now: float) -> Book:
        self._latest = max(self._latest, now)
        with _transaction(connection, "BEGIN"):
            revision = sqlite_schema.revision(connection)
            if revision != self._revision_read:
                self._rows_read = sqlite_schema.read_all(connection, self._rows_read)
                self._revision_read = revision
        live = (r for r in self._rows_read.values() if r.expires is None or r.expires > now)
        return Book(revision, tuple(live))

    def _reserve_all(
        self, connection: sqlite3.Connection, wishes: Sequence[Wish], now: float
    ) -> ReserveResult:
        with self._writing(connection, now):  # a conflict rolls back what was inserted before it
            before = {
                wish.reservation.id: sqlite_schema.find(connection, wish.reservation.id) for wish in wishes
            }
            held = tuple(self._reserve(connection, wish) for wish in wishes)
        return ReserveResult(held, frozenset(name for name, former in before.items() if former is None))

    def _reserve(self, connection: sqlite3.Connection, wish: Wish) -> Reservation:
        recorded = sqlite_schema.possible_conflicts(connection, wish.reservation, self._rows_read)
        verdict = judge(wish.reservation, wish.planned_on, recorded, wish.headroom)
        if isinstance(verdict, Blocked):
            raise Conflict(verdict.holder)
        if isinstance(verdict, RecordedReservation):
            return verdict.reservation
        sqlite_schema.insert(connection, verdict)
        return verdict

    def _claim(self, connection: sqlite3.Connection, reservation_id: str, owner_uid: str, now: float) -> bool:
        with self._writing(connection, now):
            reservation = sqlite_schema.find(connection, reservation_id)
            if reservation is not None:
                sqlite_schema.claim(connection, reservation, owner_uid)
        return reservation is not None

    def _give_back(self, connection: sqlite3.Connection, seen: Reservation) -> bool:
        with _transaction(connection, "BEGIN IMMEDIATE"):
            return self._live(connection, seen.id) == seen and sqlite_schema.delete(connection, seen.id)

    def _release(self, connection: sqlite3.Connection, reservation_id: str) -> bool:
        with _transaction(connection, "BEGIN IMMEDIATE"):
            live = self._live(connection, reservation_id)
            return live is not None and sqlite_schema.delete(connection, reservation_id)

    def _live(self, connection: sqlite3.Connection, reservation_id: str) -> Reservation | None:
        """Returns the reservation with this id, unless it expired before the latest known time.

        Other expired holds stay: the command line reads the machine's clock, which may be ahead of the
        server's (`Service.clock` never jumps), and whoever releases one reservation must end no other.
        """
        reservation = sqlite_schema.find(connection, reservation_id)
        expires = None if reservation is None else reservation.expires
        return None if expires is not None and expires <= self._latest else reservation

    @contextmanager
    def _writing(self, connection: sqlite3.Connection, now: float) -> Iterator[None]:
        """Opens a write transaction that begins by removing holds that expired before the latest known time.

        So once `book` has left an expired hold out, a call with an earlier `now` cannot claim it."""
        self._latest = max(self._latest, now)
        with _transaction(connection, "BEGIN IMMEDIATE"):
            sqlite_schema.sweep(connection, self._latest)
            yield

    async def _call(self, work: _Work[_Result]) -> _Result:
        if self._closed:
            raise LedgerUnavailable(f"ledger {self._path}: it is closed")
        return await asyncio.get_running_loop().run_in_executor(self._worker, self._run, work)

    def _run(self, work: _Work[_Result]) -> _Result:
        """Runs the work; errors of SQLite or the file become `LedgerUnavailable`."""
        try:
            return work(self._connect())
        except sqlite3.Error as error:
            self._disconnect()
            raise LedgerUnavailable(f"ledger {self._path}: {self._explain(error)}") from error

    def _explain(self, error: sqlite3.Error) -> str:
        unreadable = isinstance(error, sqlite_schema.Unreadable)
        code = sqlite3.SQLITE_CORRUPT if unreadable else getattr(error, "sqlite_errorcode", 0) & 0xFF
        advice = _ADVICE.get(code)
        waited = f" after {self._busy_seconds:g} s" if code == sqlite3.SQLITE_BUSY else ""
        return f"{advice} ({error}{waited})" if advice else str(error)

    def _connect(self) -> sqlite3.Connection:
        """Returns the connection, reopened after an error. Raises `LedgerUnavailable` if the file was
        removed or replaced meanwhile: it is never created again."""
        if self._connection is None:
            self._connection = _open(self._path, self._busy_seconds, create=self._inode is None)
            self._inode = _inode(self._path)
        elif self._path != MEMORY and _inode(self._path) != self._inode:
            raise LedgerUnavailable(
                f"ledger {self._path}: the file was removed or replaced while in use; put it back or restart"
            )
        return self._connection

    def _disconnect(self) -> None:
        """Closes the connection. A connection to `:memory:` is closed only if the ledger is closed, because
        the book is lost with the connection."""
        if self._connection is not None and (self._path != MEMORY or self._closed):
            self._connection.close()
            self._connection = None
            self._rows_read, self._revision_read = {}, -1


@contextmanager
def _transaction(connection: sqlite3.Connection, begin: str) -> Iterator[None]:
    connection.execute(begin)
    try:
        yield
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _open(path: str, busy_seconds: float, *, create: bool) -> sqlite3.Connection:
    """Returns a connection to the ledger in a file, whose tables are created if the file is empty. `create`:
    whether to create a missing file.

    Raises `LedgerUnavailable` if the file belongs to another program, is damaged or has a newer schema, and
    `sqlite3.Error` if SQLite cannot open or read it.
    """
    if create and path != MEMORY:
        _create_private(path)
    # `isolation_level=None`: only `_transaction` begins and ends transactions. `check_same_thread=False`: the
    # ledger's thread uses the connection that the caller's thread has opened.
    uri = path if path == MEMORY else f"{Path(path).absolute().as_uri()}?mode={'rwc' if create else 'rw'}"
    connection = sqlite3.connect(
        uri, uri=path != MEMORY, timeout=busy_seconds, isolation_level=None, check_same_thread=False
    )
    try:
        _check_is_ours(connection, path)
        _prepare(connection, busy_seconds)
    except BaseException:
        connection.close()
        raise
    return connection


def _create_private(path: str) -> None:
    """Creates an empty file that only its owner can read, if there is none yet."""
    with suppress(OSError):  # the file exists, or opening it with SQLite gives a better error
        os.close(os.open(path, os.O_CREAT | os.O_EXCL, _OWNER_ALONE))


def _prepare(connection: sqlite3.Connection, busy_seconds: float) -> None:
    """Makes writes durable, and creates the schema in a new file."""
    _write_ahead(connection, busy_seconds)
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")
    with _transaction(connection, "BEGIN IMMEDIATE"):
        if _pragma(connection, "user_version") == 0:
            for statement in sqlite_schema.SCHEMA:
                connection.execute(statement)


def _write_ahead(connection: sqlite3.Connection, busy_seconds: float) -> None:
    """Switches to write-ahead logging (WAL). SQLite's busy timeout does not cover this, so it is retried for
    `busy_seconds` if another process opens the file at the same time."""
    deadline = time.monotonic() + busy_seconds
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
        else:
            return


def _check_is_ours(connection: sqlite3.Connection, path: str) -> None:
    """Raises `LedgerUnavailable`, before any write, unless the file is empty or an undamaged ledger of this
    schema version or an older one."""
    version = _pragma(connection, "user_version")
    empty = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0] == 0
    if not empty and _pragma(connection, "application_id") != sqlite_schema.APPLICATION_ID:
        raise LedgerUnavailable(f"ledger {path}: it is another program's database; name another file")
    if version > sqlite_schema.SCHEMA_VERSION:
        raise LedgerUnavailable(
            f"ledger {path}: its schema is version {version} and this bayplan knows up to"
            f" {sqlite_schema.SCHEMA_VERSION}; use the newer bayplan"
        )
    problem = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    if problem != "ok":
        raise LedgerUnavailable(f"ledger {path}: {_ADVICE[sqlite3.SQLITE_CORRUPT]} ({problem})")


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])


def _inode(path: str) -> int | None:
    try:
        return os.stat(path).st_ino
    except OSError:
        return None
