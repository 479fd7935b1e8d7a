"""Kueue assigns, moves and takes back whatever it likes, beside gangs of ours: no place has two holders.

Kueue knows nothing of our holds here, so that it often assigns what is held: the worst that it could do.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import combinations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from planner.cluster.usage.occupancy import used_by
from planner.ledger.conflicts import NO_HEADROOM, RecordedReservation, in_the_way, judge
from planner.model.names import kind_of
from planner.model.podgroup import PodGroup
from planner.model.reservation import KUEUE_KIND, Reservation
from planner.planning.plan import plan
from planner.planning.reservation import reservation_for
from tests.builders import gang, racks
from tests.webhook.kube.kueue_worlds import assigned, bound, seats
from tests.webhook.kube.worlds import NOW, work, world
from tests.webhook.kube.worlds import pod as unbound_pod
from webhook.kube.controller.reconcile import reconcile
from webhook.kube.controller.steps import Adopt, Release
from webhook.kube.state.gangs import Unbound
from webhook.kube.state.kueue_places import KueuePlace

NODES = [f"r{rack}-n{host}" for rack in (1, 2) for host in (1, 2, 3)]
WORKLOADS = st.sampled_from(["v", "w", "x"])
JOBS = st.sampled_from(["a", "b", "w"])
"""`w` is both: the Workload of that name is for the Job."""

LOOKS = st.booleans()
"""Whether the controller looks at once, or only when more has happened."""

COUNTS = st.dictionaries(st.sampled_from(NODES), st.integers(1, 4), min_size=1, max_size=3)


class Kueue(RuleBasedStateMachine):
    """Two racks of three nodes of eight GPUs."""

    def __init__(self) -> None:
        super().__init__()
        self.snapshot = racks(2, 3)
        self.places: dict[str, KueuePlace] = {}
        self.jobs: dict[str, PodGroup] = {}
        self.pods = 0
        self.new_pods: dict[str, Unbound] = {}
        """By Workload a pod that was made for one which had failed, and is bound nowhere yet."""

    @rule(name=WORKLOADS, counts=COUNTS, gpu=st.sampled_from([1, 2, 8]), looks=LOOKS)
    def assign(self, name: str, counts: dict[str, int], gpu: int, looks: bool) -> None:
        """A new Workload, or another assignment of one that asks for the same."""
        former = self.places.get(name)
        gpus = former.pod_sets[0].requests["nvidia.com/gpu"] if former else gpu
        self.places[name] = assigned(name, counts, gpu=gpus, owner=name)
        if looks:
            self.look()

    @precondition(lambda self: self.places)
    @rule(data=st.data())
    def take_back(self, data: st.DataObject) -> None:
        """Preempted or finished; its pods go with it."""
        name = data.draw(st.sampled_from(sorted(self.places)))
        self._end_pods(self.places.pop(name))
        self.look()

    @precondition(lambda self: self.places)
    @rule(data=st.data())
    def fail(self, data: st.DataObject) -> None:
        """All pods of a group fail, and Kueue keeps its nodes, or assigns them again, for others."""
        name = data.draw(st.sampled_from(sorted(self.places)))
        self._end_pods(self.places[name])
        self.places[name] = replace(self.places[name], waits_for_pods=True)
        self.look()

    @precondition(lambda self: self.places)
    @rule(data=st.data())
    def make_again(self, data: st.DataObject) -> None:
        """Somebody makes a pod for a Workload."""
        name = data.draw(st.sampled_from(sorted(self.places)))
        self.new_pods[name] = unbound_pod(name, name, gated=False)
        self.look()

    def _end_pods(self, place: KueuePlace) -> None:
        self.new_pods.pop(place.ref.name, None)
        for pod in list(self.snapshot.pods):
            if pod.name.startswith(f"default/{place.ref.name}-"):
                self.snapshot = self.snapshot.without_pod(pod)

    @rule(name=JOBS, nodes=st.integers(1, 3), mode=st.sampled_from(["domain", "nodes"]), looks=LOOKS)
    def place(self, name: str, nodes: int, mode: str, looks: bool) -> None:
        """A Job of ours, if it has a place now."""
        group = gang(nodes, name=f"default/Job/{name}", required="rack", reserve=mode)  # type: ignore[arg-type]
        if self.snapshot.holding(group.name) is not None:
            return
        held = reservation_for(self.snapshot, group, plan(self.snapshot, group))
        if held is not None:
            self.jobs[name] = group
            claimed = replace(held, created=NOW - 60, state="claimed", owner_uid=f"uid-{name}")
            self.snapshot = self.snapshot.with_reservation(claimed)
        if looks:
            self.look()

    @precondition(lambda self: self.jobs)
    @rule(data=st.data())
    def finish(self, data: st.DataObject) -> None:
        """A Job of ours ends."""
        name = data.draw(st.sampled_from(sorted(self.jobs)))
        self.snapshot = self.snapshot.without(self.jobs.pop(name).name)
        self.look()

    @rule()
    def look(self) -> None:
        """A round of the controller; what it writes is judged as the ledger judges it."""
        works = tuple(work(group) for group in self.jobs.values())
        seen = replace(
            world(self.snapshot, works=works, pods=tuple(self.new_pods.values())),
            kueue={place.gang: place for place in self.places.values()},
        )
        for action in reconcile(seen):
            if isinstance(action, Release):
                self.snapshot = self.snapshot.without(action.reservation.gang)
            elif isinstance(action, Adopt):
                self._written(action)
        for held in self.snapshot.reservations:
            assert kind_of(held.gang) != KUEUE_KIND or held.gang in seen.kueue, "the hold ends with it"
            assert kind_of(held.gang) != KUEUE_KIND or self._has_use(held), "somebody uses it, or may"
        holders = {"default/Job/w", "default/KueueWorkload/w"}
        assert not holders <= {held.gang for held in self.snapshot.reservations}, (
            "one holder for one Workload"
        )

    def _has_use(self, held: Reservation) -> bool:
        """Whether Kueue waits for nobody's pods in vain."""
        name = held.gang.rpartition("/")[2]
        stands = any(pod.name.startswith(f"default/{name}-") for pod in self.snapshot.pods)
        return stands or name in self.new_pods or not self.places[name].waits_for_pods

    def _written(self, action: Adopt) -> None:
        recorded = [RecordedReservation(held, 0) for held in self.snapshot.reservations]
        outcome = judge(action.reservation, 0, recorded, action.headroom)
        assert isinstance(outcome, Reservation), "what is adopted is free"
        if outcome.state != "claimed":
            outcome = replace(outcome, state="claimed", owner_uid=action.place.ref.uid)
        self.snapshot = self.snapshot.with_reservation(outcome)

    @precondition(lambda self: self.places)
    @rule(data=st.data())
    def bind(self, data: st.DataObject) -> None:
        """A pod takes a seat that is held for it, and nobody sits on."""
        place = self.places[data.draw(st.sampled_from(sorted(self.places)))]
        gpus = place.pod_sets[0].requests["nvidia.com/gpu"]
        taken = Counter(
            pod.node for pod in self.snapshot.pods if pod.name.startswith(f"default/{place.ref.name}-")
        )
        free = [node for node, count in seats(self.snapshot, place.gang).items() if count > taken[node]]
        if free:
            self.pods += 1
            pod = bound(place, data.draw(st.sampled_from(sorted(free))), self.pods, gpu=gpus)
            self.snapshot = self.snapshot.with_pod(pod)

    @invariant()
    def nothing_has_two_holders(self) -> None:
        """No two reservations exclude each other, and no node has more promised than it has."""
        for reservation, other in combinations(self.snapshot.reservations, 2):
            alone = [RecordedReservation(other, 0)]
            assert in_the_way(reservation, 0, alone, NO_HEADROOM) is None
        promised = Counter[str]()
        for held in self.snapshot.reservations:
            for node, amounts in used_by(held).items():
                promised[node] += amounts.get("nvidia.com/gpu", 0)
        assert all(gpus <= 8 for gpus in promised.values()), promised


Kueue.TestCase.settings = settings(max_examples=100, stateful_step_count=20, deadline=None)
TestKueue = Kueue.TestCase
