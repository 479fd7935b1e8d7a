"""Tests the earliest place of a waiting gang: a gang that uses none of it does not delay the waiting one."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from planner.cluster.snapshot import Snapshot
from planner.model.pod import BoundPod
from planner.model.podgroup import PodGroup
from planner.planning.first_place import FirstPlace, first_place
from planner.planning.plan import plan
from planner.planning.reservation import reservation_for
from tests.builders import amounts, cluster, gang, pod_set, shape


def drawn(*racks: str, gpu: int = 4) -> Snapshot:
    """Racks as rows of digits, one digit per node for its used GPUs: `drawn("44", "04")`."""
    lines, pods = [], []
    for number, row in enumerate(racks, 1):
        names = [f"r{number}-n{place}" for place in range(1, len(row) + 1)]
        lines.append(f"r{number}: {' '.join(names)} gpu={gpu}")
        pods += [
            BoundPod(f"x/on-{name}", name, amounts(gpu=int(used), pods=1))
            for name, used in zip(names, row, strict=True)
            if used != "0"
        ]
    return cluster("\n".join(lines), pods=pods)


def waiting(pods: int, *, gpu: int = 4, reserve: str = "auto", required: str = "rack") -> PodGroup:
    """A gang in the queue."""
    return gang(pods, name="team/Job/waits", gpu=gpu, reserve=reserve, required=required)  # type: ignore[arg-type]


def place(snapshot: Snapshot, group: PodGroup) -> FirstPlace:
    """The earliest place of a gang that has none now."""
    assert plan(snapshot, group).decision == "queued"
    target = first_place(snapshot, group)
    assert target is not None
    return target


def test_a_gang_waits_for_the_rack_in_which_the_least_must_end() -> None:
    """Three GPUs are in its way in the first rack, one in the second."""
    target = place(drawn("30", "10"), waiting(2))
    assert (target.reservation.domain, target.ends, target.gpus) == (("r2",), (("x/on-r2-n1", 1),), 1)


def test_of_a_rack_only_what_is_in_the_way_must_end() -> None:
    """Two of four nodes are enough, and one is free."""
    target = place(drawn("4430", "4444"), waiting(2, reserve="nodes"))
    assert (target.ends, target.reservation.touched) == ((("x/on-r1-n3", 3),), {"r1-n3", "r1-n4"})


def test_for_a_gang_that_will_hold_nothing_what_it_needs_is_kept_while_it_waits() -> None:
    """Without this, gangs behind it could take each GPU that becomes free."""
    target = place(drawn("30", "10"), waiting(2, reserve="none"))
    assert target == place(drawn("30", "10"), waiting(2, reserve="nodes"))


def test_who_holds_whole_domains_waits_for_the_emptiest() -> None:
    """Either rack has two free nodes, but no other gang may be in it."""
    snapshot = drawn("0000", "0000")
    for name, gpu, rack in (("large", 4, "r1"), ("small", 3, "r2")):
        group = gang(
            pod_set(1, shape(gpu=gpu, selector={"rack": rack})), name=f"x/Job/{name}", reserve="nodes"
        )
        held = reservation_for(snapshot, group, plan(snapshot, group))
        assert held is not None
        snapshot = snapshot.with_reservation(held)
    target = place(snapshot, waiting(2, reserve="domain"))
    assert (target.reservation.domain, target.ends) == (("r2",), (("x/Job/small", 3),))


def test_without_a_required_level_the_least_of_all_nodes_must_end() -> None:
    """It need not be in one rack."""
    target = place(drawn("044", "441"), waiting(2, required=""))
    assert target.reservation.touched == {"r1-n1", "r2-n3"}


def test_of_equal_racks_it_is_the_first() -> None:
    """The same for every replica."""
    assert place(drawn("44", "44"), waiting(2)).reservation.domain == ("r1",)


def test_a_rack_that_memory_rules_out_is_passed_over() -> None:
    """The second rack has more in the way of GPUs, and the only nodes with memory enough."""
    snapshot = cluster(
        "r1: a b memory=64 \n r2: c d",
        pods=[BoundPod("x/a", "a", amounts(gpu=1)), *(BoundPod(f"x/{n}", n, amounts(gpu=8)) for n in "cd")],
    )
    group = replace(waiting(2), pod_sets=(pod_set(2, shape(gpu=8, memory=128)),))
    assert place(snapshot, group).reservation.domain == ("r2",)


def test_nodes_that_take_no_pods_are_no_place() -> None:
    """The first rack is free, and cordoned."""
    snapshot = drawn("00", "44")
    for name in ("r1-n1", "r1-n2"):
        snapshot = snapshot.with_node(replace(snapshot.nodes[name], cordoned=True))
    assert place(snapshot, waiting(2)).reservation.domain == ("r2",)


RACKS = st.lists(st.text("01234", min_size=3, max_size=3), min_size=1, max_size=4)


@given(
    RACKS,
    st.integers(1, 4),
    st.sampled_from((1, 2, 4)),
    st.sampled_from(("auto", "nodes", "domain", "none")),
    st.sampled_from(("rack", "")),
    st.lists(st.tuples(st.integers(1, 2), st.sampled_from((1, 2, 4))), min_size=1, max_size=3),
)
@settings(max_examples=40)
def test_whoever_goes_ahead_beside_the_first_place_delays_the_gang_by_nothing(
    rows: list[str], pods: int, gpu: int, reserve: str, required: str, others: list[tuple[int, int]]
) -> None:
    """What had to end for it before still suffices."""
    snapshot, group = drawn(*rows), waiting(pods, gpu=gpu, reserve=reserve, required=required)
    assume(plan(snapshot, group).decision == "queued")
    before = place(snapshot, group)
    for number, (count, size) in enumerate(others):
        newcomer = gang(count, name=f"new/Job/{number}", gpu=size, reserve="nodes")
        guarded = snapshot.with_reservation(before.reservation)
        taken = reservation_for(guarded, newcomer, plan(guarded, newcomer))
        if taken is not None:
            snapshot = snapshot.with_reservation(taken)
    freed = snapshot
    for name, _ in before.ends:
        (pod,) = (pod for pod in snapshot.bound if pod.name == name)
        freed = freed.without_pod(pod)
    assert plan(freed, group).decision == "admitted"
