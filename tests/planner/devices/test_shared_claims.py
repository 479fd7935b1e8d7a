"""PodSets that name one ResourceClaim share its devices, so all their pods are on one node."""

from __future__ import annotations

import pytest

from planner.model.answer import Answer
from planner.model.labels import Requirement
from planner.model.pod import ClaimUse, PodShape, PodTerm
from planner.model.podgroup import PodGroup, PodSet
from tests.planner.devices.test_catalog import (
    Json,
    after,
    answered,
    cluster,
    node,
    pod,
    shared_claim,
    slice_of,
    template,
)

TWO = (node("a"), node("b"), slice_of("a", 4), slice_of("b", 4))
SHARED = ClaimUse("shared", False)


def gang(*pod_sets: PodSet) -> PodGroup:
    """A gang of these PodSets, which holds only what it uses."""
    return PodGroup("team/JobSet/share", pod_sets, reserve="nodes")


def role(name: str, cpu: int, *claims: ClaimUse) -> PodSet:
    """A PodSet of one pod with so many cores."""
    return PodSet(name, 1, PodShape({"cpu": cpu * 1000, "pods": 1}, claims=claims))


def nodes_of(answer: Answer) -> dict[str, str]:
    """The node of each PodSet."""
    return {assignment.pod_set: assignment.node for assignment in answer.assignments}


@pytest.mark.parametrize("others", [(), (role("data", 60),)])
def test_pod_sets_that_share_a_claim_are_on_one_node(others: tuple[PodSet, ...]) -> None:
    """Whether the gang has other pods or not; a warning says that the devices are not counted."""
    roles = (role("leader", 30, SHARED), role("worker", 30, SHARED), *others)
    answer = answered(cluster(*TWO, shared_claim()), gang(*roles))
    assert answer.decision == "admitted"
    assert nodes_of(answer)["leader"] == nodes_of(answer)["worker"]
    assert "worker: 2 pods share the claim shared: its devices are not counted" in answer.warnings


@pytest.mark.parametrize("others", [(), (role("data", 10),)])
def test_pod_sets_that_share_a_claim_and_have_no_node_together_are_refused(
    others: tuple[PodSet, ...],
) -> None:
    """The second pod would wait for ever for the node with the devices of the first."""
    roles = (role("leader", 40, SHARED), role("worker", 40, SHARED), *others)
    assert answered(cluster(*TWO, shared_claim()), gang(*roles)).decision == "rejected"


def test_a_shared_claim_is_kept_beside_affinity_of_the_pods() -> None:
    """Pod affinity inside the gang adds its own rules to those of the claim."""
    anti_affinity = PodTerm("kubernetes.io/hostname", (Requirement("role", "In", ("data",)),))
    data = PodSet("data", 1, PodShape({"cpu": 1000, "pods": 1}, labels={"role": "data"}))
    leader = PodSet(
        "leader", 1, PodShape({"cpu": 30_000, "pods": 1}, claims=(SHARED,), terms=(anti_affinity,))
    )
    answer = answered(cluster(*TWO, shared_claim()), gang(leader, role("worker", 30, SHARED), data))
    placed = nodes_of(answer)
    assert placed["leader"] == placed["worker"] != placed["data"]


def test_a_pod_that_names_a_claim_twice_takes_the_devices_once() -> None:
    """Two entries of one pod may name the same ResourceClaim."""
    four: Json = {**shared_claim(), "spec": template(4)["spec"]["spec"]}
    answer = answered(cluster(*TWO, four), gang(role("main", 1, SHARED, SHARED)))
    assert (answer.decision, answer.warnings) == ("admitted", ())


@pytest.mark.parametrize("count", [1, 2])
def test_a_shared_claim_that_no_node_can_serve_is_refused(count: int) -> None:
    """Whether the pods of one PodSet share it or several PodSets do."""
    eight: Json = {**shared_claim(), "spec": template(8)["spec"]["spec"]}
    pod_sets = [PodSet(f"set-{n}", 3 - count, PodShape({"pods": 1}, claims=(SHARED,))) for n in range(count)]
    answer = answered(cluster(*TWO, eight), gang(*pod_sets))
    assert (answer.decision, answer.reason) == ("rejected", "NoSuchDevice")
    assert "no node has more than 4" in answer.message


def claimed_by(name: str, on: str) -> tuple[Json, Json]:
    """A bound pod on a node, and its claim, to which the node's first GPU is allocated."""
    results = [{"driver": "gpu.nvidia.com", "pool": on, "device": "gpu-0"}]
    claim = {**shared_claim(allocation={"devices": {"results": results}})}
    claim["metadata"] = {"name": name, "namespace": "team"}
    bound = pod(name, on)
    bound["spec"]["resourceClaims"] = [{"name": "g", "resourceClaimName": name}]
    return bound, claim


def test_pods_that_share_a_claim_go_to_a_node_that_has_its_devices() -> None:
    """Not to the first of three nodes, which has none, nor to the second, whose GPU another pod has."""
    three = (node("a"), node("b"), node("c"), slice_of("b", 1), slice_of("c", 1))
    roles = (role("leader", 30, SHARED), role("worker", 30, SHARED))
    answer = answered(cluster(*three, shared_claim(), *claimed_by("other", "b")), gang(*roles))
    assert nodes_of(answer) == {"leader": "c", "worker": "c"}


def test_pods_that_share_a_claim_wait_while_others_have_its_devices() -> None:
    """They fit the empty cluster, but no node has a GPU left."""
    two = (node("a"), node("b"), slice_of("b", 1))
    answer = answered(
        cluster(*two, shared_claim(), *claimed_by("other", "b")),
        gang(role("w", 1, SHARED), role("v", 1, SHARED)),
    )
    assert answer.decision == "queued"
    assert "without devices for the claim shared" in answer.message


def test_a_shared_claim_and_a_pods_own_need_devices_of_one_node() -> None:
    """Each pod has a GPU of its own besides the one that they share: two GPUs are too few."""
    two = (node("a"), node("b"), slice_of("a", 2), slice_of("b", 4), template())
    own = ClaimUse("gpus", True)
    answer = answered(
        cluster(*two, shared_claim()), gang(role("w", 1, SHARED, own), role("v", 1, SHARED, own))
    )
    assert nodes_of(answer) == {"v": "b", "w": "b"}


def replica(number: int, kind: str = "Deployment", claim: ClaimUse = SHARED) -> PodGroup:
    """A replica of a Deployment whose pods name one ResourceClaim."""
    return PodGroup(f"team/{kind}/web/{number}", (role("main", 20, claim),), reserve="nodes")


def test_replicas_that_share_a_claim_are_planned_with_its_devices_once() -> None:
    """Each is planned by itself; three fit on the node of the first, which has the last GPU."""
    moment = cluster(node("a"), node("b"), slice_of("b", 1), shared_claim())
    held = after(after(moment, replica(0)), replica(1))
    answer = answered(held, replica(2))
    assert (answer.decision, nodes_of(answer), answer.warnings) == ("admitted", {"main": "b"}, ())
    waits = answered(after(held, replica(2)), replica(3))
    assert waits.decision == "queued"
    assert "1 is other than b, where the devices of claim shared are held" in waits.message


def test_a_claim_of_that_content_that_another_object_holds_is_another_claim() -> None:
    """The Job of the same name holds the last GPU for its own claim."""
    other = {**shared_claim(), "metadata": {"name": "other", "namespace": "team"}}
    moment = cluster(node("a"), node("b"), slice_of("b", 1), shared_claim(), other)
    held = after(moment, replica(0, "Job", ClaimUse("other", False)))
    assert answered(held, replica(0)).decision == "queued"
