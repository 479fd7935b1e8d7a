"""Tests MIG slices that a driver creates on demand: they share the counters of their GPU."""

from __future__ import annotations

import pytest

from planner.cluster.snapshot import Snapshot
from planner.model.pod import ClaimUse, PodShape
from planner.model.podgroup import PodGroup, PodSet
from planner.planning.plan import plan
from planner.planning.reservation import reservation_for
from tests.planner.devices.test_allocator import allocated_claim, claim, decided, device, request, slice_with
from tests.planner.devices.test_catalog import Json, claiming, cluster, node, slice_of, template

PROFILES = {"1g.10gb": (16, 1, range(7)), "2g.20gb": (32, 2, (0, 2, 4)), "3g.40gb": (60, 4, (0, 4))}
"""Of an H100 of 80 GB: multiprocessors, memory slices, and the slices that each may start at."""


def draws(board: str, multiprocessors: int, start: int, size: int) -> list[Json]:
    """The counters of its GPU that a device consumes."""
    counters = {f"memory-slice-{n}": {"value": "1"} for n in range(start, start + size)}
    counters["multiprocessors"] = {"value": str(multiprocessors)}
    return [{"counterSet": f"{board}-counter-set", "counters": counters}]


def split(on: str, boards: int) -> list[Json]:
    """The slices that NVIDIA's driver writes with MIG on demand: the counters in one, the devices of each GPU
    in another.
    """
    names = [f"gpu-{number}" for number in range(boards)]
    shared = [
        {"name": counter_set["counterSet"], "counters": counter_set["counters"]}
        for n in names
        for counter_set in draws(n, 132, 0, 8)
    ]
    slices = [slice_with(on, sharedCounters=shared)]
    for board in names:
        devices = [device(board, consumesCounters=draws(board, 132, 0, 8))]
        for profile, (multiprocessors, size, starts) in PROFILES.items():
            for start in starts:
                partition = device(
                    f"{board}-{profile}-{start}",
                    "mig",
                    consumesCounters=draws(board, multiprocessors, start, size),
                )
                partition["attributes"]["gpu.nvidia.com/profile"] = {"string": profile}
                partition["attributes"]["gpu.nvidia.com/parentUUID"] = {"string": board}
                devices.append(partition)
        slices.append(slice_with(on, *devices))
    return slices


def mig(profile: str, count: int = 1) -> Json:
    """A template for slices of a profile, named after the profile."""
    return claim(request("m", count, "mig.nvidia.com", select=profile), name=profile)


def together(snapshot: Snapshot, **counts: int) -> str:
    """The decision on a gang of this many pods with each template ("x3g.40gb" and the like, "whole")."""
    sets = tuple(
        PodSet(name, count, PodShape({"pods": 1}, claims=(ClaimUse(name.replace("_", ".")[1:], True),)))
        for name, count in counts.items()
    )
    return plan(snapshot, PodGroup("team/Job/mix", sets, reserve="nodes")).decision


def test_slices_made_on_demand_fit_the_geometry_of_their_gpu() -> None:
    """Of one GPU seven small slices or two large ones; beside a large one two of the middle, and no third."""
    snapshot = cluster(node("a"), *split("a", 1), *map(mig, PROFILES))
    assert (decided(snapshot, 7, "1g.10gb"), decided(snapshot, 8, "1g.10gb")) == ("admitted", "rejected")
    assert (decided(snapshot, 2, "3g.40gb"), decided(snapshot, 3, "3g.40gb")) == ("admitted", "rejected")
    assert together(snapshot, x3g_40gb=1, x2g_20gb=2) == "admitted"
    assert together(snapshot, x3g_40gb=1, x2g_20gb=3) == "rejected"
    assert together(snapshot, x3g_40gb=1, x2g_20gb=1, x1g_10gb=2) == "admitted"


def test_a_whole_gpu_and_its_slices_exclude_one_another() -> None:
    """On two GPUs a whole one and two large slices, and no more."""
    snapshot = cluster(node("a"), *split("a", 2), *map(mig, PROFILES), claim(request("g"), name="whole"))
    assert together(snapshot, xwhole=1, x3g_40gb=2) == "admitted"
    assert together(snapshot, xwhole=1, x3g_40gb=3) == "rejected"
    assert together(snapshot, xwhole=2, x1g_10gb=1) == "rejected"


