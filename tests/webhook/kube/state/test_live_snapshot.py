"""The incrementally updated snapshot equals one that is built anew from all objects."""

from __future__ import annotations

import gc
import random
import weakref
from dataclasses import replace

import pytest

from planner.cluster.snapshot import Snapshot
from planner.manifests.numa import numa_from
from planner.model.errors import Where
from planner.model.labels import Taint
from planner.model.node import Node
from planner.model.pod import BoundPod
from planner.model.reservation import Book
from planner.planning.plan import plan
from planner.planning.reservation import reservation_for
from tests.builders import amounts, gang, node
from webhook.kube.state.live_snapshot import LiveSnapshot
from webhook.policy.engine.device_selectors import read_cluster

RACK, ZONE = "topology.kubernetes.io/rack", "topology.kubernetes.io/zone"
ASKS = (gang(2), gang(4, required=RACK), gang(9), gang(3, gpu=3))


def topology(*levels: str) -> dict[str, object]:
    """A Topology object of these levels."""
    spec = {"levels": [{"nodeLabel": level} for level in (*levels, "kubernetes.io/hostname")]}
    return {
        "apiVersion": "kai.scheduler/v1alpha1",
        "kind": "Topology",
        "metadata": {"name": "t"},
        "spec": spec,
    }


def numa(name: str, gpus: int) -> dict[str, object]:
    """A NodeResourceTopology of one zone."""
    amount = str(gpus)
    resource = {"name": "nvidia.com/gpu", "capacity": amount, "allocatable": amount, "available": amount}
    return {
        "apiVersion": "topology.node.k8s.io/v1alpha2",
        "kind": "NodeResourceTopology",
        "metadata": {"name": name},
        "topologyPolicies": ["SingleNUMANodePodLevel"],
        "zones": [{"name": "node-0", "type": "Node", "resources": [resource]}],
    }


def host(number: int, rack: int) -> Node:
    """A node in a rack and zone."""
    return node(f"n{number}", labels={RACK: f"r{rack}", ZONE: f"z{rack // 3}"})


class World:
    """What is there, the picture of it, and ways to change both."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.nodes = {f"n{place}": host(place, place // 4) for place in range(24)}
        self.pods: dict[str, BoundPod] = {}
        self.topologies: list[dict[str, object]] = [topology(ZONE, RACK)]
        self.zones: dict[str, object] = {}
        """The NUMA zones, by node."""
        self.picture = self._picture()
        self.book = Book(0, ())
        self.count = 0

    def _picture(self) -> LiveSnapshot:
        return LiveSnapshot(self.nodes, self.pods, lambda: read_cluster([("", self.topologies)]).base)

    def anew_picture(self) -> LiveSnapshot:
        """The picture that a reader of all of it makes."""
        picture = self._picture()
        for name, zones in self.zones.items():
            picture.record_changed("numa", name, zones)
        return picture

    def anew(self) -> Snapshot:
        """The snapshot of that picture."""
        return self.anew_picture().snapshot()

    def tell_zones(self, name: str, gpus: int | None) -> None:
        """A node's kubelet exports its NUMA zones; with None, it no longer does."""
        record = numa_from(numa(name, gpus), Where()) if gpus else None
        if record is None:
            self.zones.pop(name, None)
        else:
            self.zones[name] = record
        self.picture.record_changed("numa", name, record)

    def change(self) -> None:
        """Something happens."""
        self.chance.choice(
            (self._pod, self._pod, self._pod_goes, self._node, self._node_goes, self._relabel, self._word)
        )()

    def _pod(self) -> None:
        self.count += 1
        held = self.chance.choice(self.book.reservations).id if self.book.reservations else ""
        name, where = f"a/p{self.count}", self.chance.choice(list(self.nodes))
        requests = amounts(gpu=self.chance.randrange(5), cpu=1)
        self.pods[name] = BoundPod(name, where, requests, reservation=self.chance.choice(("", held)))
        self.picture.pod_changed(name)

    def _pod_goes(self) -> None:
        if self.pods:
            name = self.chance.choice(list(self.pods))
            del self.pods[name]
            self.picture.pod_changed(name)

    def _node(self) -> None:
        name = f"n{self.chance.randrange(30)}"
        present = self.nodes.get(name) or host(int(name[1:]), self.chance.randrange(6))
        keys = self.chance.choice(((), ("x",), ("node.kubernetes.io/unschedulable",)))
        taints = tuple(Taint(key, "", "NoSchedule") for key in keys)
        self.nodes[name] = replace(present, cordoned=self.chance.random() < 0.3, taints=taints)
        self.picture.node_changed(name)

    def _node_goes(self) -> None:
        if self.chance.random() < 0.5:
            name = self.chance.choice(list(self.nodes))
            del self.nodes[name]
            self.picture.node_changed(name)

    def _relabel(self) -> None:
        name = self.chance.choice(list(self.nodes))
        rack = self.chance.randrange(6)
        self.nodes[name] = replace(self.nodes[name], labels=host(int(name[1:]), rack).labels)
        self.picture.node_changed(name)

    def _word(self) -> None:
        kind = self.chance.randrange(3)
        if kind == 0:
            self.tell_zones(f"n{self.chance.randrange(24)}", self.chance.choice((4, 8, None)))
            return
        if kind == 1 and self.topologies:
            self.topologies.clear()
        else:
            self.topologies[:] = [topology(*self.chance.choice(((ZONE, RACK), (RACK,))))]
        self.picture.redescribe()

    def reserve(self, snapshot: Snapshot) -> None:
        """A gang takes its place, or another one gives it back."""
        self.count += 1
        if self.book.reservations and self.chance.random() < 0.3:
            rest = self.book.reservations[1:]
        else:
            asked = replace(self.chance.choice(ASKS), name=f"a/Job/g{self.count}")
            taken = reservation_for(snapshot, asked, plan(snapshot, asked))
            rest = (*self.book.reservations, *((taken,) if taken else ()))
        self.book = Book(self.book.revision + 1, rest)


