"""What the runner of actions reports besides them."""

from __future__ import annotations

import pytest

from tests.builders import gang, racks
from tests.webhook.kube.controller.actions.test_events import Written
from tests.webhook.kube.worlds import NOW, booked, work, world
from webhook.kube.controller.actions import events, runner
from webhook.kube.controller.actions.runner import ActionRunner
from webhook.kube.controller.gang_history import GangHistoryWriter
from webhook.kube.controller.records import RoundRecords
from webhook.kube.ledger.ledger import KubeLedger

GANGS = [gang(1, name=f"default/Job/{name}", gpu=1, reserve="nodes") for name in "abcdefgh"]
WORLD = world(booked(racks(1, 8), *GANGS), works=tuple(map(work, GANGS)))


class Rounds:
    """Rounds without actions on a cluster of gangs that hold places."""

    def __init__(self) -> None:
        self.api = Written()
        self.again = 0
        self.runner = ActionRunner(
            self.api, KubeLedger(self.api), GangHistoryWriter(self.api, "ns"), RoundRecords(), lambda: NOW,
            self._look_again, tolerated=False,
        )  # fmt: skip

    def _look_again(self) -> None:
        self.again += 1

    async def events(self) -> int:
        """How many events one round writes."""
        before = len(self.api.names)
        await self.runner.run([], WORLD)
        return len(self.api.names) - before


async def test_places_are_reported_once_even_if_they_are_more_than_the_events_that_are_remembered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each round of a leader with more gangs than that would write an event for every gang."""
    monkeypatch.setattr(events, "KEPT", len(GANGS) - 1)
    rounds = Rounds()
    assert [await rounds.events() for _ in range(3)] == [len(GANGS), 0, 0]


async def test_a_new_leader_reports_the_places_of_thousands_of_gangs_in_several_rounds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Other gangs are not kept waiting for that."""
    monkeypatch.setattr(runner, "MOST_TOLD", 3)
    rounds = Rounds()
    assert [await rounds.events() for _ in range(4)] == [3, 3, 2, 0]
    assert rounds.again == 2
