"""What the metadata of stored objects says."""

from __future__ import annotations

import pytest

from webhook.workloads.stored import controller_of, reservation_ids, seconds


def test_the_controller_is_the_owner_that_says_so() -> None:
    """Other owners only keep the object from being collected."""
    owners = [{"name": "a"}, {"name": "b", "controller": True}, {"name": "c", "controller": False}]
    assert controller_of({"metadata": {"ownerReferences": owners}}) == owners[1]


@pytest.mark.parametrize("metadata", [{}, {"ownerReferences": None}, {"ownerReferences": [{"name": "a"}]}])
def test_an_object_without_a_controller_has_none(metadata: dict[str, object]) -> None:
    assert controller_of({"metadata": metadata}) == {}


def test_reservations_are_named_in_replica_order() -> None:
    """Empty parts are ignored."""
    assert reservation_ids({"bayplan.dev/reservation": "b,a,"}) == ("b", "a")
    assert reservation_ids({}) == ()


@pytest.mark.parametrize(
    "moment", ["2026-03-01T12:00:00Z", "2026-03-01T12:00:00.000000Z", "2026-03-01T13:00:00+01:00"]
)
def test_times_are_read_with_their_zone(moment: str) -> None:
    assert seconds(moment) == 1772366400.0


def test_no_time_is_the_epoch() -> None:
    assert seconds("") == 0.0
