"""What the runner of actions reports besides them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.builders import gang, racks
from tests.webhook.kube.controller.actions.test_events import Written
from tests.webhook.kube.worlds import NOW, booked, pod, waiting, work, world
from webhook.kube.controller.actions import events, runner
from webhook.kube.controller.actions.runner import ActionRunner
from webhook.kube.controller.gang_history import GangHistoryWriter
from webhook.kube.controller.records import RoundRecords
from webhook.kube.controller.steps import Action, LeftUnbound
from webhook.kube.ledger.ledger import KubeLedger

GANGS = [gang(1, name=f"default/Job/{name}", gpu=1, reserve="nodes") for name in "abcdefgh"]
WAITING = [gang(1, name=f"default/Job/{name}") for name in "vwxyz"]
WORLD = world(booked(racks(1, 8), *GANGS), works=tuple(map(work, GANGS)))


class WithKueue(Written):
    """An API server with Kueue, which counts how often Workloads are listed."""

    def __init__(self) -> None:
        super().__init__()
        self.lists = 0

    async def get(self, path: str, **query: str) -> dict[str, Any]:
        """Discovery."""
        version = {"version": "v1beta2"}
        group = {"name": "kueue.x-k8s.io", "preferredVersion": version, "versions": [version]}
        return {"groups": [group], "resources": [{"name": "workloads"}]}

    async def list(
        self, path: str, keep: Callable[[dict[str, Any]], Any] = dict, **query: str
    ) -> tuple[list[Any], str]:
        """No Workloads."""
        self.lists += 1
        return [], "1"


class Rounds:
    """Rounds without actions on a cluster of gangs that hold places."""

    def __init__(self) -> None:
        self.api = WithKueue()
        self.again = 0
        self.runner = ActionRunner(
            self.api, KubeLedger(self.api), GangHistoryWriter(self.api, "ns"), RoundRecords(), lambda: NOW,
            self._look_again, tolerated=False,
        )  # fmt: skip

    def _look_again(self) -> None:
        self.again += 1

    async def events(self, *actions: Action) -> int:
        """How many events one round writes."""
        before = len(self.api.names)
        await self.runner.run(actions, WORLD)
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


async def test_why_gangs_wait_at_kueues_gate_is_read_once_for_all_gangs_of_a_namespace() -> None:
    """Also if they hold no place yet. Thousands may wait there, and each would list thousands."""
    rounds = Rounds()
    left = [LeftUnbound(waiting(group), (pod(f"{group.name[-1]}-0", held_back=True),)) for group in WAITING]
    for _ in range(3):
        await rounds.events(*left)
    assert rounds.api.lists == 1
