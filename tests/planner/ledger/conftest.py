"""What several tests of the ledger begin with."""

from __future__ import annotations

import sqlite3

import pytest

from planner.ledger.sqlite import SqliteLedger


@pytest.fixture
def connections(monkeypatch):
    """The connections that are opened, for a test that brings one of them into trouble."""
    opened = []
    connect = sqlite3.connect

    def recorded(*args, **options):
        opened.append(connect(*args, **options))
        return opened[-1]

    monkeypatch.setattr(sqlite3, "connect", recorded)
    return opened


@pytest.fixture
async def ledger(connections, tmp_path):
    """An empty ledger in a file."""
    empty = SqliteLedger(tmp_path / "bayplan.db")
    yield empty
    await empty.close()
