"""The queue is fair across namespaces, and no gang waits without limit."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.cluster.snapshot import Snapshot
from planner.model.pod import BoundPod
from tests.builders import amounts, cluster, gang, of_class, with_classes
from webhook.placement.fair_order import QueueRules, WaitingGang, in_order
from webhook.placement.queue import plan_in_turn, plan_queue
from webhook.placement.workload_plan import GangPlan
from webhook.workloads import Workload

DAY = 86_400.0
HALL = """
    r1: a b c d
    r2: e f g h
    old: t u v w   gpu=1
"""
"""Two racks of 32 GPUs, and four nodes of one GPU."""


def hall(**used: str) -> Snapshot:
    """The nodes that the namespaces use whole, by letters: `hall(research="abc")`."""
    pods = [
        BoundPod(f"{space}/on-{node}", node, amounts(gpu=1 if node in "tuvw" else 8, pods=1))
        for space, nodes in used.items()
        for node in nodes
    ]
    return with_classes(cluster(HALL, pods=pods), high=5)


def waits(
    name: str, pods: int = 1, *, since: float = 0.0, gpu: int = 8, of: str = "", required: str = ""
) -> WaitingGang:
    """A gang NAMESPACE/NAME of whole nodes in the queue."""
    space, _, own = name.partition("/")
    group = gang(pods, name=f"{space}/Job/{own}", gpu=gpu, reserve="nodes", required=required)
    return WaitingGang(of_class(group, of), since)


def order(snapshot: Snapshot, *waiting: WaitingGang, rules: QueueRules | None = None) -> list[str]:
    """The queue, by the gangs' own names."""
    queue = in_order(snapshot, waiting, rules or QueueRules())
    return [place.gang.group.name.split("/")[2] for place in queue]


def applied(
    snapshot: Snapshot, newcomer: WaitingGang, waiting: Iterable[WaitingGang], rules: QueueRules
) -> GangPlan:
    """What becomes of a gang that is applied now."""
    job = Workload("Job", newcomer.group.name, gangs=(newcomer.group,), holds=True)
    (placed,) = plan_in_turn(snapshot, job, lambda: tuple(waiting), rules=rules).placed
    return placed


def test_whose_namespace_has_less_goes_first() -> None:
    """Research has 40 GPUs and inference 8: inference goes first, though it came later."""
    snapshot = hall(research="abcde", inference="f")
    assert order(snapshot, waits("research/train"), waits("inference/serve", since=60.0)) == [
        "serve",
        "train",
    ]


def test_among_namespaces_that_have_as_much_the_older_goes_first() -> None:
    """No namespace has any GPUs."""
    assert order(hall(), waits("b/first", since=1.0), waits("a/second", since=2.0)) == ["first", "second"]


def test_priority_counts_before_share() -> None:
    """Research has more, and a gang of a higher class."""
    snapshot = hall(research="abcde")
    assert order(snapshot, waits("research/train", of="high"), waits("inference/serve")) == ["train", "serve"]


def test_a_namespace_serves_its_own_gangs_by_age_however_large_they_are() -> None:
    """With the large gang it would have eight times as much."""
    assert order(hall(), waits("team/large", 8), waits("team/small", since=1.0)) == ["large", "small"]


def test_many_gangs_gain_a_namespace_nothing() -> None:
    """Each of them counts with those before it: the storm and the one gang of the other take turns."""
    storm = [waits(f"storm/s{number}", since=float(number)) for number in range(6)]
    assert order(hall(), *storm, waits("quiet/q", since=10.0)) == ["s0", "q", "s1", "s2", "s3", "s4", "s5"]


def test_what_a_namespace_has_of_gpus_that_the_gang_cannot_use_does_not_count() -> None:
    """Inference has all the old nodes, of one GPU each, and research two whole nodes."""
    snapshot = hall(research="ab", inference="tuvw")
    assert order(snapshot, waits("research/train"), waits("inference/serve", since=1.0)) == ["serve", "train"]


def test_a_weight_lets_a_namespace_have_more() -> None:
    """Research may have three times as much as inference, and has twice."""
    snapshot = hall(research="abcd", inference="ef")
    queue = waits("research/train"), waits("inference/serve")
    assert order(snapshot, *queue) == ["serve", "train"]
    heavy = QueueRules(weight=lambda space: 3.0 if space == "research" else 1.0)
    assert order(snapshot, *queue, rules=heavy) == ["train", "serve"]


def test_with_fair_seconds_0_age_alone_counts() -> None:
    """Shares do not count."""
    snapshot = hall(research="abcde")
    queue = waits("research/train"), waits("inference/serve", since=1.0)
    assert order(snapshot, *queue, rules=QueueRules(fair_seconds=0.0)) == ["train", "serve"]


