"""Reservations that an object names are read before it is decided on: another replica may have made them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from planner.ledger.sqlite import SqliteLedger
from planner.model.reservation import Book, reservation_id
from tests.webhook.calls import Serve, example
from webhook.workloads.keys.annotation_keys import RESERVATION


class Asked(SqliteLedger):
    """A book that notes which reservations it is asked for."""

    names: tuple[str, ...] = ()

    async def book(self, now: float, names: Iterable[str] = ()) -> Book:
        """As ever."""
        self.names += tuple(names)
        return await super().book(now, names)


IDS = [reservation_id(f"research/Job/{number}") for number in range(40)]


@pytest.mark.parametrize(
    ("annotation", "read"),
    [
        ("", []),
        (IDS[0], IDS[:1]),
        (",".join(IDS[:2]), IDS[:2]),
        ("../../../api/v1/secrets," + IDS[0], IDS[:1]),
        (f"{IDS[0]}/status", IDS[:1]),
        (IDS[0].upper() + "," + IDS[0] + "0", []),
        (",".join(IDS), IDS[:32]),
    ],
)
async def test_what_an_annotation_names_is_read_if_it_is_a_reservation(
    serve: Serve, tmp_path: Path, annotation: str, read: list[str]
) -> None:
    """Only ids, and not more than a few of them: anybody may write the annotation."""
    ledger = Asked(tmp_path / "book.db")
    async with serve("superpod-32", ledger=ledger) as asked:
        job = example("job-two-nodes-one-rack")
        job["metadata"].setdefault("annotations", {})[RESERVATION] = annotation
        await asked.mutate(job)
    assert list(ledger.names) == read


async def test_a_dry_run_reads_none(serve: Serve, tmp_path: Path) -> None:
    """What its mutating call names for the validating call was not reserved, so there is nothing to read."""
    ledger = Asked(tmp_path / "book.db")
    async with serve("superpod-32", ledger=ledger) as asked:
        job = example("job-two-nodes-one-rack")
        job["metadata"].setdefault("annotations", {})[RESERVATION] = IDS[0]
        await asked.validate(job, dry_run=True)
    assert not ledger.names