def test_a_claim_that_has_a_slice_leaves_the_rest_of_its_gpu() -> None:
    """Whether a pod uses it or not: here none does, and no whole GPU is left."""
    used = allocated_claim("one", "a", "gpu-0-2g.20gb-2")
    snapshot = cluster(
        node("a"), *split("a", 1), *map(mig, PROFILES), claim(request("g"), name="whole"), used
    )
    assert decided(snapshot, 1, "whole") == "queued"
    assert (decided(snapshot, 1, "3g.40gb"), decided(snapshot, 2, "3g.40gb")) == ("admitted", "queued")
    assert (decided(snapshot, 5, "1g.10gb"), decided(snapshot, 6, "1g.10gb")) == ("admitted", "queued")
    free = snapshot.usage.free_on(snapshot.nodes["a"])[0]
    assert (free["gpu.nvidia.com"], free["mig.nvidia.com/3g.40gb"]) == (0, 1)


def test_slices_of_one_gpu_may_be_asked_for_together() -> None:
    """By their parent: two large ones fill one GPU, so that two such pods fill two."""
    pair = claim(
        request("m", 2, "mig.nvidia.com", select="3g.40gb"), matchAttribute="gpu.nvidia.com/parentUUID"
    )
    used = allocated_claim("one", "a", "gpu-0-1g.10gb-0")
    snapshot = cluster(node("a"), *split("a", 3), pair)
    assert (decided(snapshot, 3), decided(snapshot, 4)) == ("admitted", "rejected")
    assert decided(cluster(node("a"), *split("a", 3), pair, used), 3) == "queued"


def test_only_the_newest_slices_of_a_pool_count() -> None:
    """The driver has replaced four GPUs by two."""
    old, new = slice_of("a", 4), slice_with("a", device("gpu-0"), device("gpu-1"), generation=2)
    snapshot = cluster(node("a"), old, new, template(1))
    assert (decided(snapshot, 2), decided(snapshot, 3)) == ("admitted", "rejected")


@pytest.mark.parametrize("updated", [1, 2, 3])
def test_a_pool_that_is_being_updated_has_the_devices_of_both_generations(updated: int) -> None:
    """A driver writes one slice after the other, each over its former self: nothing is refused meanwhile."""
    slices = [
        slice_with("a", device(f"gpu-{2 * n}"), device(f"gpu-{2 * n + 1}"), generation=1 + (n < updated))
        for n in range(3)
    ]
    for number, piece in enumerate(slices):
        piece["metadata"]["name"] = f"a-{number}"
        piece["spec"]["pool"]["resourceSliceCount"] = 3
    snapshot = cluster(node("a"), *slices, template(6))
    assert (decided(snapshot, 1), decided(snapshot, 2)) == ("admitted", "rejected")


def test_of_two_generations_of_a_device_the_newer_counts() -> None:
    """Whatever the order of the slices: here its taint is gone."""
    tainted = device("gpu-0", taints=[{"key": "sick", "effect": "NoSchedule"}])
    old, new = slice_with("a", tainted), slice_with("a", device("gpu-0"), generation=2)
    for piece in (old, new):
        piece["spec"]["pool"]["resourceSliceCount"] = 2
    for ordered in ((old, new), (new, old)):
        assert decided(cluster(node("a"), *ordered, template(1)), 1) == "admitted"


def test_many_slices_on_eight_gpus_are_planned_at_once() -> None:
    """Fifty-six small ones fit eight GPUs; beside four large ones, each at its GPU's end, forty-four."""
    snapshot = cluster(node("a"), *split("a", 8), *map(mig, PROFILES))
    large = claiming(4, "3g.40gb", "team/Job/large")
    reservation = reservation_for(snapshot, large, plan(snapshot, large))
    assert reservation is not None
    assert (decided(snapshot, 56, "1g.10gb"), decided(snapshot, 57, "1g.10gb")) == ("admitted", "rejected")
    held = snapshot.with_reservation(reservation)
    assert (decided(held, 44, "1g.10gb"), decided(held, 45, "1g.10gb")) == ("admitted", "queued")


def test_many_requests_with_alternatives_are_chosen_one_by_one() -> None:
    """Three requests for one to three slices each: eighteen such pods fit eight GPUs, two on one GPU."""
    sizes = [
        {"name": f"{count}-{profile}", **request("", count, "mig.nvidia.com", select=profile)["exactly"]}
        for count in (3, 2, 1)
        for profile in ("2g.20gb", "1g.10gb")
    ]
    requests = [{"name": f"r{place}", "firstAvailable": sizes} for place in range(3)]
    snapshot = cluster(node("a"), *split("a", 8), claim(*requests))
    assert (decided(snapshot, 18), decided(snapshot, 19)) == ("admitted", "rejected")
    tied = cluster(node("a"), *split("a", 8), claim(*requests, matchAttribute="gpu.nvidia.com/parentUUID"))
    assert (decided(tied, 16), decided(tied, 17)) == ("admitted", "rejected")
