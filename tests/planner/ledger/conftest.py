"""What several tests of the ledger begin with."""

import pytest

from planner.ledger.sqlite import SqliteLedger


@pytest.fixture
async def ledger(tmp_path):
    """An empty ledger in a file."""
    made = SqliteLedger(tmp_path / "bayplan.db")
    yield made
    await made.close()
