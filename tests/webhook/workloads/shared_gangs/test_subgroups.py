"""KAI's subgroups: sizes and levels of their own, and levels that several share."""

from __future__ import annotations

from typing import Any

import pytest

from planner.model.errors import InputError
from planner.model.podgroup import PodGroup
from planner.planning.plan import plan
from tests.builders import cluster
from tests.webhook.workloads import objects as o
from webhook.placement.planning import plan_workload
from webhook.workloads import Workload, joined, read

RACK, ZONE = {"requiredTopologyLevel": "rack"}, {"requiredTopologyLevel": "zone"}
PREFILL: Any = {"name": "prefill", "minMember": 2, "parent": "workers", "topologyConstraint": RACK}
DECODE: Any = {"name": "decode", "minMember": 1, "parent": "workers", "topologyConstraint": RACK}
WORKERS: Any = {"name": "workers", "topologyConstraint": ZONE}
ROUTER: Any = {"name": "router", "minMember": 1}


def gang(pods: str, *subgroups: Any, annotations: Any = None, **spec: Any) -> PodGroup:
    """The gang of these pods."""
    return members(pods, *subgroups, annotations=annotations, **spec).gangs[0]


def members(pods: str, *subgroups: Any, annotations: Any = None, **spec: Any) -> Workload:
    """Pods of these subgroups, one word each, as one; `decode=4` has four GPUs instead of eight."""
    group = {
        "kind": "PodGroup",
        "metadata": {"name": "serve", "namespace": "team", "annotations": annotations or {}},
        "spec": {"subGroups": list(subgroups or (WORKERS, PREFILL, DECODE, ROUTER)), **spec},
    }
    read_in = []
    for number, word in enumerate(pods.split()):
        name, _, gpus = word.partition("=")
        pod: Any = o.annotated(
            o.obj("v1", "Pod", o.pod_template(int(gpus or 8))["spec"]), {"pod-group-name": "serve"}
        )
        pod["metadata"] |= {"name": f"p{number}", "labels": {"kai.scheduler/subgroup-name": name}}
        read_in.append(read(pod, podgroups={("team", "serve"): group}))
    return joined(read_in)[0]


def counts(group: PodGroup) -> dict[str, int]:
    return {pod_set.name: pod_set.count for pod_set in group.pod_sets}


def levels(group: PodGroup) -> dict[str, str]:
    return {pod_set.name: pod_set.constraint.required for pod_set in group.pod_sets}


WHOLE = "prefill prefill decode router=1"


def test_each_subgroup_has_its_own_level() -> None:
    """Prefill and decode each stay in a rack, the router is free, and no minMember of the whole is needed."""
    assert counts(gang(WHOLE)) == {"prefill": 2, "decode": 1, "router": 1}
    assert levels(gang(WHOLE)) == {"prefill": "rack", "decode": "rack", "router": ""}


def test_a_parents_level_holds_for_its_children_together() -> None:
    """Prefill and decode are required in one zone, the router beside them is not."""
    assert gang(WHOLE).within == (("zone", ("prefill", "decode")),)


def test_a_pod_that_comes_first_knows_the_sizes_of_all_subgroups() -> None:
    """Admitted alone, a decode pod stands for a gang of four in which decode has one pod."""
    assert counts(gang("decode")) == {"decode": 1, "prefill": 2, "router": 1}


def test_pods_that_are_not_here_are_counted_where_they_belong() -> None:
    """One prefill pod of two and no decode: each subgroup is filled up to its own size, and that is said."""
    group = gang("prefill router=1")
    assert counts(group) == {"prefill": 2, "router": 1, "decode": 1}
    assert levels(group)["decode"] == "rack"
    assert "2 of 4 pods are not here" in group.warnings[-1]


def test_unlike_pods_of_one_subgroup_stay_in_one_domain() -> None:
    """Two shapes make two PodSets of prefill; the rack is required for both together."""
    group = gang("prefill prefill=4 decode router=1")
    assert set(group.within) == {
        ("zone", ("prefill", "prefill-2", "decode")),
        ("rack", ("prefill", "prefill-2")),
    }


