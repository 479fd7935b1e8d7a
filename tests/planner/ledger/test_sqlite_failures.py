"""Tests failures of the SQLite ledger: the error messages, and that the stored reservations stay
consistent.
"""

import asyncio
import os
import sqlite3
from dataclasses import replace

import pytest

from planner.ledger.ledger import LedgerUnavailable
from planner.ledger.sqlite import SqliteLedger
from planner.model.reservation import reservation_id
from tests.planner.ledger.books import held, whole


async def test_the_event_loop_goes_on_while_the_ledger_waits(ledger, tmp_path):
    """A call that waits for a lock stops nobody else."""
    with sqlite3.connect(tmp_path / "bayplan.db", isolation_level=None) as other:
        other.execute("BEGIN IMMEDIATE")
        waiting = asyncio.create_task(ledger.reserve(whole("a", "r1"), 0, 1.0))
        await asyncio.sleep(0.02)
        assert not waiting.done()
        other.execute("ROLLBACK")
        await waiting
    other.close()


async def test_a_caller_that_gives_up_leaves_a_whole_book(ledger, tmp_path):
    """A deadline that strikes while the ledger waits for a lock leaves a hold or nothing, and it works on."""
    other = sqlite3.connect(tmp_path / "bayplan.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(ledger.reserve(whole("a", "r1"), 0, 1.0), 0.02)
    other.close()
    assert await ledger.reserve(whole("a", "r1"), 0, 2.0) == whole("a", "r1")
    assert await held(ledger) == {"a"}


async def test_a_locked_file_is_named_and_the_ledger_recovers(ledger, tmp_path):
    """Another process holds the lock: the message says so, and afterwards all is well."""
    other = sqlite3.connect(tmp_path / "bayplan.db", isolation_level=None)
    impatient = SqliteLedger(tmp_path / "bayplan.db", busy_seconds=0.1)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(LedgerUnavailable, match=r"bayplan\.db: locked by another process.*after 0\.1 s"):
        await impatient.reserve(whole("a", "r1"), 0, 1.0)
    other.close()
    await impatient.reserve(whole("a", "r1"), 0, 1.0)
    await impatient.close()


async def test_a_full_disk_loses_nothing(ledger, connections):
    """A write that has no room fails in words; the book is as before and works again when there is room."""
    await ledger.reserve(whole("a", "r1"), 0, 1.0)
    before = await ledger.book(1.0)
    (connection,) = connections
    pages = connection.execute("PRAGMA page_count").fetchone()[0]
    connection.execute(f"PRAGMA max_page_count = {pages}")  # as if the disk ended here
    huge = replace(whole("b", "r2"), requests=tuple((f"set-{i}" * 50, {"cpu": i}) for i in range(2000)))
    with pytest.raises(LedgerUnavailable, match="disk is full; free space"):
        await ledger.reserve(huge, 1, 1.0)
    assert await ledger.book(1.0) == before
    await ledger.reserve(huge, 1, 1.0)


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"not a database, but a text of some length" * 30, "no SQLite database"), (b"\0" * 4096, "no SQLite")],
    ids=["text", "zeros"],
)
def test_a_file_that_is_no_database_is_refused(tmp_path, content, words):
    """The message names the file, and the file is unchanged."""
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    with pytest.raises(LedgerUnavailable, match=rf"notes\.txt: .*{words}"):
        SqliteLedger(path)
    assert path.read_bytes() == content


def test_another_programs_database_is_refused(tmp_path):
    """Nothing is written to it."""
    with sqlite3.connect(tmp_path / "other.db") as other:
        other.execute("CREATE TABLE theirs (a)")
    other.close()
    with pytest.raises(LedgerUnavailable, match="another program's database"):
        SqliteLedger(tmp_path / "other.db")


async def test_a_newer_schema_is_refused(ledger, tmp_path):
    """An older Bayplan does not write into a newer one's book."""
    with sqlite3.connect(tmp_path / "bayplan.db") as newer:
        newer.execute("PRAGMA user_version = 2")
    newer.close()
    with pytest.raises(LedgerUnavailable, match="version 2 and this bayplan knows up to 1"):
        SqliteLedger(tmp_path / "bayplan.db")


async def test_a_damaged_file_is_told_at_the_start(tmp_path):
    """Bytes that were written over are found by the check on opening, with advice."""
    path = tmp_path / "bayplan.db"
    ledger = SqliteLedger(path)
    for number in range(40):
        await ledger.reserve(
            whole(f"gang-{number}", "r1", nodes=(f"m{number}",), topology=str(number)), 0, 1.0
        )
    await ledger.close()
    content = bytearray(path.read_bytes())
    for page in range(1, len(content) // 4096):
        content[page * 4096 : page * 4096 + 64] = b"\xff" * 64
    path.write_bytes(content)
    with pytest.raises(LedgerUnavailable, match="damaged; restore it from a backup"):
        SqliteLedger(path)


async def test_a_row_that_was_tampered_with_is_told(ledger, tmp_path):
    """A document that does not decode is an error in words, not a wrong plan."""
    await ledger.reserve(whole("a", "r1"), 0, 1.0)
    with sqlite3.connect(tmp_path / "bayplan.db") as other:
        other.execute("UPDATE reservation SET document = '{'")
    other.close()
    with pytest.raises(LedgerUnavailable, match=r"damaged.*bp-.* cannot be read"):
        await ledger.book(1.0)


async def test_a_file_that_vanished_is_never_made_anew(ledger, tmp_path):
    """An emptied folder does not become an empty book behind everybody's back."""
    await ledger.reserve(whole("a", "r1"), 0, 1.0)
    os.rename(tmp_path / "bayplan.db", tmp_path / "moved.db")
    for _ in range(2):
        with pytest.raises(LedgerUnavailable, match="removed or replaced while in use"):
            await ledger.book(1.0)
    assert not (tmp_path / "bayplan.db").exists()
    os.rename(tmp_path / "moved.db", tmp_path / "bayplan.db")
    assert await held(ledger) == {"a"}


def test_a_folder_that_is_not_there_is_told(tmp_path):
    """The advice is about the folder."""
    with pytest.raises(LedgerUnavailable, match="check that its folder exists"):
        SqliteLedger(tmp_path / "missing" / "bayplan.db")


@pytest.mark.parametrize("pragma", ["query_only = 1"])
async def test_a_file_that_cannot_be_written_is_told(ledger, connections, pragma):
    """Read-only is said as such; reading goes on."""
    await ledger.reserve(whole("a", "r1"), 0, 1.0)
    connections[0].execute(f"PRAGMA {pragma}")
    with pytest.raises(LedgerUnavailable, match="cannot be written; make the file and its folder writable"):
        await ledger.release(reservation_id("a"))
    assert await held(ledger) == {"a"}


async def test_a_closed_ledger_says_so(tmp_path):
    """Closing twice is fine; using it afterwards is refused in words."""
    ledger = SqliteLedger(tmp_path / "bayplan.db")
    await ledger.close()
    await ledger.close()
    with pytest.raises(LedgerUnavailable, match="it is closed"):
        await ledger.book(1.0)


async def test_a_ledger_in_memory_serves_a_test(tmp_path):
    """`:memory:` keeps a book for as long as it is open."""
    ledger = SqliteLedger(":memory:")
    await ledger.reserve(whole("a", "r1"), 0, 1.0)
    assert await held(ledger) == {"a"}
    await ledger.close()
