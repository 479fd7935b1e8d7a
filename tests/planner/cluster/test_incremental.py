"""A snapshot that was changed event by event gives the same plans as one that is built anew."""

import gc
from dataclasses import replace
from random import Random
from weakref import ref

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from planner.cluster import capacity, plan_cache
from planner.cluster.build import snapshot
from planner.cluster.snapshot import Snapshot
from planner.cluster.usage.occupancy import Pods
from planner.model.labels import Taint, Toleration
from planner.model.pod import BoundPod
from planner.model.reservation import Book
from planner.persistent.persistent_map import PersistentMap
from planner.planning.plan import plan
from planner.planning.reservation import reservation_for
from planner.search.domain_ranking import DomainRanking
from planner.search.packing.capacity_classes import CapacityClasses
from planner.search.space import search_space
from tests.builders import amounts, cluster, gang, node, pod_set, shape
from tests.exact.solver import random_instance

DRAWING = """
    b1/r1: a1 a2 a3 gpu=4
    b1/r2: a4 a5 a6 gpu=4
    b2/r3: c1 c2 c3 gpu=4
    b2/r4: c4 c5 gpu=4
    b2/: c6 gpu=4
"""
NAMES = ("a1", "a2", "a3", "a4", "a5", "a6", "c1", "c2", "c3", "c4", "c5", "c6")
TOLERANT = shape(gpu=2, cpu=1, tolerations=(Toleration("", "Exists"),))
ASKED = (
    gang(1, gpu=2, name="x/Job/one"),
    gang(3, gpu=4, name="x/Job/rack", required="rack"),
    gang(4, gpu=4, name="x/Job/two-racks"),
    gang(3, gpu=2, name="x/Job/shared", reserve="nodes"),
    gang(pod_set(2, TOLERANT, name="p"), pod_set(2, shape(gpu=1), name="q"), name="x/Job/mixed"),
    gang(pod_set(2, shape(gpu=4, selector={"disk": "nvme"})), name="x/Job/picky"),
    gang(7, gpu=4, name="x/Job/never", required="rack"),
)
WHERE = st.sampled_from(NAMES)


def anew(moment: Snapshot) -> Snapshot:
    """The same cluster, built anew, with no cached results."""
    return replace(
        snapshot(moment.nodes.values(), moment.topologies, tuple(moment.pods), moment.reservations),
        revision=moment.revision,
    )


class Events(RuleBasedStateMachine):
    """Nodes, pods and reservations are added, changed and removed; plans are made in between."""

    def __init__(self) -> None:
        super().__init__()
        self.moment = cluster(DRAWING, ("block", "rack"))
        self.gangs = 0

    @rule(name=WHERE, gpus=st.integers(1, 3), daemon=st.booleans())
    def a_pod_is_bound(self, name: str, gpus: int, daemon: bool) -> None:
        pod = BoundPod(f"y/p{gpus}", name, amounts(gpu=gpus, pods=1), daemon=daemon)
        self.moment = self.moment.with_pod(pod)

    @rule(place=st.integers(0, 100))
    def a_pod_ends(self, place: int) -> None:
        pods = sorted(self.moment.pods, key=lambda pod: (pod.node, pod.name))
        if pods:
            self.moment = self.moment.without_pod(pods[place % len(pods)])

    @rule(name=WHERE, change=st.sampled_from(("cordoned", "ready", "taint", "disk", "gpu", "rack")))
    def a_node_changes(self, name: str, change: str) -> None:
        old = self.moment.nodes.get(name) or node(name, labels={"block": "b2", "rack": "r4"}, gpu=4)
        changes = {
            "cordoned": {"cordoned": not old.cordoned},
            "ready": {"ready": not old.ready},
            "taint": {"taints": () if old.taints else (Taint("team"),)},
            "disk": {"labels": {**old.labels, "disk": "nvme"}},
            "gpu": {"allocatable": {**old.allocatable, "nvidia.com/gpu": 2}},
            "rack": {"labels": {**old.labels, "rack": "r2"}},
        }
        self.moment = self.moment.with_node(replace(old, **changes[change]))

    @rule(name=WHERE)
    def a_node_goes(self, name: str) -> None:
        if len(self.moment.nodes) > 6:
            self.moment = self.moment.without_node(name)

    @rule(which=st.integers(0, len(ASKED) - 1), carry=st.booleans())
    def a_gang_takes_its_place(self, which: int, carry: bool) -> None:
        self.gangs += 1
        group = replace(ASKED[which], name=f"z/Job/g{self.gangs}")
        taken = reservation_for(self.moment, group, plan(self.moment, group))
        if taken is not None:
            self.moment = self.moment.with_reservation(taken)
            if carry:
                pod = BoundPod(f"z/g{self.gangs}", taken.assignments[0].node, amounts(gpu=1), taken.id)
                self.moment = self.moment.with_pod(pod)

    @rule(place=st.integers(0, 100))
    def a_gang_goes(self, place: int) -> None:
        held = self.moment.reservations
        if held:
            self.moment = self.moment.without(held[place % len(held)].gang)

    @rule(kept=st.integers(0, 7))
    def the_book_is_read_again(self, kept: int) -> None:
        held = tuple(r for i, r in enumerate(self.moment.reservations) if kept & (1 << i % 3))
        self.moment = self.moment.with_book(Book(self.moment.revision + 1, held))

    @invariant()
    def plans_as_if_made_anew(self) -> None:
        fresh = anew(self.moment)
        assert self.moment.taken == fresh.taken
        assert (self.moment.opened, self.moment.holders) == (fresh.opened, fresh.holders)
        for group in ASKED:
            assert plan(self.moment, group) == plan(fresh, group)