def test_pods_beyond_the_subgroups_are_counted_with_the_gang() -> None:
    """Of six pods that the gang needs two belong to no subgroup."""
    assert counts(gang("decode", minMember=6)) == {"decode": 1, "prefill": 2, "router": 1, "main": 2}


def test_the_order_in_which_a_manifest_has_its_keys_changes_nothing() -> None:
    """Pods of the same labels in another order are of one shape."""
    read_in = []
    for number, names in enumerate((("a", "b"), ("b", "a"))):
        pod: Any = o.annotated(o.POD, {"bayplan.dev/gang": "pair", "bayplan.dev/gang-size": "2"})
        pod["metadata"] |= {"name": f"p{number}", "labels": dict.fromkeys(names, "x")}
        read_in.append(read(pod))
    assert counts(joined(read_in)[0].gangs[0]) == {"main": 2}


def test_the_pod_groups_annotation_says_what_is_reserved() -> None:
    """bayplan.dev/reserve on the PodGroup holds for its pods."""
    assert gang(WHOLE, annotations={"bayplan.dev/reserve": "nodes"}).reserve == "nodes"


def test_siblings_are_placed_where_greed_fails() -> None:
    """Zone z1 takes either of the two, z2 both; prefill alone would take z1, which it fills."""
    fabric = cluster("z1/r1: a b\nz2/r1: c d e\nz2/r2: f", levels=("zone", "rack"))
    answer = plan(fabric, gang("prefill prefill decode router=1"))
    assert answer.decision == "admitted", answer.message
    assert {a.node for a in answer.assignments if a.pod_set != "router"} <= set("cdef")


def test_a_parent_that_no_domain_holds_is_refused() -> None:
    """Each rack holds one of the two, but no zone holds both."""
    fabric = cluster("z1/r1: a b\nz2/r1: c d", levels=("zone", "rack"))
    assert plan(fabric, gang("prefill prefill decode router=1")).decision == "rejected"


def test_a_parent_holds_for_the_pods_that_are_here_where_others_are_known_by_number_alone() -> None:
    """Without the router the others are planned by themselves; no zone holds prefill and decode."""
    fabric = cluster("z1/r1: a b\nz2/r1: c d", levels=("zone", "rack"))
    (placed,) = plan_workload(fabric, members("prefill prefill decode")).placed
    assert placed.answer.decision == "rejected", placed.answer.message


def test_a_child_broader_than_its_parent_is_refused() -> None:
    """The answer names both levels and what would be valid."""
    fabric = cluster("z1/r1: a b c d", levels=("zone", "rack"))
    broad = gang(
        "prefill prefill", WORKERS | {"topologyConstraint": RACK}, PREFILL | {"topologyConstraint": ZONE}
    )
    answer = plan(fabric, broad)
    assert answer.reason == "PodSetLevelTooCoarse"
    assert "required level zone is coarser than that of prefill, rack" in answer.message


def test_a_parents_preferred_level_is_told_as_not_followed() -> None:
    """Only what several subgroups require together is kept."""
    soft = WORKERS | {"topologyConstraint": {"preferredTopologyLevel": "rack"}}
    assert any("rack of subgroup workers is not followed" in w for w in gang(WHOLE, soft, PREFILL).warnings)


@pytest.mark.parametrize(
    ("subgroups", "field", "words"),
    [
        ([PREFILL], "spec.subGroups[0].parent", "'workers' is no subgroup of this PodGroup; it has prefill"),
        ([ROUTER, ROUTER], "spec.subGroups[1].name", "no two alike"),
        ([WORKERS | {"parent": "workers"}], "spec.subGroups[0].parent", "above itself"),
        ([WORKERS, PREFILL | {"minMember": -1}], "spec.subGroups[1].minMember", "-1"),
    ],
)
def test_malformed_subgroups_are_refused(subgroups: list[Any], field: str, words: str) -> None:
    """The error names the field of the PodGroup and what is wrong with it."""
    with pytest.raises(InputError) as refused:
        gang("prefill", *subgroups)
    assert refused.value.where.field == field
    assert words in str(refused.value)
