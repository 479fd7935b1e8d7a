"""A long queue is told its positions without keeping the leader from its work."""

from __future__ import annotations

from tests.builders import gang
from tests.webhook.kube.state.test_cluster_watch import Nowhere
from webhook.kube.controller.controller import FAR_SECONDS, NEAR, NEAR_SECONDS, Controller
from webhook.kube.controller.gang_history import GangHistoryWriter
from webhook.kube.ledger.ledger import KubeLedger
from webhook.kube.state.cluster_watch import ClusterWatch
from webhook.kube.state.gangs import Gang, Ref
from webhook.kube.state.workload_watch import QueueWatch


def waiting(name: str) -> Gang:
    """A gang that waits."""
    ref = Ref("batch/v1", "Job", "team", name, f"uid-{name}")
    return Gang(gang(2, name=f"team/Job/{name}"), ref, 0.0, 0, True)


async def test_the_head_of_a_queue_is_told_its_place_soon_and_its_tail_seldom() -> None:
    """The first word comes at once to everyone."""
    now = [1000.0]
    api = Nowhere()
    watch = ClusterWatch(api)
    queue = QueueWatch(api, watch.news.set)
    controller = Controller(
        api, watch, queue, KubeLedger(api), GangHistoryWriter(api, "default"), lambda: now[0]
    )
    head, tail = waiting("head"), waiting("tail")
    told = [(controller._is_due(head, NEAR), controller._is_due(tail, NEAR + 1))]
    for later in (NEAR_SECONDS / 2, NEAR_SECONDS, FAR_SECONDS):
        now[0] = 1000.0 + later
        told.append((controller._is_due(head, NEAR), controller._is_due(tail, NEAR + 1)))
    assert told == [(True, True), (False, False), (True, False), (True, True)]