class EventsInParts(Events):
    """The same, with every domain of more than two children searched in parts."""

    def __init__(self) -> None:
        self._patch = pytest.MonkeyPatch()
        self._patch.setattr(capacity, "WIDE", 2)
        self._patch.setattr(capacity, "CHUNK", 2)
        super().__init__()

    def teardown(self) -> None:
        self._patch.undo()


TestEvents = Events.TestCase
TestEvents.settings = settings(max_examples=12, stateful_step_count=15)
TestEventsInParts = EventsInParts.TestCase
TestEventsInParts.settings = TestEvents.settings


@pytest.mark.parametrize("count", [0, 1, 24, 25, 300, 9_216])
def test_a_row_in_parts_is_the_row(count):
    """The chunks keep the order, are few, and none is wide; a short row is one chunk."""
    parts = capacity.chunked([(place,) for place in range(count)], lambda some: ("part", *some))

    def leaves(part):
        return [leaf for child in part[1:] for leaf in leaves(child)] if part[0] == "part" else [part]

    def widths(part):
        return [len(part) - 1, *(w for child in part[1:] for w in widths(child))] if part[0] == "part" else []

    assert bool(parts) == (count > capacity.WIDE)
    if parts:
        assert [leaf for part in parts for leaf in leaves(part)] == [(place,) for place in range(count)]
        assert max([len(parts), *(w for part in parts for w in widths(part))]) <= capacity.WIDE


@pytest.mark.parametrize("width", [24, 2])
def test_the_highest_worth_of_a_level_is_that_of_the_domain_with_the_most_free_devices(monkeypatch, width):
    """At each level, inside each domain, whether its children are in parts or not."""
    monkeypatch.setattr(capacity, "WIDE", width)
    monkeypatch.setattr(capacity, "CHUNK", 2)

    def inside(domain):
        return [domain, *(inner for child in domain.children for inner in inside(child))]

    for seed in range(40):
        moment = random_instance(Random(seed), racks=6, hosts=6).snapshot
        (tree,) = moment.base.trees.values()
        for domain in inside(search_space(moment, tree, occupied=True).capacity):
            assert bool(domain.chunks) == (len(domain.children) > width)
            for level in {inner.level for inner in inside(domain)}:
                highest = max(inner.worth for inner in inside(domain) if inner.level == level)
                assert domain.highest_worth(level) == highest
                if domain.chunks and level > domain.level:
                    assert max(part.highest_worth(level) for part in domain.chunks) == highest


def test_a_used_rack_with_too_few_free_devices_is_not_looked_at(monkeypatch):
    """Twenty used racks with no two nodes alike: a first plan for a whole rack looks at the nodes of the free
    rack, and at a node of each level that it tries."""
    used = "\n".join(
        f"r{rack}: n{rack}-{host} cpu={64 + 4 * rack + host}" for rack in range(20) for host in range(4)
    )
    moment = cluster(used + "\nr20: free1 free2 free3 free4")
    for rack in range(20):
        moment = moment.with_pod(BoundPod(f"y/p{rack}", f"n{rack}-0", amounts(gpu=1, pods=1)))
    calls: list[object] = []
    host = CapacityClasses._host
    monkeypatch.setattr(CapacityClasses, "_host", lambda *asked: calls.append(asked) or host(*asked))
    assert plan(moment, gang(4, required="rack")).domain == ("r20",)
    assert len(calls) <= 4


def test_a_change_under_a_wide_root_is_worked_out_in_its_part_alone():
    """Ten times the racks, and the pods of one rack: not ten times as many domains are looked at anew."""

    def looked_at(racks: int) -> int:
        unlike = "\n".join(f"b{r}/r{r}: n{r}a n{r}b gpu=4 cpu={50 + r}" for r in range(racks))
        moment = cluster(unlike, ("block", "rack"))
        group = gang(2, gpu=4, required="rack")
        plan(moment, group)
        calls: list[int] = []
        with pytest.MonkeyPatch.context() as patch:
            best = DomainRanking.best
            patch.setattr(DomainRanking, "best", lambda *asked, **how: calls.append(1) or best(*asked, **how))
            plan(moment.with_pod(BoundPod("y/p", "n7a", amounts(gpu=1, pods=1))), group)
        return len(calls)

    assert looked_at(400) < 3 * looked_at(40)


