"""JobSet and LeaderWorkerSet keep the pods of other jobs and replicas out of a domain; so does the plan.

r1, r2, r3: two free hosts each
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from hashlib import sha1
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.cluster.snapshot import Snapshot
from planner.manifests.pods.pod_affinity import terms_of
from planner.model.errors import Where
from planner.model.growth import GrowingPool
from planner.model.pod import BoundPod
from tests.builders import amounts, cluster, racks
from tests.webhook.workloads import objects as o
from webhook.placement.planning import plan_workload
from webhook.placement.workload_plan import WorkloadPlan
from webhook.workloads import read

OF_JOBS = "alpha.jobset.sigs.k8s.io/exclusive-topology"
OF_REPLICAS = "leaderworkerset.sigs.k8s.io/exclusive-topology"
JOB_KEY = "jobset.sigs.k8s.io/job-key"
GROUP_KEY = "leaderworkerset.sigs.k8s.io/group-key"
THREE_RACKS = racks(3, 2)


def job(name: str, replicas: int = 1, gpus: int = 1, pods: int = 1, **annotations: str) -> dict[str, Any]:
    """A replicated job of a JobSet."""
    spec = {"parallelism": pods, "completions": pods, "template": o.pod_template(gpus)}
    metadata = {"metadata": {"annotations": annotations}} if annotations else {}
    return {"name": name, "replicas": replicas, "template": {"spec": spec, **metadata}}


def job_set(*jobs: dict[str, Any], level: str = "rack", name: str = "demo", order: str = "AnyOrder") -> Any:
    """A JobSet whose jobs get a domain of this level each."""
    spec = {"startupPolicy": {"startupPolicyOrder": order}, "replicatedJobs": list(jobs)}
    obj = o.obj("jobset.x-k8s.io/v1alpha2", "JobSet", spec)
    obj = o.changed(obj, ("metadata", "name"), name)
    return o.annotated(obj, {OF_JOBS: level}) if level else obj


def groups(replicas: int, **annotations: str) -> Any:
    """A LeaderWorkerSet whose replicas have two pods of one GPU."""
    template = {"size": 2, "workerTemplate": o.pod_template(1)}
    spec = {"replicas": replicas, "leaderWorkerTemplate": template}
    return o.obj("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", spec, **annotations)


def planned(obj: Any, snapshot: Snapshot = THREE_RACKS) -> WorkloadPlan:
    """The plan of an object."""
    return plan_workload(snapshot, read(obj))


def racks_of(plan: WorkloadPlan) -> list[str]:
    """The rack of each gang, "" for none."""
    return [
        assignments[0].node.partition("-")[0] if (assignments := gang_plan.answer.assignments) else ""
        for gang_plan in plan.placed
    ]


def running(node: str, labels: Mapping[str, str], space: str = "team") -> BoundPod:
    """A pod of one GPU that runs there."""
    return BoundPod(f"{space}/running", node, amounts(gpu=1, pods=1), labels=labels)


def hashed(text: str) -> str:
    """As JobSet and LeaderWorkerSet do."""
    return sha1(text.encode(), usedforsecurity=False).hexdigest()


def test_jobs_that_would_fit_one_host_together_get_a_rack_each() -> None:
    """Of one GPU each."""
    assert sorted(racks_of(planned(job_set(job("train", 3))))) == ["r1", "r2", "r3"]


def test_replicas_that_would_fit_one_host_together_get_a_rack_each() -> None:
    """Of two GPUs each."""
    assert sorted(racks_of(planned(groups(3, **{OF_REPLICAS: "rack"})))) == ["r1", "r2", "r3"]


def test_without_the_annotation_they_share_a_host() -> None:
    """Only exclusive placement keeps them apart."""
    assert len(set(racks_of(planned(groups(3))))) == 1
    assert planned(job_set(job("train", 3), level="")).placed[0].answer.level == "kubernetes.io/hostname"


def test_a_job_avoids_the_rack_of_another_job_set_in_any_namespace() -> None:
    """JobSet's anti-affinity has an empty namespaceSelector."""
    snapshot = replace(THREE_RACKS, pods=(running("r1-n1", {JOB_KEY: "a"}, "other"),))
    assert sorted(racks_of(planned(job_set(job("train", 2)), snapshot))) == ["r2", "r3"]


