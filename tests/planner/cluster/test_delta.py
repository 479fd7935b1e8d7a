"""A snapshot that is built from its predecessor and a delta gives the same plans."""

import pickle
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule

from planner.cluster import delta as deltas
from planner.cluster.delta import SnapshotDelta, apply_delta, delta
from planner.cluster.facts import with_records
from planner.cluster.hardware_update import with_hardware
from planner.cluster.snapshot import Snapshot
from planner.devices.claims import ClaimRequest, ResourceClaim
from planner.model.pod import BoundPod
from planner.model.reservation import Book
from planner.model.settings import Quota
from planner.persistent.persistent_map import PersistentMap
from planner.persistent.sequence_delta import Splice
from planner.planning.plan import plan
from planner.planning.reservation import reservation_for
from tests.builders import amounts, cluster, gang, node
from tests.planner.cluster.test_incremental import ASKED, DRAWING, NAMES, Events


def sent(former: Snapshot, latest: Snapshot) -> Snapshot:
    """The later snapshot as another process builds it from the bytes that it received."""
    difference = delta(former, latest)
    assert difference is not None
    return apply_delta(former, pickle.loads(pickle.dumps(difference)))


class Followed(Events):
    """Another process follows all events, sometimes several at once."""

    @initialize()
    def both_begin(self) -> None:
        self.follower, self.pending = self.moment, 0

    @rule(quota=st.integers(1, 3))
    def a_quota_changes(self, quota: int) -> None:
        quotas = {"team": Quota("team", {"pods": 9}, {"pods": quota})}
        self.moment = self.moment.evolve(
            base=replace(self.moment.base, quotas=quotas), changed_nodes=set(NAMES)
        )

    @invariant()
    def plans_the_same(self) -> None:
        self.pending += 1
        if self.pending % 3:
            return
        self.follower = sent(self.follower, self.moment)
        follower, moment = self.follower, self.moment
        assert (follower.reservations, follower.revision) == (moment.reservations, moment.revision)
        assert (dict(follower.nodes), follower.taken) == (dict(moment.nodes), moment.taken)
        assert sorted(follower.pods, key=str) == sorted(moment.pods, key=str)
        assert follower.base.quotas == moment.base.quotas
        for group in ASKED:
            assert plan(follower, group).to_json() == plan(moment, group).to_json()


TestFollowed = Followed.TestCase
TestFollowed.settings = settings(max_examples=12, stateful_step_count=20)


def test_without_a_change_the_delta_is_empty() -> None:
    """The follower keeps its snapshot with everything computed from it."""
    moment = cluster(DRAWING, ("block", "rack"))
    assert delta(moment, moment.with_book(Book(0, ()))) == SnapshotDelta(0)
    assert sent(moment, moment.with_book(Book(0, ()))) is moment


def test_only_what_changed_is_named() -> None:
    """One pod of many, and one reservation."""
    moment = cluster(DRAWING, ("block", "rack"))
    for number in range(3):
        group = gang(1, gpu=1, name=f"x/Job/g{number}", reserve="nodes")
        held = reservation_for(moment, group, plan(moment, group))
        assert held is not None
        moment = moment.with_reservation(held).with_pod(BoundPod(f"x/p{number}", "a1", amounts(gpu=1)))
    pod = BoundPod("x/p1", "a1", amounts(gpu=2))
    difference = delta(moment, moment.with_pod(pod).without("x/Job/g1"))
    assert difference == SnapshotDelta(0, pods=(pod,), reservations=(Splice(1, 1, ()),))


def test_of_many_claims_only_the_changed_one_is_sent() -> None:
    """A claim changes with each pod that starts: 20,000 of them are megabytes."""
    claims = {f"x/c{number}": ResourceClaim((ClaimRequest("gpu.nvidia.com", 1),)) for number in range(2000)}
    former = cluster(DRAWING, ("block", "rack"))
    former = with_hardware(former, with_records(former.base, {"claims.claims": claims}))
    allocated = replace(claims["x/c7"], allocated=(("gpu.nvidia.com", "a1", "gpu-0"),))
    changes = {"claims.claims": {"x/c7": allocated, "x/c8": None}}
    latest = with_hardware(former, with_records(former.base, changes))
    assert delta(former, latest) == SnapshotDelta(0, records=changes)
    expected = {**claims, "x/c7": allocated}
    del expected["x/c8"]
    assert dict(sent(former, latest).base.claims.claims) == expected


def test_the_order_of_reservations_is_kept() -> None:
    """Reservations may be listed in any order."""
    moment = cluster(DRAWING, ("block", "rack"))
    for name in ("x/Job/a", "x/Job/b"):
        group = gang(1, gpu=1, name=name, reserve="nodes")
        held = reservation_for(moment, group, plan(moment, group))
        assert held is not None
        moment = moment.with_reservation(held)
    turned = moment.with_book(Book(7, tuple(reversed(moment.reservations))))
    assert sent(moment, turned).reservations == turned.reservations


def test_other_trees_are_no_delta() -> None:
    """A change that rebuilds the trees is sent by a new fork."""
    assert delta(cluster(DRAWING, ("block", "rack")), cluster(DRAWING, ("rack",))) is None


def test_much_that_changed_is_no_delta(monkeypatch: pytest.MonkeyPatch) -> None:
    """Building the snapshot anew costs no more."""
    monkeypatch.setattr(deltas, "MANY", 2)
    moment = cluster(DRAWING, ("block", "rack"))
    changed = moment
    for name in ("a1", "a2", "a3"):
        changed = changed.with_node(replace(moment.nodes[name], cordoned=True))
    assert delta(moment, changed) is None
    assert delta(moment, changed.with_node(moment.nodes["a1"])) is not None


def test_a_node_that_comes_and_one_that_goes() -> None:
    """The delta has both nodes and the pods on them."""
    moment = cluster(DRAWING, ("block", "rack")).with_pod(BoundPod("x/p", "a1", amounts(gpu=1)))
    added = node("a9", labels={"block": "b1", "rack": "r1"}, gpu=4)
    changed = moment.without_node("a1").with_node(added).with_pod(BoundPod("x/q", "a9", amounts(gpu=1)))
    followed = sent(moment, changed)
    assert list(followed.nodes) == list(changed.nodes)
    assert followed.taken == changed.taken


@given(st.sampled_from((3, 2000)), st.lists(st.tuples(st.integers(0, 2100), st.booleans()), max_size=60))
def test_what_may_differ_between_two_mappings(size: int, events: list[tuple[int, bool]]) -> None:
    """All that does is names; of a large mapping that changed little, little else."""
    former = PersistentMap({number: (number,) for number in range(size)})
    latest = former
    for key, stays in events:
        latest = latest.changed(key, (key, "new") if stays else None)
    names = set(latest.may_differ(former))
    assert all(key in names for key in {*former, *latest} if former.get(key) is not latest.get(key))
    assert names == set(former.may_differ(latest))
    if size == 2000 and events:
        assert len(names) < 200


def test_a_mapping_does_not_differ_from_itself() -> None:
    """And from a plain one it may in all that either has."""
    mapping = PersistentMap({"a": 1})
    assert list(mapping.may_differ(mapping)) == []
    assert set(mapping.may_differ({"b": 2})) == {"a", "b"}
