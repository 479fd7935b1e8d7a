"""Pods of one gang that stand in the same files are planned as one gang of several PodSets."""

from __future__ import annotations

from typing import Any

import pytest

from tests.webhook.workloads import objects as o
from webhook.workloads import Workload, joined, read

GROUP = {
    ("team", "serve"): {
        "kind": "PodGroup",
        "metadata": {"name": "serve", "namespace": "team"},
        "spec": {"minMember": 4, "topologyPolicy": {"scope": "rack"}},
    }
}


def member(name: str, role: str, gpus: int) -> Workload:
    pod: Any = o.annotated(o.obj("v1", "Pod", o.pod_template(gpus)["spec"]), {"pod-group-name": "serve"})
    pod["metadata"] |= {"name": name, "labels": {"scheduling.run.ai/topology-role": role} if role else {}}
    return read(pod, podgroups=GROUP)


def test_each_shape_is_a_pod_set() -> None:
    """Two prefill pods, one decode and one router are one gang of four, in the place of the first."""
    pods = [
        member("p0", "prefill", 2),
        member("p1", "prefill", 2),
        member("d0", "decode", 4),
        member("r0", "router", 0),
    ]
    first, *others = joined(pods)
    (gang,) = first.gangs
    assert (gang.name, gang.size, gang.gpus) == ("team/PodGroup/serve", 4, 8)
    assert {pod_set.name: pod_set.count for pod_set in gang.pod_sets} == {
        "prefill": 2,
        "decode": 1,
        "router": 1,
    }
    assert gang.constraint.required == "rack"
    assert [workload.gangs for workload in others] == [(), (), ()]


def test_pods_that_are_not_here_are_like_the_others() -> None:
    """A gang of four of which two pods are given is planned with four, and says so where shapes differ."""
    alike = joined([member("p0", "prefill", 2), member("p1", "prefill", 2)])[0].gangs[0]
    mixed = joined([member("p0", "prefill", 2), member("d0", "decode", 4)])[0].gangs[0]
    assert (alike.size, alike.warnings) == (4, ())
    assert mixed.size == 4
    assert "2 of 4 pods are not here" in mixed.warnings[-1]


def test_shapes_without_a_role_get_distinct_names() -> None:
    """PodSets of one gang never share a name."""
    gang = joined([member("a", "", 2), member("b", "", 4)])[0].gangs[0]
    assert [pod_set.name for pod_set in gang.pod_sets] == ["main", "main-2"]


def test_a_name_with_a_number_is_not_that_of_another_part() -> None:
    """The second shape of the part `p` is not called `p-2` where a part has that name."""
    parts = [member("a", "prefill", 2), member("b", "prefill", 4), member("c", "prefill-2", 4)]
    joint = joined(parts)[0].gangs[0]
    names = [pod_set.name for pod_set in joint.pod_sets]
    assert sorted(set(names)) == sorted(names)
    assert "prefill-3" in names


def test_other_workloads_stay_as_they_are() -> None:
    """Jobs and pods of their own pass unchanged, in their order."""
    workloads = [read(o.JOB), read(o.POD), read(o.DEPLOYMENT)]
    assert joined(workloads) == workloads


@pytest.mark.parametrize("gpus", [(8, 1), (1, 8)])
@pytest.mark.parametrize("count", [1, 2])
def test_templates_of_one_part_keep_their_own_pods(gpus: tuple[int, int], count: int) -> None:
    """Two templates of one object in one part are two PodSets, and neither is pinned to the other's seats."""
    replicated = []
    for name, (own, pods) in zip(("driver", "trainer"), zip(gpus, (1, count), strict=True), strict=True):
        template = o.pod_template(own)
        template["metadata"] = {"labels": {"kai.scheduler/subgroup-name": "train"}}
        job = {"parallelism": pods, "completions": pods, "template": template}
        replicated.append({"name": name, "template": {"spec": job}})
    gang = {"bayplan.dev/gang": "g", "bayplan.dev/gang-size": "6"}
    spec = {"replicatedJobs": replicated}
    workload = read(o.obj("jobset.x-k8s.io/v1alpha2", "JobSet", spec, **gang))
    assert workload.share is not None
    sizes = {(pod_set.count, pod_set.shape.gpus) for pod_set in workload.share.known_sets}
    assert sizes == {(1, gpus[0]), (count, gpus[1])}
    assert [template.pod_set for template in workload.templates] == ["", ""]