@pytest.mark.parametrize(("space", "free"), [("team", ["r2", "r3"]), ("other", ["r1", "r2"])])
def test_a_replica_avoids_the_rack_of_other_replicas_in_its_own_namespace(
    space: str, free: list[str]
) -> None:
    """LeaderWorkerSet's anti-affinity has no namespaceSelector. A rack with pods is filled first."""
    snapshot = replace(THREE_RACKS, pods=(running("r1-n1", {GROUP_KEY: "a"}, space),))
    assert sorted(racks_of(planned(groups(2, **{OF_REPLICAS: "rack"}), snapshot))) == free


def test_pods_of_neither_kind_may_be_in_the_rack() -> None:
    """Exclusive placement is about jobs or replicas among themselves."""
    pods = tuple(running(f"r{rack}-n1", {}) for rack in (1, 2, 3))
    assert sorted(racks_of(planned(job_set(job("train", 3)), replace(THREE_RACKS, pods=pods)))) == [
        "r1", "r2", "r3",
    ]  # fmt: skip


@pytest.mark.parametrize("obj", [job_set(job("train", 2)), groups(2, **{OF_REPLICAS: "rack"})])
def test_own_pods_that_run_already_do_not_keep_a_job_away(obj: Any) -> None:
    """Their label is the hash of the job's name, or of the leader's."""
    label, names = (JOB_KEY, "team/demo-train-{}") if obj["kind"] == "JobSet" else (GROUP_KEY, "team/demo-{}")
    pods = tuple(running(f"r{rack}-n1", {label: hashed(names.format(rack - 1))}) for rack in (1, 2))
    assert sorted(racks_of(planned(obj, replace(racks(2, 2), pods=pods)))) == ["r1", "r2"]


def test_a_job_set_without_the_annotation_stays_out_of_a_rack_that_a_job_reserves() -> None:
    """The pods of all JobSets have the label that the anti-affinity of the reserved job is about."""
    plan = planned(job_set(job("train")))
    (taken,) = racks_of(plan)
    later = planned(job_set(job("train", 2), level="", name="later"), plan.snapshot)
    assert later.decision == "admitted"
    assert taken not in racks_of(later)


def test_a_job_set_of_any_priority_stays_out_of_a_rack_that_a_job_has() -> None:
    """The running leader's anti-affinity is about pods of its own priority, which no new template states."""
    requirements = [
        {"key": JOB_KEY, "operator": "Exists"},
        {"key": JOB_KEY, "operator": "NotIn", "values": ["a"]},
        {"key": "jobset.sigs.k8s.io/priority", "operator": "In", "values": ["1000"]},
    ]
    term = {
        "topologyKey": "rack", "namespaceSelector": {}, "labelSelector": {"matchExpressions": requirements},
    }  # fmt: skip
    anti_affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    terms = terms_of(anti_affinity, {}, Where("pod"))
    leader = replace(running("r1-n1", {JOB_KEY: "a"}, "other"), terms=terms)
    plan = planned(job_set(job("train"), level=""), replace(THREE_RACKS, pods=(leader,)))
    assert racks_of(plan) == ["r2"]


def test_one_replicated_job_may_ask_for_it_alone() -> None:
    """The annotation is on the template of the workers' job: JobSet reads it there too."""
    plan = planned(job_set(job("train", 3, **{OF_JOBS: "rack"}), level=""))
    assert sorted(racks_of(plan)) == ["r1", "r2", "r3"]
    assert [warning for gang_plan in plan.placed for warning in gang_plan.answer.warnings] == []


def test_a_job_that_does_not_ask_stays_out_of_the_racks_of_those_that_do() -> None:
    """JobSet's label on the driver's pod keeps the workers out of its rack. The workers get theirs first."""
    jobs = job("driver", gpus=0), job("train", 2, **{OF_JOBS: "rack"})
    plan = planned(job_set(*jobs, level=""))
    assert [gang_plan.group.name.rpartition("/")[2] for gang_plan in plan.placed] == ["0", "1", "2"]
    assert sorted(racks_of(plan)) == ["r1", "r2", "r3"]


def test_jobs_that_leave_no_rack_for_the_driver_are_refused() -> None:
    """Three racks for three workers, none for the driver."""
    plan = planned(job_set(job("driver", gpus=0), job("train", 3, **{OF_JOBS: "rack"}), level=""))
    assert plan.decision == "rejected"
    (message,) = {gang_plan.answer.message for gang_plan in plan.placed}
    assert message == (
        "4 Jobs of different pods start together, 3 of them in domains of their own at rack, and the empty "
        "cluster has room for 3 of them."
    )


