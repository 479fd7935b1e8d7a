"""The live picture takes in what slices, classes and claims say anew, wherever pods use devices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.cluster.capacity import hosts
from planner.cluster.facts import FACTS, RECORDS, differing, fact, with_facts, with_records
from planner.cluster.hardware_update import with_hardware
from planner.cluster.infrastructure import Infrastructure
from planner.cluster.snapshot import Snapshot
from planner.manifests.fields import CachedDocument
from planner.planning.plan import plan
from planner.planning.reservation import reservation_for
from tests.planner.devices.test_allocator import allocated_claim, gpu_class, limits
from tests.planner.devices.test_catalog import claiming, node, pod, slice_of, template
from tests.planner.devices.test_taint_rules import rule
from webhook.policy.engine.device_selectors import read_cluster

Json = dict[str, Any]
NODES = (node("a"), node("b"))
BEFORE = (slice_of("a", 4), slice_of("b", 4), template(2))


def cluster(*hardware: Json) -> Snapshot:
    """Two nodes, a pod with claimed devices on the first, and this hardware."""
    return read_cluster([("", [*NODES, pod("x", "a"), *hardware])])


@pytest.mark.parametrize(
    "after",
    [
        (slice_of("a", 4), slice_of("b", 4), template(3)),
        (slice_of("a", 4), slice_of("b", 8), template(2)),
        (slice_of("a", 2), slice_of("b", 2), template(2)),
        (slice_of("b", 4), template(2)),
        (template(2),),
        (slice_of("a", 4), slice_of("b", 4)),
        BEFORE,
        (*BEFORE, allocated_claim("other", "b", "gpu-0", "gpu-1", "gpu-2")),
        (*BEFORE, allocated_claim("x", "b", "gpu-3")),
        (*BEFORE, rule({"pool": "b", "device": "gpu-1"})),
        (
            slice_of("a", 4),
            slice_of("b", 4),
            allocated_claim("x", "a", "gpu-0"),
            template(2, allocationMode="All"),
        ),
    ],
    ids=(
        *("template", "one slice", "both slices", "slice gone", "all slices gone", "template gone", "same"),
        *("another claim", "a claim elsewhere", "a taint rule", "all of a node"),
    ),
)
def test_a_picture_told_anew_is_one_made_anew(after: tuple[Json, ...]) -> None:
    """What is used, and where one to five pods go."""
    former = cluster(*BEFORE)
    assert plan(former, claiming(1)).decision == "admitted"  # so that something was worked out before
    with_claims = with_hardware(former, cluster(*BEFORE, allocated_claim("x", "a", "gpu-3")).base)
    assert plan(with_claims, claiming(1)).decision == "admitted"
    renewed, anew = with_hardware(with_claims, cluster(*after).base), cluster(*after)
    assert {n: renewed.taken_on(n) for n in "ab"} == {n: anew.taken_on(n) for n in "ab"}
    for count in range(1, 6):
        assert plan(renewed, claiming(count)) == plan(anew, claiming(count)), count


def free(moment: Snapshot) -> list[object]:
    """The amounts on each node that plans count on, now and in the empty cluster."""
    (tree,) = moment.base.trees.values()
    pictures = (moment.capacity(tree), moment.base.empty_capacity(tree))
    return [(host.free, host.worth) for picture in pictures for host in hosts(picture)]


def test_devices_of_one_node_change_what_a_claim_takes_on_another() -> None:
    """A claim for all devices of a node takes at least the fewest that any node has."""
    every = (slice_of("a", 4), template(1, allocationMode="All"))
    two, four = cluster(*every, slice_of("b", 2)), cluster(*every, slice_of("b", 4))
    assert (two.taken_on("a")["gpu.nvidia.com"], four.taken_on("a")["gpu.nvidia.com"]) == (2, 4)
    free(two)
    assert free(with_hardware(two, four.base)) == free(four)


def test_a_node_with_other_devices_changes_what_a_claim_takes_on_another() -> None:
    """The same if the node comes after its slices."""
    hardware = (slice_of("a", 4), slice_of("b", 2), template(1, allocationMode="All"), pod("x", "a"))
    former, joined = (read_cluster([("", [*nodes, *hardware])]) for nodes in (NODES[:1], NODES))
    free(former)
    assert free(former.with_node(joined.nodes["b"])) == free(joined)


def limited(name: str, on: str, gpus: int) -> Json:
    """A bound pod of the namespace others with GPUs in its limits."""
    container = {"name": "c", "resources": {"limits": {"nvidia.com/gpu": str(gpus)}}}
    spec = {"nodeName": on, "containers": [container]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "others"},
        "spec": spec,
        "status": {"extendedResourceClaimStatus": {"resourceClaimName": name}},
    }


def without_plugin(name: str) -> Json:
    """A node whose device plugin is gone: it still lists GPUs, with the number 0."""
    document = node(name)
    document["status"]["allocatable"]["nvidia.com/gpu"] = "0"
    return document


def chosen(*documents: Json) -> st.SearchStrategy[tuple[Json, ...]]:
    """One of the documents, or none."""
    return st.sampled_from(((), *((document,) for document in documents)))


OF_NO_DEVICE = gpu_class(creationTimestamp="2026-02-01")
OF_NO_DEVICE["spec"]["selectors"] = [{"cel": {"expression": "device.driver == 'other'"}}]
HARDWARE = st.tuples(
    chosen(without_plugin("c")),
    chosen(slice_of("a", 4), slice_of("a", 2)),
    chosen(slice_of("b", 4), slice_of("b", 8)),
    chosen(slice_of("c", 4), slice_of("c", 2, type="mig", profile="1g.10gb")),
    chosen(template(2), template(2, allocationMode="All")),
    chosen(gpu_class(), OF_NO_DEVICE),
    chosen(allocated_claim("limited", "b", "gpu-0", "gpu-1"), allocated_claim("limited", "c", "gpu-0")),
).map(lambda parts: [document for part in parts for document in part])


def told_by_record(seen: Snapshot, anew: Snapshot) -> Infrastructure:
    """The facts of another cluster, as changes of records: all mappings share what is the same."""
    changes = {path: differing(fact(seen.base, path), fact(anew.base, path)) for path in RECORDS}
    others = {path: fact(anew.base, path) for path in FACTS if path not in RECORDS}
    return with_records(with_facts(seen.base, others), changes)


@pytest.mark.parametrize(
    "hardware_from", [told_by_record, lambda seen, anew: anew.base], ids=("by record", "anew")
)
@settings(max_examples=40)
@given(course=st.lists(HARDWARE, min_size=2, max_size=4))
def test_whatever_hardware_comes_and_goes_the_picture_is_one_made_anew(
    hardware_from: Callable[[Snapshot, Snapshot], Infrastructure], course: list[list[Json]]
) -> None:
    """Pods and a gang with GPUs in limits, and a pod with a claim: what is free and where pods go."""
    fixed = (node("a"), without_plugin("b"), pod("x", "a"), limited("limited", "b", 2))
    full = read_cluster([("", [*fixed, slice_of("a", 4), gpu_class()])])
    gang = limits(1, 2)
    held = reservation_for(full, gang, plan(full, gang))
    assert held is not None
    groups = [claiming(count) for count in (1, 3)] + [
        replace(limits(n, 1), name="q/Job/l") for n in (1, 5, 9)
    ]
    seen = read_cluster([("", [*fixed, *course[0]])]).with_reservation(held)
    for hardware in course[1:]:
        for group in groups:
            plan(seen, group)  # so that something was worked out before
        anew = read_cluster([("", [*fixed, *hardware])]).with_reservation(held)
        seen = with_hardware(seen, hardware_from(seen, anew))
        seen = seen.with_node(anew.nodes["c"]) if "c" in anew.nodes else seen.without_node("c")
        assert free(seen) == free(anew)
        for group in groups:
            assert plan(seen, group) == plan(anew, group), group.name


def test_a_kept_document_is_read_once() -> None:
    """A change of one object does not cause the others to be read again."""
    kept = [CachedDocument(document) for document in (*NODES, *BEFORE)]
    first, again = read_cluster([("", kept)]), read_cluster([("", kept)])
    assert first.base.claims == again.base.claims == read_cluster([("", [*NODES, *BEFORE])]).base.claims
    assert first.base.claims.templates["team/gpus"] is again.base.claims.templates["team/gpus"]
