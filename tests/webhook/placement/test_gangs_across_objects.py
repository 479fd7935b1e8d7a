"""Gangs of several objects: one gang, whatever the kinds of its members and the order of their creation."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.builders import cluster
from tests.webhook.placement.gang_files import (
    GANG,
    RACKS,
    SPECS,
    Member,
    applied,
    group,
    held,
    members,
    mutated,
    on_nodes,
    places,
    planned,
    seats,
    seats_of_members,
    stored,
    with_name,
)
from tests.webhook.workloads import objects as o


@settings(max_examples=40)
@given(
    members,
    st.sampled_from(["", "rack", "node"]),
    st.sampled_from(["v2", "v2alpha2", "native"]),
    st.integers(0, 2),
    st.randoms(use_true_random=False),
)
@pytest.mark.hypothesis
def test_the_files_of_a_gang_end_at_the_same_places_in_every_order(
    listed: list[Member], scope: str, version: str, unknown: int, random: Any
) -> None:
    """`bayplan plan` and `bayplan mutate` over all files, and each order of the files, agree on one place."""
    objects = [obj for member in listed for obj in member.objects()]
    pods = sum(member.count for member in listed)
    whole = [group(pods + unknown, scope, version), *objects]
    snapshot = cluster("r1: a b c d\nr2: e f\nr2: g h used=4")
    (answer,) = planned(snapshot, whole)
    assert answer.gang == GANG
    for _ in range(2):
        random.shuffle(whole)
        (again,) = planned(snapshot, whole)
        assert (again.decision, places(again.assignments)) == (answer.decision, places(answer.assignments))
    decisions = mutated(snapshot, whole)
    verdicts = {d.plan.decision for d in decisions if d.plan}
    assert verdicts == {answer.decision}
    reservation = held(decisions)
    if reservation is not None:
        assert places(reservation.assignments) == places(answer.assignments)
        assert reservation.domains == answer.reserves


@settings(max_examples=30)
@given(members, st.sampled_from(["", "rack"]), st.integers(0, 2), st.randoms(use_true_random=False))
@pytest.mark.hypothesis
def test_a_promise_is_kept_in_whatever_order_members_of_all_kinds_come(
    listed: list[Member], scope: str, unknown: int, random: Any
) -> None:
    """Nobody is refused for members that are not known, no seat moves, and all seats are in one rack."""
    pods = sum(member.count for member in listed)
    of = group(pods + unknown, scope)
    objects = [obj for member in listed for obj in member.objects()]
    random.shuffle(objects)
    snapshot = cluster("r1: a b c d\nr2: e f\nr2: g h used=4")
    before = seats(snapshot)
    for obj in (part for whole in objects for part in stored(whole)):
        snapshot, (decision,) = applied(snapshot, [of, obj])
        alone = planned(snapshot, [obj])[0]
        assert decision.response.allowed or alone.decision == "rejected", decision.response.message
        assert seats_of_members(before) <= seats(snapshot), "a member lost its seat"
        assert before.total() <= seats(snapshot).total(), "less room is kept than before"
        before = seats(snapshot)
    racks = {"r1" if node in "abcd" else "r2" for _, node in before}
    assert not scope or len(racks) <= 1


@settings(max_examples=30)
@given(
    members,
    st.sampled_from([1, 2, 4, 8]),
    st.sampled_from(["", "rack", "node"]),
    st.randoms(use_true_random=False),
)
@pytest.mark.hypothesis
def test_a_gang_of_alike_pods_has_its_places_from_the_first_member_on(
    listed: list[Member], gpus: int, scope: str, random: Any
) -> None:
    """Whichever member comes first, of whatever kind: they are those of `bayplan plan` over all files."""
    of = group(sum(member.count for member in listed), scope)
    objects = [obj for member in listed for obj in replace(member, gpus=gpus).objects()]
    random.shuffle(objects)
    snapshot = cluster("r1: a b c d\nr2: e f\nr2: g h used=4")
    (answer,) = planned(snapshot, [of, *objects])
    after, decisions = applied(snapshot, [of, *objects])
    if answer.decision == "admitted":
        assert {d.plan.decision for d in decisions if d.plan} == {"admitted"}
        assert on_nodes(seats(after)) == on_nodes(places(answer.assignments))


def test_a_job_a_deployment_and_a_pod_of_one_pod_group_are_one_gang_in_one_rack() -> None:
    """Read alone, they would be three gangs in three racks."""
    serving = [
        Member("Job", "prefill", 2, 8),
        Member("Deployment", "decode", 2, 4),
        Member("Pod", "router", 1, 0),
    ]
    objects = [obj for member in serving for obj in member.objects()]
    (answer,) = planned(cluster(RACKS), [group(5, "rack"), *objects])
    parts = Counter(part for part, _ in places(answer.assignments).elements())
    assert (answer.gang, parts) == (GANG, {"prefill": 2, "decode": 2, "router": 1})
    assert len({"r1" if seat.node in "abcd" else "r2" for seat in answer.assignments}) == 1


def test_two_jobs_of_one_own_gang_are_planned_together() -> None:
    """`bayplan.dev/gang` joins them, since its size is more than each makes."""
    notes = {"bayplan.dev/gang": "pair", "bayplan.dev/gang-size": "4", "bayplan.dev/required-level": "rack"}
    spec = SPECS["Job"](2, o.pod_template(8))
    jobs = [with_name(o.obj("batch/v1", "Job", spec, **notes), name) for name in ("left", "right")]
    (answer,) = planned(cluster(RACKS), jobs)
    assert (answer.gang, len(answer.assignments), answer.domain) == ("team/Gang/pair", 4, ("r1",))


def test_a_deployment_whose_template_names_a_larger_own_gang_is_a_member_of_it() -> None:
    """Read alone, it would be a second gang of the same size."""
    notes = {"bayplan.dev/gang": "pair", "bayplan.dev/gang-size": "3", "bayplan.dev/required-level": "rack"}
    objects = [
        *Member("Deployment", "decode", 2, 4).objects(notes),
        *Member("Pod", "router", 1, 0).objects(notes),
    ]
    (answer,) = planned(cluster(RACKS), objects)
    parts = Counter(part for part, _ in places(answer.assignments).elements())
    assert (answer.gang, parts) == ("team/Gang/pair", {"decode": 2, "router": 1})


def test_a_level_beside_the_name_of_a_gang_is_the_whole_gangs() -> None:
    """On the templates of two Jobs, as on two pods. It was each Job's own: a rack for either of them."""
    notes = {"bayplan.dev/gang": "pair", "bayplan.dev/gang-size": "6", "bayplan.dev/required-level": "rack"}
    objects = [obj for role in ("left", "right") for obj in Member("Job", role, 3, 8).objects(notes)]
    (answer,) = planned(cluster(RACKS), objects)
    assert answer.decision == "rejected", "six nodes in racks of four"


