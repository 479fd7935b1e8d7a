"""The live picture takes in what slices, classes and claims say anew, wherever pods use devices."""

from __future__ import annotations

from typing import Any

import pytest

from planner.cluster.hardware_update import with_hardware
from planner.cluster.snapshot import Snapshot
from planner.manifests.fields import CachedDocument
from planner.planning.plan import plan
from tests.planner.devices.test_allocator import allocated_claim
from tests.planner.devices.test_catalog import claiming, node, pod, slice_of, template
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
        (
            slice_of("a", 4),
            slice_of("b", 4),
            allocated_claim("x", "a", "gpu-0"),
            template(2, allocationMode="All"),
        ),
    ],
    ids=(
        *("template", "one slice", "both slices", "slice gone", "all slices gone", "template gone", "same"),
        *("another claim", "a claim elsewhere", "all of a node"),
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


def test_a_kept_document_is_read_once() -> None:
    """A change of one object does not cause the others to be read again."""
    kept = [CachedDocument(document) for document in (*NODES, *BEFORE)]
    first, again = read_cluster([("", kept)]), read_cluster([("", kept)])
    assert first.base.claims == again.base.claims == read_cluster([("", [*NODES, *BEFORE])]).base.claims
    assert first.base.claims.templates["team/gpus"] is again.base.claims.templates["team/gpus"]
