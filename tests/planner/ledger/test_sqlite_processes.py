"""Tests several processes on one SQLite file: races for a rack, and a process that is killed while
writing.
"""

import asyncio
import random
import sqlite3
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from planner.ledger.sqlite import SqliteLedger

HEAD = """
import asyncio, sys
from planner.model.podgroup import Assignment
from planner.ledger.ledger import Conflict
from planner.model.reservation import Reservation, reservation_id
from planner.ledger.sqlite import SqliteLedger

def wanted(gang, rack, fingerprint="f", size=16):
    nodes = [f"{rack}-n{i}" for i in range(size)]
    return Reservation(reservation_id(gang), gang, "t", "rack", ("z", rack), "domain", (("z", rack),),
        frozenset(nodes), tuple(Assignment("w", n, 1) for n in nodes), (("w", {"cpu": 1}),), fingerprint,
        1.0, 100.0)
"""

RACER = (
    HEAD
    + """
async def main(path, gang):
    ledger = SqliteLedger(path, busy_seconds=20)
    print("ready", flush=True)
    sys.stdin.readline()
    won = []
    for rack in range(20):
        try:
            await ledger.reserve(wanted(gang, f"r{rack}"), 0, 1.0)
            won.append(rack)
            await ledger.release(reservation_id(gang)) if rack % 2 else None
        except Conflict:
            pass
        gang = f"{gang}+"
    print(*won)
    await ledger.close()
asyncio.run(main(sys.argv[1], sys.argv[2]))
"""
)

WRITER = (
    HEAD
    + """
import itertools, random
async def main(path, seed):
    ledger = SqliteLedger(path, busy_seconds=20)
    chance = random.Random(seed)
    for step in itertools.count():
        gang = f"gang-{chance.randrange(8)}"
        deed = chance.random()
        try:
            if deed < 0.7:
                await ledger.reserve(wanted(gang, f"r{chance.randrange(12)}", str(step)), step, 1.0)
            elif deed < 0.85:
                await ledger.claim(reservation_id(gang), str(step), 1.0)
            else:
                await ledger.release(reservation_id(gang))
        except Conflict:
            pass
        print((await ledger.book(1.0)).revision, flush=True)
asyncio.run(main(sys.argv[1], int(sys.argv[2])))
"""
)


def start(script, *arguments):
    """Starts a child process that runs the script."""
    return subprocess.Popen(
        [sys.executable, "-c", script, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def rest(process):
    """The remaining output of a killed process. (`communicate` would lose lines that `readline` has
    buffered.)
    """
    with process:
        return process.stdout.read()


async def book(path):
    """The reservations in the file, read by this process."""
    ledger = SqliteLedger(path)
    try:
        return await ledger.book(1.0)
    finally:
        await ledger.close()


def inconsistencies(path):
    """The inconsistencies between the tables, as text."""
    connection = sqlite3.connect(path)
    try:
        wrong = [
            f"integrity: {row}" for row in connection.execute("PRAGMA integrity_check") if row != ("ok",)
        ]
        wrong += [f"orphan: {row}" for row in connection.execute("PRAGMA foreign_key_check")]
        partly = (
            "SELECT id FROM reservation WHERE (SELECT count(*) FROM held_node WHERE reservation = id) <> 16"
        )
        wrong += [f"partly reserved: {row}" for row in connection.execute(partly)]
        homeless = "SELECT id FROM reservation WHERE id NOT IN (SELECT reservation FROM held_domain)"
        return wrong + [f"holds no domain: {row}" for row in connection.execute(homeless)]
    finally:
        connection.close()


def test_of_two_processes_that_want_a_rack_exactly_one_gets_it(tmp_path):
    """Two children begin at the same moment with the same twenty racks."""
    path = tmp_path / "bayplan.db"
    racers = [start(RACER, path, name) for name in ("left", "right")]
    for racer in racers:
        assert racer.stdout.readline() == "ready\n"
    for racer in racers:
        racer.stdin.write("go\n")
        racer.stdin.flush()
    won = [set(racer.communicate(timeout=60)[0].split()) for racer in racers]
    kept = {str(rack) for rack in range(0, 20, 2)}
    assert won[0] & won[1] & kept == set()
    assert (won[0] | won[1]) & kept == kept
    assert {r.domain[1] for r in asyncio.run(book(path)).reservations} == {f"r{rack}" for rack in kept}


def test_many_processes_may_make_the_file_at_once(tmp_path):
    """The first start is a race too: every process gets a working book."""
    path = tmp_path / "bayplan.db"
    racers = [start(RACER, path, f"gang-{number}") for number in range(4)]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda racer: racer.stdout.readline(), racers)) == ["ready\n"] * 4
    for racer in racers:
        racer.communicate("go\n", timeout=60)
    assert [racer.returncode for racer in racers] == [0] * 4


def test_a_kill_at_any_moment_leaves_a_consistent_book(tmp_path):
    """A writer is killed again and again: each time the book is whole and knows all that was confirmed."""
    path = tmp_path / "bayplan.db"
    chance = random.Random(1)
    for seed in range(8):
        writer = start(WRITER, path, seed)
        first = writer.stdout.readline()
        time.sleep(chance.uniform(0, 0.15))
        writer.kill()
        *_, confirmed = (first + rest(writer)).split()
        now = asyncio.run(book(path))
        assert inconsistencies(path) == []
        assert now.revision >= int(confirmed)
        held = [domain for reservation in now.reservations for domain in reservation.domains]
        assert len(held) == len(set(held))
    assert now.revision > 0


CONFIRMING = (
    HEAD
    + """
import itertools
async def main(path, start):
    ledger = SqliteLedger(path)
    for number in itertools.count(int(start)):
        await ledger.reserve(wanted(f"gang-{number}", f"r{number}", size=2), 0, 1.0)
        print(number, flush=True)
asyncio.run(main(sys.argv[1], sys.argv[2]))
"""
)


def test_what_was_confirmed_before_a_kill_is_there_after_it(tmp_path):
    """A reservation that the caller was told of is in the book, whenever the process died."""
    path = tmp_path / "bayplan.db"
    confirmed = -1
    for _ in range(4):
        writer = start(CONFIRMING, path, confirmed + 1)
        writer.stdout.readline()
        confirmed += 1
        time.sleep(0.05)
        writer.kill()
        confirmed += rest(writer).count("\n")
        gangs = {reservation.gang for reservation in asyncio.run(book(path)).reservations}
        assert {f"gang-{number}" for number in range(confirmed + 1)} <= gangs
        assert len(gangs) <= confirmed + 2
        confirmed = len(gangs) - 1
