"""GPUs that several claims may share (`allowMultipleAllocations`) are never used up."""

from __future__ import annotations

from tests.planner.devices.test_allocator import allocated_claim, decided, device, slice_with
from tests.planner.devices.test_catalog import Json, answered, claiming, cluster, node, template

OWN_ONLY = "!device.allowMultipleAllocations"


def shareable(name: str) -> Json:
    """A GPU that several claims may share."""
    return device(name, allowMultipleAllocations=True)


def test_more_claims_than_shareable_gpus_are_planned_with_a_warning() -> None:
    """Five claims on two GPUs."""
    answer = answered(
        cluster(node("a"), slice_with("a", shareable("gpu-0"), shareable("gpu-1")), template(1)), claiming(5)
    )
    assert answer.decision == "admitted"
    assert any("planned as if never used up" in text for text in answer.warnings)


def test_claims_on_a_shareable_gpu_take_no_gpu_of_their_own_from_others() -> None:
    """Three claims share gpu-0, and gpu-1 is free for a claim of its own."""
    users = [allocated_claim(f"user-{n}", "a", "gpu-0") for n in range(3)]
    gpus = slice_with("a", shareable("gpu-0"), device("gpu-1"))
    snapshot = cluster(node("a"), gpus, *users, template(1, OWN_ONLY))
    assert (decided(snapshot, 1), decided(snapshot, 2)) == ("admitted", "rejected")