def test_one_memory_serves_many_clusters():
    """Plans of other clusters and gangs leave nothing in the cache that changes a plan."""
    for seed in range(60):
        instance = random_instance(Random(seed), max_pods=6)
        first = plan(instance.snapshot, instance.group)
        for reserve in ("nodes", "none", "domain"):
            plan(instance.snapshot, replace(instance.group, reserve=reserve))
        assert (
            plan(instance.snapshot, instance.group) == first == plan(anew(instance.snapshot), instance.group)
        )


def test_the_cache_of_shapes_is_bounded(monkeypatch):
    """Only the last shapes are kept, and eviction changes no plan."""
    monkeypatch.setattr(plan_cache, "MAX_RESULTS", 60)
    moment = cluster(DRAWING, ("block", "rack"))
    for cores in range(1, 30):
        group = gang(pod_set(3, shape(gpu=1, cpu=cores)), required="rack")
        moment = moment.with_pod(BoundPod(f"y/p{cores}", "a1", amounts(cpu=1, pods=1)))
        assert plan(moment, group) == plan(anew(moment), group)
        assert moment.base.plan_cache.results < 120


def test_what_is_forgotten_is_freed_without_the_collector_of_cycles():
    """`bayplan serve` keeps the collector from all that plans remember; so nothing there may be a cycle."""
    gc.collect()
    gc.disable()
    try:
        moment = cluster(DRAWING, ("block", "rack"))
        for group in ASKED:
            plan(moment.with_pod(BoundPod("y/p", "a1", amounts(cpu=1, pods=1))), group)
        cache = moment.base.plan_cache
        values = [entry.value for lane in cache._lanes.values() for entry in lane.entries.values()]
        remembered = [ref(value) for value in values if hasattr(value, "__weakref__")]
        del values
        assert {type(reference()) for reference in remembered} >= {DomainRanking, CapacityClasses}
        for lane in cache._lanes.values():
            lane.entries.clear()
            lane.latest = None
        del lane
        assert not any(reference() for reference in remembered)
        whole = ref(moment.base)
        del moment, cache
        assert whole() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("count", [0, 50, 1_020, 3_000])
def test_a_sorted_mapping_stays_sorted_while_entries_come_and_go(count):
    """It is read after few changes and after many."""
    random, plain = Random(2), {n: n for n in range(count)}
    mapping: PersistentMap[int, int] = PersistentMap(dict(plain), order=int.__neg__)
    for step in range(2_000):
        key, value = random.randrange(count + 500), random.choice((None, step))
        mapping = mapping.changed(key, value)
        plain.pop(key, None)
        if value is not None:
            plain[key] = value
        if not random.randrange(1 + step % 100 * 10):
            assert list(mapping.items()) == sorted(plain.items(), reverse=True)
    assert list(mapping.items()) == sorted(plain.items(), reverse=True)


@pytest.mark.parametrize("count", [0, 50, 1_020, 3_000])
def test_a_mapping_with_changes_is_the_mapping_that_a_dict_would_be(count):
    """Added, replaced and removed entries, over several merges; the former mapping stays as it was."""
    random, plain = Random(1), {n: n for n in range(count)}
    mapping: PersistentMap[int, int] = PersistentMap(dict(plain))
    for step in range(400):
        before, copy = mapping, dict(plain)
        key, value = random.randrange(count + 30), random.choice((None, step))
        mapping = mapping.changed(key, value)
        plain.pop(key, None)
        if value is not None:
            plain[key] = value
        assert dict(before.items()) == copy
        assert (dict(mapping.items()), len(mapping)) == (plain, len(plain))
        assert (mapping.get(key, "none"), key in mapping) == (plain.get(key, "none"), key in plain)


def test_pods_are_known_by_node_and_by_the_reservations_that_they_carry():
    """When the last pod of a reservation leaves a node, the node is removed from the index."""
    first, other = BoundPod("x/1", "n", {}, "bp-1,bp-2"), BoundPod("x/2", "n", {}, "bp-1")
    pods = Pods.of((first, other))
    assert pods.without_pod(first).carriers == {"bp-1": frozenset("n")}
    assert pods.without_pod(first).without_pod(other).carriers == {}
    assert (len(pods), first in pods, list(pods.without_pod(first))) == (2, True, [other])


def test_the_pods_of_a_gang_carry_its_id_and_are_in_its_namespace():
    """A copy of the id in another namespace means nothing; they come node by node, without all others."""
    own = [BoundPod(f"x/{n}", node, {}, "bp-1") for n, node in enumerate("nm")]
    others = [BoundPod("y/1", "n", {}, "bp-1"), BoundPod("x/3", "n", {}, "bp-2"), BoundPod("x/4", "k", {})]
    assert [pod.name for pod in Pods.of([*others, *own]).of_gang("x/Job/a", "bp-1")] == ["x/1", "x/0"]