@pytest.mark.parametrize(
    ("notes", "spec", "kept"),
    [
        ({}, {}, 8),
        ({"bayplan.dev/gang-resources": "nvidia.com/gpu=4,cpu=8"}, {}, 4),
        ({}, {"minResources": {"nvidia.com/gpu": "12"}}, 2),
    ],
    ids=["the largest that is known", "stated for each", "a share of what is stated for all"],
)
def test_a_member_that_is_not_known_keeps_room(notes: Any, spec: Any, kept: int) -> None:
    """One of three pods is known; two places of the stated or observed size are reserved."""
    of = group(3, "", **notes)
    of["spec"] |= spec
    after, _ = applied(cluster(RACKS), [of, *Member("Pod", "prefill", 1, 8).objects()])
    held = after.holding(GANG)
    assert held is not None
    assert (places(held.assignments).total(), dict(held.requests)["others"][o.GPU]) == (3, kept)


def test_amounts_that_are_no_list_are_told_with_an_example() -> None:
    """The error names the field."""
    of = group(3, "", **{"bayplan.dev/gang-resources": "four GPUs"})
    _, (decision,) = applied(cluster(RACKS), [of, *Member("Pod", "prefill", 1, 8).objects()])
    assert "write for example nvidia.com/gpu=4,cpu=8" in decision.response.message


def test_two_members_of_one_role_are_not_given_one_seat() -> None:
    """Each prefill pod needs a whole node."""
    of = group(3, "", **{"bayplan.dev/reserve": "nodes"})
    after, decisions = applied(cluster(RACKS), [of, *Member("Pod", "prefill", 2, 8).objects()])
    assert len({node for part, node in seats(after) if part != "others"}) == 2
    first, second = (d.object["spec"]["affinity"] for d in decisions if d.object)
    assert first != second


def test_what_does_not_fit_beside_its_gang_waits() -> None:
    """Decode was promised half of the only node; prefill, which comes later, asks for a whole one."""
    of = group(2, "node")
    decode, prefill = Member("Pod", "decode", 1, 4), Member("Pod", "prefill", 1, 8)
    _, (first, second) = applied(cluster("r1: a"), [of, *decode.objects(), *prefill.objects()])
    assert [d.plan.decision for d in (first, second) if d.plan] == ["admitted", "queued"]
    assert "its gang holds a place" in " ".join(second.response.warnings)


def test_a_suspended_job_joins_when_it_is_resumed() -> None:
    """Until then, room is kept by the number of its pods."""
    suspended, pod = *Member("Job", "prefill", 2, 8).objects(), *Member("Pod", "router", 1, 1).objects()
    suspended["spec"]["suspend"] = True
    answers = planned(cluster(RACKS), [group(3, "rack"), suspended, pod])
    assert {part for part, _ in places(answers[-1].assignments)} == {"router", "others"}
