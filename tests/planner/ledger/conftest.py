"""Fixtures for the tests of the ledger."""

from __future__ import annotations

import sqlite3

import pytest

from planner.ledger.sqlite import SqliteLedger


@pytest.fixture
def connections(monkeypatch):
    """The opened connections, for tests that make one of them fail."""
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