@pytest.mark.parametrize(("later", "first"), [(0.4, "serve"), (0.6, "train"), (1.0, "train")])
def test_who_waits_is_passed_by_none_that_comes_much_later(later: float, first: str) -> None:
    """The shares are 40 and 8 of 68 GPUs with the gangs: half of the fair seconds is the limit here."""
    snapshot = hall(research="abcd")
    queue = waits("research/train"), waits("inference/serve", since=later * DAY)
    assert order(snapshot, *queue)[0] == first


@given(
    st.lists(
        st.tuples(st.sampled_from("abc"), st.integers(1, 3), st.floats(0, 3 * DAY)), min_size=2, max_size=6
    ),
    st.text("abc", max_size=8),
)
def test_nobody_is_passed_by_a_gang_that_comes_later_than_its_share_allows(
    rows: list[tuple[str, int, float]], owners: str
) -> None:
    """Whatever the shares and the number of other gangs."""
    used: dict[str, str] = {}
    for node, owner in zip("abcdefgh", owners, strict=False):
        used[owner] = used.get(owner, "") + node
    waiting = [waits(f"{space}/g{n}", pods, since=since) for n, (space, pods, since) in enumerate(rows)]
    queue = in_order(hall(**used), waiting)
    for position, place in enumerate(queue):
        limit = place.gang.created + place.share * DAY
        assert all(ahead.gang.created <= limit for ahead in queue[:position])
        assert place.share > 1 or limit <= place.gang.created + DAY


def test_a_waiting_gang_of_one_tenant_does_not_queue_the_newcomer_of_another_while_racks_are_free() -> None:
    """Issue 14: research waits for all eight nodes while one rack is free; inference asks for one node, and
    has nothing. It goes first, and no longer once research has waited for more than a day."""
    snapshot = hall(research="ab", others="cd")
    large = waits("research/large", 8)
    small = waits("inference/small")
    soon = applied(snapshot, small, [large], QueueRules(now=3_600.0))
    assert soon.answer.decision == "admitted"
    late = applied(snapshot, small, [large], QueueRules(now=2 * DAY))
    assert late.answer.reason == "BehindOthers"
    assert late.answer.message.endswith(
        "research/Job/large (applied long before, though research would have 80 of 64 GPUs with it, "
        "inference 8 of 64 GPUs with this one)"
    )


def test_a_newcomer_is_told_which_shares_put_it_behind() -> None:
    """Research has three nodes, the other who waits none."""
    snapshot = hall(research="abc", others="defg")
    placed = applied(snapshot, waits("research/again"), [waits("quiet/train", 1)], QueueRules(now=1.0))
    assert placed.answer.message == (
        "would fit in r2/h, which is kept for those that wait already: quiet/Job/train (quiet would have "
        "8 of 64 GPUs with it, research 32 of 64 GPUs with this one)"
    )


def test_a_gang_for_which_a_place_is_kept_is_told_what_must_end_there() -> None:
    """It is the first gang without a placement."""
    snapshot = hall(x="abc", y="efgh")
    turns, _ = plan_queue(snapshot, [waits("research/train", 2, required="rack").group])
    assert turns[0].answer.message.endswith("It gets r1 first, once x/on-a (8 GPUs) ends there.")


@given(
    st.lists(st.tuples(st.floats(0, 0.2 * DAY), st.integers(1, 8), st.floats(60, 0.5 * DAY)), max_size=20),
    st.integers(2, 4),
)
@settings(max_examples=25)
def test_no_stream_of_small_requests_starves_a_gang(
    stream: list[tuple[float, int, float]], pods: int
) -> None:
    """Each comes from a namespace that has nothing, so that shares put all before it that come within a day,
    and runs for at most half a day: after one and a half the gang has its rack."""
    large = waits("research/large", pods, required="rack")
    ends: dict[str, float] = {}
    snapshot, now = hall(others="aeh"), 0.0
    for node in "aeh":
        ends[f"others/on-{node}"] = 0.5 * DAY
    arrivals = iter(stream)
    while now <= 1.5 * DAY:
        for pod in [pod for pod in snapshot.bound if ends[pod.name] <= now]:
            snapshot = snapshot.without_pod(pod)
        turns, _ = plan_queue(snapshot, [large.group])
        if turns[0].answer.decision == "admitted":
            return
        pause, gpu, runs = next(arrivals, (0.1 * DAY, 1, 60.0))
        now += pause
        newcomer = waits(f"n{len(ends)}/small", gpu=gpu)
        placed = applied(snapshot, newcomer, [large], QueueRules(now=now))
        for assigned in placed.answer.assignments:
            name = f"n{len(ends)}/small"
            ends[name] = now + runs
            snapshot = snapshot.with_pod(BoundPod(name, assigned.node, amounts(gpu=gpu, pods=1)))
    raise AssertionError("it still waits")
