"""When the leader starts moves: the waiting times, and the time since the last moves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from planner.ledger.ledger import LedgerUnavailable
from tests.builders import gang
from tests.webhook.kube.moving.test_mover import NODES, Scene
from webhook.admission.configuration.settings import DEFAULT_SETTINGS, Settings
from webhook.kube.api.client import ApiError
from webhook.kube.cluster_objects import ClusterObjects
from webhook.kube.controller.actions.events import Recorder
from webhook.kube.moving.defragmenter import Defragmenter, ref_of
from webhook.kube.node_marks import CordonMark, _mark
from webhook.kube.runtime import ClusterRuntime
from webhook.kube.state.gangs import Ref
from webhook.placement.fair_order import WaitingGang

BIG, SMALL = "research/Job/big", "team/Job/small"


def settings(after: float, every: float = 60.0) -> Settings:
    """With these times."""
    return replace(DEFAULT_SETTINGS, moves=replace(DEFAULT_SETTINGS.moves, after=after, every=every))


@dataclass
class Queue:
    """The settings that are in force, by namespace and for the rest."""

    chosen: dict[str, Settings] = field(default_factory=dict)

    def in_force(self) -> Callable[[str], Settings]:
        """As the queue's watch gives them."""
        return lambda namespace: self.chosen.get(namespace, self.chosen.get("", DEFAULT_SETTINGS))


@dataclass
class Leading:
    """A leader since second 0, and the gangs that wait."""

    queue: Queue = field(default_factory=Queue)
    names: list[str] = field(default_factory=lambda: [BIG])
    seconds: float = 0.0

    def __post_init__(self) -> None:
        self.defragmenter = Defragmenter(clock=lambda: self.seconds)

    def waiting_gangs(self) -> list[WaitingGang]:
        """As the runtime gives them."""
        return [WaitingGang(gang(2, name=name), 0.0) for name in self.names]

    def overdue(self, seconds: float) -> set[str]:
        """For whom others may move then."""
        self.seconds = seconds
        return set(self.defragmenter._overdue(cast(ClusterRuntime, cast(Any, self))))


@pytest.fixture
def leading() -> Leading:
    """Moves after 30 s, once a minute."""
    return Leading(Queue({"": settings(30.0)}))


def test_without_the_parameter_no_gang_is_moved():
    """This is the default."""
    leading = Leading()
    assert leading.overdue(0) == leading.overdue(10_000_000) == set()


def test_a_new_leader_waits_as_long_as_between_two_sets_of_moves(leading: Leading):
    """Whatever the previous leader did last."""
    leading.overdue(0)
    assert leading.overdue(59) == set()
    assert leading.overdue(60) == {BIG}


def test_the_wait_counts_from_when_the_leader_first_saw_it(leading: Leading):
    """It starts again if the gang had a placement meanwhile."""
    leading.names = []
    leading.overdue(0)
    leading.names = [BIG]
    leading.overdue(50)
    assert leading.overdue(79) == set()
    assert leading.overdue(80) == {BIG}
    leading.names = []
    leading.overdue(81)
    leading.names = [BIG]
    assert leading.overdue(82) == set()


def test_the_wait_may_be_set_for_one_namespace(leading: Leading):
    """Gangs of other namespaces keep the default."""
    leading.names = [BIG, SMALL]
    leading.queue.chosen = {"team": settings(30.0), "": settings(0.0)}
    leading.overdue(0)
    assert leading.overdue(100) == {SMALL}


def test_the_object_of_a_gang_and_of_its_replica_is_found():
    """Events are told on it; of what was not listed on nobody."""
    metadata = {"name": "serve", "namespace": "team", "uid": "u"}
    item = {"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "metadata": metadata}
    seen = ClusterObjects(cast(Any, None), [item])
    for name in ("team/LeaderWorkerSet/serve", "team/LeaderWorkerSet/serve/3"):
        ref = ref_of(seen, name)
        assert ref is not None
        assert (ref.key, ref.uid) == ("team/LeaderWorkerSet/serve", "u")
    assert ref_of(seen, "team/Job/other") is None


def test_a_leaders_mark_is_told_from_an_administrators():
    """The next leader reverts a leader's cordon and leaves an administrator's."""
    for by in ("", "leader"):
        assert _mark(CordonMark("r1 is free", "", "2026-11-23T08:00:00Z", by).text()).by == by


@pytest.mark.parametrize("down", [False, True])
async def test_moves_that_an_unavailable_ledger_ends_leave_no_node_cordoned(down: bool) -> None:
    """The nodes are uncordoned at once, or if the API server is down too, as soon as it answers again, even
    if the watch has not shown yet that they are cordoned.
    """
    scene, before = Scene(), Scene()
    queue = Queue({"": settings(30.0)})
    shown = (await before.look()).snapshot
    runtime: Any = SimpleNamespace(api=scene.client, queue=queue, snapshot=lambda: shown)
    works = True

    async def answers(method: str, path: str) -> None:
        if not works and method == "PATCH" and path.startswith(NODES):
            raise ApiError(500, "InternalError", "etcdserver: request timed out")

    async def fails(*_: object) -> Any:
        nonlocal works
        works = not down
        raise LedgerUnavailable("reservations: the API server does not answer: timed out")

    scene.client.before = answers
    defragmenter = Defragmenter(look_seconds=0.0)
    vars(defragmenter)["_look"] = fails
    moves: Any = SimpleNamespace(moves=(), domains=(), nodes=("r1-a", "r1-b"), cost=SimpleNamespace(lost=0.0))
    ref, seen = Ref("batch/v1", "Job", "research", "big", "u"), await scene.look()
    await defragmenter._move(runtime, gang(2, name=BIG), moves, ref, seen, Recorder(scene.client))
    assert bool(scene.cordoned()) == down
    works = True
    if down:
        assert await defragmenter._tidied(runtime)
    assert scene.cordoned() == {}


async def test_the_log_tells_what_moves_cost(caplog: pytest.LogCaptureFixture) -> None:
    """As the event on the gang does, in the same words."""
    caplog.set_level("INFO", "bayplan")
    scene = Scene()

    async def fails(*_: object) -> Any:
        raise LedgerUnavailable("it does not answer")

    defragmenter = Defragmenter(look_seconds=0.0)
    vars(defragmenter)["_look"] = fails
    runtime: Any = SimpleNamespace(api=scene.client, queue=Queue())
    moves: Any = SimpleNamespace(moves=(), domains=(("r1",),), nodes=(), cost=SimpleNamespace(lost=7200.0))
    ref, seen = Ref("batch/v1", "Job", "research", "big", "u"), await scene.look()
    await defragmenter._move(runtime, gang(2, name=BIG), moves, ref, seen, Recorder(scene.client))
    assert "to make room in r1; 2.0 GPU-hours of work are lost\n" in caplog.text