@pytest.mark.parametrize("seed", range(12))
def test_after_any_changes_every_plan_is_the_one_of_a_picture_made_anew(seed: int) -> None:
    """Pods, nodes, labels, topologies and NUMA zones come, change and go, with a book of reservations."""
    world = World(random.Random(seed))
    for _ in range(40):
        for _ in range(world.chance.choice((0, 1, 1, 3, 12))):
            world.change()
        kept, fresh = (
            snapshot.with_book(world.book) for snapshot in (world.picture.snapshot(), world.anew())
        )
        assert (kept.nodes, kept.topologies) == (fresh.nodes, fresh.topologies)
        assert sorted(pod.name for pod in kept.pods) == sorted(pod.name for pod in fresh.pods)
        assert (kept.taken, kept.holders, kept.opened) == (fresh.taken, fresh.holders, fresh.opened)
        assert kept.base.numa == fresh.base.numa
        for asked in ASKS:
            assert plan(kept, asked) == plan(fresh, asked)
        world.reserve(kept)


def test_a_pod_that_comes_leaves_all_else_as_it_was_worked_out() -> None:
    """The trees are the same objects, so nothing is rebuilt."""
    world = World(random.Random(1))
    before = world.picture.snapshot()
    world.pods["a/p"] = BoundPod("a/p", "n1", amounts(gpu=8))
    world.picture.pod_changed("a/p")
    after = world.picture.snapshot()
    assert after is not before
    assert after.base is before.base
    assert after.taken == {"n1": amounts(gpu=8)}


def test_a_node_that_is_cordoned_leaves_the_trees_as_they_are() -> None:
    """Its domain does not change."""
    world = World(random.Random(1))
    before = world.picture.snapshot()
    world.nodes["n1"] = replace(world.nodes["n1"], cordoned=True)
    world.picture.node_changed("n1")
    trees = world.picture.snapshot().base.trees
    assert all(trees[name].root is tree.root for name, tree in before.base.trees.items())


def test_numa_zones_that_change_leave_the_trees_as_they_are() -> None:
    """A kubelet's exporter tells of zones with every pod."""
    world = World(random.Random(1))
    before = world.picture.snapshot()
    world.tell_zones("n1", 4)
    after = world.picture.snapshot()
    assert all(after.base.trees[name] is tree for name, tree in before.base.trees.items())
    assert list(after.base.numa) == ["n1"]


def test_without_a_change_the_snapshot_is_the_same() -> None:
    """A second request for it costs nothing."""
    world = World(random.Random(1))
    assert world.picture.snapshot() is world.picture.snapshot()


class Ring:
    """An object that refers to itself: only the cycle collector frees it."""

    def __init__(self) -> None:
        self.own = self


def test_what_has_ended_is_freed_when_the_picture_is_made_anew() -> None:
    """The picture is excluded from the collector for good; so would be what ended shortly before."""
    world = World(random.Random(1))
    world.picture.snapshot()
    gc.disable()
    try:
        ended = weakref.ref(Ring())
        for number in range(8):
            world.nodes[f"x{number}"] = host(100 + number, 0)
            world.picture.node_changed(f"x{number}")
        world.picture.snapshot()
        assert ended() is None
    finally:
        gc.enable()
        gc.unfreeze()