def test_jobs_of_different_pods_are_refused_together_too() -> None:
    """Two kinds of two jobs each, and three racks."""
    assert planned(job_set(job("a", 2), job("b", 2, gpus=2))).decision == "rejected"
    assert planned(job_set(job("a", 2), job("b", 1, gpus=2))).decision == "admitted"


def test_far_more_jobs_than_racks_are_refused() -> None:
    """Only as many racks are searched for as there are."""
    assert planned(job_set(job("train", 100))).decision == "rejected"


def test_larger_jobs_get_a_rack_before_smaller_ones() -> None:
    """The small job comes first in the JobSet, and would take the rack of two hosts."""
    plan = planned(job_set(job("small", gpus=8), job("large", gpus=8, pods=2)), cluster("r1: a b\nr2: c"))
    assert [gang_plan.answer.assignments[0].node for gang_plan in plan.placed] == ["c", "a"]


def test_the_annotation_on_the_pods_of_a_job_counts_and_on_those_of_other_kinds_not() -> None:
    """JobSet's webhook reads the pods' annotation."""
    body = job("train", 3)
    metadata = body["template"]["spec"]["template"].setdefault("metadata", {})
    metadata["annotations"] = {OF_JOBS: "rack"}
    assert sorted(racks_of(planned(job_set(body, level="")))) == ["r1", "r2", "r3"]
    template = {**o.pod_template(1), "metadata": {"annotations": {OF_JOBS: "rack"}}}
    (gang,) = read(o.changed(o.JOB, ("spec", "template"), template)).gangs
    assert not gang.constraint
    assert not gang.pod_sets[0].constraint


def test_with_nodes_that_are_labelled_for_jobs_no_affinity_is_planned() -> None:
    """JobSet adds none under this strategy: the administrator's labels keep jobs apart."""
    obj = o.annotated(job_set(job("train", 2)), {"alpha.jobset.sigs.k8s.io/node-selector": "true"})
    snapshot = replace(racks(1, 2), pods=(running("r1-n1", {JOB_KEY: "a"}),))
    assert planned(obj, snapshot).decision == "admitted"


def test_a_rack_of_its_own_is_kept_beside_a_coarser_required_level() -> None:
    """Each replica in one block, and in one rack of it."""
    snapshot = cluster("b1/r1: a\nb1/r2: b c\nb1/r3: d e", ("block", "rack"))
    obj = o.changed(groups(2, **{OF_REPLICAS: "rack"}), ("spec", "leaderWorkerTemplate"), {
        "size": 2, "workerTemplate": o.pod_template(8),
    })  # fmt: skip
    obj = o.annotated(obj, {"bayplan.dev/required-level": "block"})
    by_replica = [
        {snapshot.nodes[assignment.node].labels["rack"] for assignment in gang_plan.answer.assignments}
        for gang_plan in planned(obj, snapshot).placed
    ]
    assert sorted(map(sorted, by_replica)) == [["r2"], ["r3"]]


def test_a_short_name_is_warned_of() -> None:
    """The planner knows the level by its short name, but the pods' affinity takes it for a node label."""
    snapshot = cluster("r1: a b\nr2: c d", ("topology.example/rack",))
    warnings = {
        level: planned(job_set(job("train", 2), level=level), snapshot).placed[0].answer.warnings
        for level in ("rack", "topology.example/rack")
    }
    assert "no label of any node" in warnings["rack"][0]
    assert warnings["topology.example/rack"] == ()


def test_replicas_without_the_annotation_that_grow_count_only_their_own_pods() -> None:
    """Each replica is attracted to its own pods by `matchLabelKeys`; the first runs and fills its rack."""
    term = {
        "topologyKey": "rack",
        "labelSelector": {"matchLabels": {"app": "a"}},
        "matchLabelKeys": [GROUP_KEY],
    }
    template = o.pod_template(8)
    template["metadata"] = {"labels": {"app": "a"}}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    template["spec"]["affinity"] = {"podAffinity": required}
    obj = o.changed(groups(2), ("spec", "leaderWorkerTemplate"), {"size": 2, "workerTemplate": template})
    labels = {GROUP_KEY: hashed("team/demo-0"), "app": "a"}
    pods = tuple(
        replace(running(f"r1-n{n}", labels), name=f"team/{n}", requests=amounts(gpu=8, pods=1))
        for n in (1, 2)
    )
    assert racks_of(planned(obj, replace(racks(2, 2), pods=pods)))[1] == "r2"


