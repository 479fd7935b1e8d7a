"""A leader is killed in the middle of its moves: the next one continues; no move is lost or done twice."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.moving import (
    JOBS,
    ON,
    PODS,
    a_gang_that_waits_for_moves,
    bound,
    chosen,
    cordoned,
    event_messages,
    moving,
    pods_of,
)
from tests.e2e.processes import wait_until
from tests.e2e.replicas import racks_of, reservations
from tests.e2e.rollout import SYSTEM, Replica, Rollout
from tests.e2e.stage import Cluster
from webhook.kube.controller.leader import DURATION, lease_path

IN_THE_WAY = ("x1", "x2", "y1", "y2")
HOSTS = 4


@pytest.fixture
def rollout(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rollout]:
    """Two replicas on two racks of four nodes: two Jobs must move before the gang gets a rack."""
    with moving(cluster, tmp_path_factory.mktemp("killed"), hosts=HOSTS) as installed:
        installed.add()
        installed.add()
        with a_gang_that_waits_for_moves(installed, hosts=HOSTS):
            yield installed


def leader(rollout: Rollout) -> str:
    """The HOST_PID_CHANCE identity of the leading replica."""
    return str(rollout.api.get(lease_path(SYSTEM))["spec"]["holderIdentity"])


def uids(rollout: Rollout) -> set[str]:
    """The UIDs of the pods of movable Jobs that are not being deleted."""
    return {pod["metadata"]["uid"] for name in IN_THE_WAY for pod in pods_of(rollout, name)}


def kill(rollout: Rollout) -> Replica:
    """Kills the leader with SIGKILL."""
    pid = int(leader(rollout).split("_")[-2])
    (replica,) = (replica for replica in rollout.replicas if replica.process.popen.pid == pid)
    replica.process.popen.kill()
    rollout.balancer.ports.remove(replica.port)
    return replica


def test_the_next_leader_goes_on_and_nothing_is_lost_or_done_twice(rollout: Rollout) -> None:
    """Killed after the first of two evictions: its cordons are undone, a second Job moves, no third one."""
    before, first_leader = uids(rollout), leader(rollout)
    chosen(rollout, ON)
    wait_until(lambda: len(before - uids(rollout)) == 1, "the first eviction", 90, pause=0.02)
    killed = kill(rollout)
    assert killed.process.popen.wait(10) == -9
    assert len(before - uids(rollout)) == 1, "it was killed between the two"
    assert cordoned(rollout), "it had no time to uncordon"

    wait_until(lambda: leader(rollout) != first_leader, "the next leader", 6 * DURATION)
    (rack,) = racks_of(bound(rollout, "big", HOSTS))
    moved = [pod for name in IN_THE_WAY for pod in bound(rollout, name, 1)]
    assert racks_of(moved) == {"r1", "r2"} - {rack}
    assert len(before - {pod["metadata"]["uid"] for pod in moved}) == 2, "each was evicted once"
    wait_until(lambda: not cordoned(rollout), "the nodes to be uncordoned", 30)
    wait_until(lambda: "Defragmented" in event_messages(rollout, "big"), "the gang to be told", 30)

    on_nodes = [pod["spec"]["nodeName"] for pod in rollout.api.items(PODS)]
    assert len(on_nodes) == len(set(on_nodes)) == HOSTS + len(IN_THE_WAY), "each pod has a node of its own"
    names = {f"research/Job/{item['metadata']['name']}" for item in rollout.api.items(JOBS)}
    assert set(reservations(rollout.api)) == names