def test_pods_that_are_spread_within_their_replica_count_themselves() -> None:
    """A topology spread over hosts with `matchLabelKeys`."""
    template = o.pod_template(1)
    template["metadata"] = {"labels": {"app": "a"}}
    template["spec"]["topologySpreadConstraints"] = [
        {
            "maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "a"}}, "matchLabelKeys": [GROUP_KEY],
        }
    ]  # fmt: skip
    obj = o.changed(groups(1), ("spec", "leaderWorkerTemplate"), {"size": 4, "workerTemplate": template})
    (gang_plan,) = planned(obj, racks(1, 4)).placed
    assert len({assignment.node for assignment in gang_plan.answer.assignments}) == 4


@pytest.mark.parametrize("level", ["rack", ""], ids=["on the JobSet", "on the job"])
def test_more_jobs_than_racks_are_refused(level: str) -> None:
    """The fourth would wait for ever, and with it the others."""
    own = {} if level else {OF_JOBS: "rack"}
    plan = planned(job_set(job("train", 4, **own), level=level))
    assert (plan.decision, plan.reservations) == ("rejected", ())
    (message,) = {gang_plan.answer.message for gang_plan in plan.placed}
    assert message == (
        "4 Jobs of 1 pod start together, each in a domain of its own at rack, and the empty cluster has room "
        "for 3 of them. Would work: 3 Jobs."
    )


@pytest.mark.parametrize(("count", "decision"), [(3, "queued"), (4, "rejected")])
@pytest.mark.parametrize("pool", [{"labels": {"rack": "r3"}}, {"choices": {"rack": ("r1", "r3")}}])
def test_a_pool_that_adds_nodes_to_a_known_rack_adds_no_rack(
    pool: dict[str, Any], count: int, decision: str
) -> None:
    """r3 has one host, and its pool can have more: three jobs of two whole hosts wait for these, and no node
    lets a fourth start.
    """
    snapshot = cluster("r1: a b\nr2: c d\nr3: e")
    growth = (GrowingPool("h100", capacity=amounts(gpu=8, pods=110), **pool),)
    snapshot = replace(snapshot, base=replace(snapshot.base, growth=growth))
    plan = planned(job_set(job("train", count, 8, 2)), snapshot)
    assert plan.decision == decision
    assert ("Would work: 3 Jobs." in plan.placed[0].answer.message) == (count == 4)


def test_a_pool_whose_nodes_may_be_in_any_rack_may_add_racks() -> None:
    """Of four jobs, one waits for nodes, and the others for it."""
    growth = (GrowingPool("h100", capacity=amounts(gpu=8, pods=110)),)
    snapshot = replace(THREE_RACKS, base=replace(THREE_RACKS.base, growth=growth))
    assert planned(job_set(job("train", 4)), snapshot).decision == "queued"


def test_replicas_without_a_rack_are_told_how_many_have_one() -> None:
    """They start one by one, so those that have a rack are not refused."""
    plan = planned(groups(4, **{OF_REPLICAS: "rack"}))
    assert [gang_plan.answer.decision for gang_plan in plan.placed] == ["admitted"] * 3 + ["queued"]
    assert plan.placed[3].answer.message.endswith(
        "The empty cluster has room for 3 of 4 replicas, each in a domain of its own at rack."
    )


@given(st.lists(st.integers(1, 4), min_size=1, max_size=5), st.integers(2, 5), st.integers(1, 3))
def test_jobs_are_refused_exactly_if_too_few_racks_have_room(hosts: list[int], count: int, pods: int) -> None:
    """Whatever runs there now. Each pod takes a whole host."""
    rows = (f"r{n}: {' '.join(f'n{n}{host}' for host in range(own))} used=8" for n, own in enumerate(hosts))
    plan = planned(job_set(job("train", count, 8, pods)), cluster("\n".join(rows)))
    room = sum(own >= pods for own in hosts)
    assert plan.decision == ("queued" if room >= count else "rejected")
