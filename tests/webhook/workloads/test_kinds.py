"""Every kind's gang size, PodSets, names and template paths, as the table of kinds says."""

from __future__ import annotations

from typing import Any

import pytest

from tests.webhook.workloads import objects as o
from webhook.workloads import KINDS, read, wants_plan
from webhook.workloads.options import ReserveDefaults

MISSPELT = {"limits": {"nvidia.com/gpus": 8}}


def sets(workload: Any, gang: int = 0) -> dict[str, int]:
    return {pod_set.name: pod_set.count for pod_set in workload.gangs[gang].pod_sets}


def paths(workload: Any) -> list[str]:
    return [".".join(map(str, template.path)) for template in workload.templates]


@pytest.mark.parametrize(
    ("obj", "expected", "where"),
    [
        (o.POD, {"main": 1}, [""]),
        (o.JOB, {"main": 4}, ["spec.template"]),
        (o.CRON_JOB, {"main": 1}, ["spec.jobTemplate.spec.template"]),
        (
            o.JOB_SET,
            {"driver": 1, "worker": 6},
            ["spec.replicatedJobs.0.template.spec.template", "spec.replicatedJobs.1.template.spec.template"],
        ),
        (
            o.LWS,
            {"leader": 1, "worker": 3},
            ["spec.leaderWorkerTemplate.leaderTemplate", "spec.leaderWorkerTemplate.workerTemplate"],
        ),
        (
            o.PYTORCH_JOB,
            {"master": 1, "worker": 3},
            ["spec.pytorchReplicaSpecs.Master.template", "spec.pytorchReplicaSpecs.Worker.template"],
        ),
        (
            o.MPI_JOB,
            {"launcher": 1, "worker": 4},
            ["spec.mpiReplicaSpecs.Launcher.template", "spec.mpiReplicaSpecs.Worker.template"],
        ),
        (
            o.RAY_JOB,
            {"head": 1, "small": 4, "big": 3},
            [
                "spec.rayClusterSpec.headGroupSpec.template",
                "spec.rayClusterSpec.workerGroupSpecs.0.template",
                "spec.rayClusterSpec.workerGroupSpecs.1.template",
                "spec.rayClusterSpec.workerGroupSpecs.2.template",
            ],
        ),
        (o.STATEFUL_SET, {"main": 1}, ["spec.template"]),
    ],
    ids=lambda value: value["kind"] if isinstance(value, dict) and "kind" in value else "",
)
def test_pod_sets_and_template_paths(obj: Any, expected: dict[str, int], where: list[str]) -> None:
    """Each kind yields its PodSets with their counts, and the path of each pod template."""
    workload = read(obj)
    assert sets(workload) == expected
    assert paths(workload) == where


def test_the_table_is_complete() -> None:
    """Every row of the table is read: those with pods by a valid object of the kind, the others as empty."""
    read_kinds = {read(obj).kind for obj in o.EVERY}
    empty = {row.name for row in KINDS.values()} - read_kinds
    assert empty == {"PodGroup", "TrainJob"}
    for obj in o.EVERY:
        workload = read(obj)
        assert workload.templates or workload.inlined


def test_a_train_job_is_suspended_by_its_own_field() -> None:
    """Kueue suspends it so; the JobSet that its runtime makes of it is planned when that is resumed."""
    for flag in (True, False):
        job = {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "metadata": {"name": "t"}}
        assert read({**job, "spec": {"suspend": flag}}).suspended is flag


def test_a_gang_is_named_by_namespace_kind_and_name() -> None:
    """The gang of a Job carries the Job's name."""
    assert [gang.name for gang in read(o.JOB).gangs] == ["team/Job/demo"]


def test_a_namespace_that_is_not_stated_is_the_callers() -> None:
    """An object without a namespace is in the one that the request or the command names."""
    obj = o.changed(o.JOB, ("metadata",), {"name": "demo"})
    assert read(obj, namespace="lab").gangs[0].name == "lab/Job/demo"


def test_a_generated_name_comes_from_the_request() -> None:
    """With generateName the name is stable for one request and differs between requests."""
    obj = o.changed(o.POD, ("metadata",), {"generateName": "run-"})
    first, again, other = (read(obj, request_uid=uid).gangs[0].name for uid in ("a", "a", "b"))
    assert first == again != other
    assert first.startswith("default/Pod/run-")


def test_replicas_of_a_leader_worker_set_are_gangs_of_their_own() -> None:
    """Each replica is a gang, numbered from 0."""
    names = [gang.name for gang in read(o.LWS).gangs]
    assert names == ["team/LeaderWorkerSet/demo/0", "team/LeaderWorkerSet/demo/1"]


def test_a_leader_without_a_template_is_made_like_the_workers() -> None:
    """The gang is the same, and the one template speaks for both PodSets."""
    obj = o.changed(o.LWS, ("spec", "leaderWorkerTemplate", "leaderTemplate"), None)
    workload = read(obj)
    assert sets(workload) == {"leader": 1, "worker": 3}
    assert [(template.pod_set, template.count) for template in workload.templates] == [("", 4)]
    assert workload.gangs[0].gpus == 32


def test_exclusive_subgroups_are_told_as_not_planned() -> None:
    """Their pods get affinity that the plan does not know, and that its own may contradict."""
    key = "leaderworkerset.sigs.k8s.io/subgroup-exclusive-topology"
    obj = o.changed(o.LWS, ("metadata", "annotations"), {key: "rack"})
    assert [gang.warnings for gang in read(o.LWS).gangs if gang.warnings] == []
    for gang in read(obj).gangs:
        assert any(
            warning.startswith(f"metadata.annotations[{key}] is not planned") for warning in gang.warnings
        )


def test_a_leader_worker_set_of_size_one_has_only_leaders() -> None:
    """Size 1 leaves no worker, and the workers' template becomes the leader's."""
    obj = o.changed(o.LWS, ("spec", "leaderWorkerTemplate"), {"size": 1, "workerTemplate": o.pod_template()})
    workload = read(obj)
    assert sets(workload) == {"leader": 1}
    assert [template.pod_set for template in workload.templates] == ["leader"]


def test_a_job_never_runs_more_pods_than_it_completes() -> None:
    """completions bounds parallelism."""
    assert read(o.changed(o.JOB, ("spec", "completions"), 3)).gangs[0].size == 3


def test_a_job_of_no_pods_has_no_gang() -> None:
    """Its parallelism is 0."""
    assert read(o.changed(o.JOB, ("spec", "parallelism"), 0)).gangs == ()


def test_kai_starting_a_job_with_fewer_pods_is_told() -> None:
    """The plan is for all pods, and a warning names both numbers."""
    gang = read(o.annotated(o.JOB, {"kai.scheduler/batch-min-member": "2"})).gangs[0]
    assert gang.size == 4
    assert "2" in gang.warnings[0]
    assert "4" in gang.warnings[0]


@pytest.mark.parametrize("parallelism", [2, 4, 8])
def test_a_gang_size_that_a_policy_wrote_does_not_keep_a_job_from_being_scaled(parallelism: int) -> None:
    """Its author did not state it: scaled down, the Job was refused, and unknown to the controller."""
    notes = {
        "kai.scheduler/batch-min-member": "4",
        "bayplan.dev/policies": "kai-batch-min-member,kai-queue@abc",
    }
    job = o.changed(
        o.changed(o.JOB, ("spec", "parallelism"), parallelism), ("spec", "completions"), parallelism
    )
    (gang,) = read(o.annotated(job, notes)).gangs
    assert (gang.size, gang.warnings) == (parallelism, ())


def test_min_available_beats_the_sum() -> None:
    """The workers above minAvailable are left out of the gang; the master never is."""
    obj = o.changed(o.PYTORCH_JOB, ("spec", "runPolicy"), {"schedulingPolicy": {"minAvailable": 2}})
    assert sets(read(obj)) == {"master": 1, "worker": 1}


def test_min_available_beats_elastic_min_replicas() -> None:
    """runPolicy comes before elasticPolicy, which comes before the sum."""
    elastic = o.changed(o.PYTORCH_JOB, ("spec", "elasticPolicy"), {"minReplicas": 3})
    with_policy = o.changed(elastic, ("spec", "runPolicy"), {"schedulingPolicy": {"minAvailable": 2}})
    assert read(elastic).gangs[0].size == 3
    assert read(with_policy).gangs[0].size == 2


def test_a_gang_that_is_larger_than_the_job_is_refused() -> None:
    """minAvailable above the sum of the replicas could never start."""
    obj = o.changed(o.PYTORCH_JOB, ("spec", "runPolicy"), {"schedulingPolicy": {"minAvailable": 9}})
    with pytest.raises(ValueError, match=r"minAvailable: asks for 9 pods together, the job makes 4"):
        read(obj)


def test_the_three_ray_kinds_are_read_alike() -> None:
    """RayCluster, RayJob and RayService differ in where the cluster stands."""
    assert sets(read(o.RAY_CLUSTER)) == sets(read(o.RAY_JOB)) == sets(read(o.RAY_SERVICE))


def test_a_ray_job_on_an_existing_cluster_makes_no_pods() -> None:
    """With a clusterSelector there is no cluster spec, and nothing to plan."""
    workload = read(o.obj("ray.io/v1", "RayJob", {"clusterSelector": {"ray.io/cluster": "shared"}}))
    assert (workload.templates, workload.gangs) == ((), ())


def test_exclusive_topology_makes_each_child_job_a_gang() -> None:
    """Each child Job of the JobSet gets a domain of its own."""
    obj = o.annotated(o.JOB_SET, {"alpha.jobset.sigs.k8s.io/exclusive-topology": "rack"})
    gangs = read(obj).gangs
    assert [(gang.name, gang.size, gang.constraint.required) for gang in gangs] == [
        ("team/JobSet/demo/0", 1, "rack"),
        ("team/JobSet/demo/1", 3, "rack"),
        ("team/JobSet/demo/2", 3, "rack"),
    ]


@pytest.mark.parametrize("obj", [o.DEPLOYMENT, o.REPLICA_SET, o.STATEFUL_SET], ids=lambda obj: obj["kind"])
def test_replicas_for_themselves_are_planned_pod_by_pod(obj: Any) -> None:
    """Each pod is a gang, and the object reserves nothing."""
    workload = read(obj)
    assert [gang.size for gang in workload.gangs] == [1, 1, 1]
    assert (workload.per_pod, workload.holds) == (True, False)


def test_a_huge_deployment_is_planned_in_part() -> None:
    """Only the first thousand pods are planned with the object, and a warning says so."""
    gangs = read(o.changed(o.DEPLOYMENT, ("spec", "replicas"), 2_000_000)).gangs
    assert len(gangs) == 1000
    assert gangs[0].warnings == ("plans the first 1000 of 2000000 pods",)


def test_a_stateful_set_annotated_as_a_gang_is_one() -> None:
    """All its replicas start together, and it holds its place."""
    workload = read(o.annotated(o.STATEFUL_SET, {"bayplan.dev/gang": "true"}))
    assert [(gang.name, gang.size) for gang in workload.gangs] == [("team/StatefulSet/demo", 3)]
    assert (workload.per_pod, workload.holds) == (False, True)


def test_a_cron_job_holds_nothing() -> None:
    """The Job that it creates does."""
    workload = read(o.CRON_JOB)
    assert (workload.holds, workload.gangs[0].name) == (False, "team/CronJob/demo")


def test_a_child_of_a_gang_is_no_gang() -> None:
    """A JobSet's Job is part of the JobSet's plan; its template is seen all the same."""
    owner = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "name": "big", "controller": True}
    workload = read(o.changed(o.JOB, ("metadata", "ownerReferences"), [owner]))
    assert (workload.gangs, workload.holds, workload.owner) == ((), False, "team/JobSet/big")
    assert len(workload.templates) == 1


def test_a_cron_jobs_job_is_a_gang() -> None:
    """Its owner reserves nothing."""
    owner = {"apiVersion": "batch/v1", "kind": "CronJob", "name": "nightly", "controller": True}
    workload = read(o.changed(o.JOB, ("metadata", "ownerReferences"), [owner]))
    assert (len(workload.gangs), workload.holds) == (1, True)


def test_grove_keeps_its_gangs() -> None:
    """Pods of cliques can be changed; the gangs are Grove's."""
    workload = read(o.GROVE)
    assert (workload.gangs, workload.templates) == ((), ())
    assert [pod_spec.spec_path[-1] for pod_spec in workload.inlined] == ["podSpec"]


@pytest.mark.parametrize(
    "obj",
    [
        o.obj("kubeflow.org/v1beta1", "Notebook", {"template": o.pod_template()}),
        o.obj("serving.knative.dev/v1", "Service", {"template": o.pod_template()}),
        o.obj("example.com/v1", "Job", {"template": o.pod_template()}),
        o.obj("apps/v1", "DaemonSet", {"template": None}),
        {"spec": {"template": {}}},
        {"apiVersion": 3, "kind": ["Job"]},
    ],
)
def test_unknown_kinds_pass_untouched(obj: Any) -> None:
    """No template, no gang and no error, whatever they hold."""
    workload = read(obj)
    assert (workload.kind, workload.templates, workload.gangs, wants_plan(workload)) == ("", (), (), False)


def test_only_gpu_workloads_want_a_plan() -> None:
    """GPUs, MIG slices, device claims and topology keys each do; plain cpu work does not."""
    plain = o.changed(o.JOB, ("spec", "template"), o.pod_template(0))
    mig = o.changed(o.JOB, ("spec", "template"), o.pod_template(0, limits={"nvidia.com/mig-1g.5gb": 1}))
    claim = o.changed(plain, ("spec", "template", "spec", "resourceClaims"), [{"name": "gpu"}])
    keyed = o.annotated(plain, {"kai.scheduler/topology": "fabric"})
    reserved = o.annotated(plain, {"bayplan.dev/reserve": "nodes"})
    assert not wants_plan(read(plain))
    misspelt = o.changed(plain, ("spec", "template", "spec", "containers", 0, "resources"), MISSPELT)
    assert wants_plan(read(misspelt)), "nvidia.com/gpus: its author wants GPUs"
    assert all(wants_plan(read(obj)) for obj in (o.JOB, mig, claim, keyed, reserved))


@pytest.mark.parametrize("obj", [o.JOB, o.BAG, o.DEPLOYMENT, o.POD], ids=lambda obj: obj["kind"])
def test_what_names_its_node_wants_no_plan(obj: Any) -> None:
    """Its pods are bound when they are created, and a plan would pin them to other nodes."""
    path = ("spec",) if obj is o.POD else ("spec", "template", "spec")
    workload = read(o.changed(obj, (*path, "nodeName"), "dgx-01"))
    assert (workload.gangs, workload.holds, wants_plan(workload)) == ((), False, False)
    assert len(workload.templates) == 1


def test_skip_wants_no_plan() -> None:
    """An object with `bayplan.dev/skip` is not planned."""
    workload = read(o.annotated(o.JOB, {"bayplan.dev/skip": "true"}))
    assert workload.skip
    assert not wants_plan(workload)


def test_what_a_gang_holds_is_said_or_left_to_the_planner() -> None:
    """`auto`, which may be said too; a default that is said by nobody gives way to an administrator's."""
    groups = [
        read(o.annotated(o.JOB, {"bayplan.dev/reserve": mode} if mode else {})).gangs[0]
        for mode in ("", "auto", "domain", "nodes", "none")
    ]
    assert [group.reserve for group in groups] == ["auto", "auto", "domain", "nodes", "none"]
    chosen = ReserveDefaults("nodes", 0.8)
    assert [chosen.of(group).reserve for group in groups] == ["nodes", "auto", "domain", "nodes", "none"]
    assert {chosen.of(group).whole_from for group in groups} == {0.8}


@pytest.mark.parametrize(
    "template",
    [
        o.pod_template(0, limits={"nvidia.com/mig-1g.5gb": 1}),
        o.pod_template(0, {"gpu-fraction": "0.5"}),
        o.pod_template(0, limits={"nvidia.com/gpu.shared": 1}),
    ],
)
def test_parts_of_gpus_hold_no_domain(template: Any) -> None:
    """A MIG slice, a fraction, a time slice: the planner knows each for a part."""
    (pod_set,) = read(o.changed(o.JOB, ("spec", "template"), template)).gangs[0].pod_sets
    assert pod_set.shape.takes_parts


def test_an_elastic_training_job_has_from_its_least_to_its_most_pods() -> None:
    """elasticPolicy: at least two pods, the master among them, and at most six where an autoscaler may add
    pods; without its metrics the job has the four pods that it states."""
    elastic = {"minReplicas": 2, "maxReplicas": 6}
    metrics = [{"type": "Resource", "resource": {"name": "cpu"}}]
    for stated, max_workers in (
        ({**elastic, "metrics": metrics}, 5),
        (elastic, 3),
        ({**elastic, "maxReplicas": 3}, 2),
    ):
        gang = read(o.changed(o.PYTORCH_JOB, ("spec", "elasticPolicy"), stated)).gangs[0]
        bounds = {pod_set.name: (pod_set.count, pod_set.max_count) for pod_set in gang.pod_sets}
        assert bounds == {"master": (1, 0), "worker": (1, max_workers)}


def test_a_ray_group_without_replicas_has_its_least_workers() -> None:
    """The CRD's default is 0, which KubeRay raises to minReplicas."""
    group = {"groupName": "workers", "template": o.pod_template()}
    for stated, names in (({"minReplicas": 0}, ["head"]), ({"minReplicas": 2}, ["head", "workers"])):
        gang = read(o.changed(o.RAY_CLUSTER, ("spec", "workerGroupSpecs"), [{**group, **stated}])).gangs[0]
        assert [pod_set.name for pod_set in gang.pod_sets] == names
        assert gang.size == 1 + stated["minReplicas"]


def test_a_ray_group_has_from_its_least_to_its_most_workers() -> None:
    """minReplicas to maxReplicas, each of so many hosts, where Ray's autoscaler may add workers; a most that
    bounds nothing is none. Without an autoscaler the most are the replicas."""
    group = {"replicas": 3, "minReplicas": 2, "maxReplicas": 5, "numOfHosts": 2}
    unbounded = {"replicas": 3, "minReplicas": 2, "maxReplicas": 2**31 - 1}
    where = ("spec", "workerGroupSpecs", 0)
    old = o.RAY_CLUSTER["spec"]["workerGroupSpecs"][0]
    cases = (
        (group, True, (4, 10)),
        (unbounded, True, (2, 3)),
        (group, False, (4, 6)),
        (unbounded, False, (2, 3)),
    )
    for stated, autoscaled, expected in cases:
        scaled = o.changed(o.RAY_CLUSTER, ("spec", "enableInTreeAutoscaling"), autoscaled)
        gang = read(o.changed(scaled, where, {**old, "numOfHosts": 1, **stated})).gangs[0]
        assert [(pod_set.count, pod_set.max_count) for pod_set in gang.pod_sets] == [(1, 0), expected, (3, 0)]


def test_a_ray_group_has_no_more_workers_than_its_most() -> None:
    """KubeRay starts maxReplicas workers where more are stated, whoever scales the group."""
    where = ("spec", "workerGroupSpecs", 0)
    old = {**o.RAY_CLUSTER["spec"]["workerGroupSpecs"][0], "numOfHosts": 2}
    for stated in ({"replicas": 8, "minReplicas": 0}, {"replicas": 8, "minReplicas": 6}, {"minReplicas": 6}):
        for autoscaled in (True, False):
            scaled = o.changed(o.RAY_CLUSTER, ("spec", "enableInTreeAutoscaling"), autoscaled)
            group = {**{key: old[key] for key in ("groupName", "numOfHosts", "template")}, **stated}
            gang = read(o.changed(scaled, where, {**group, "maxReplicas": 4})).gangs[0]
            assert (gang.pod_sets[1].count, gang.pod_sets[1].max_count) == (8, 0)


@pytest.mark.parametrize(
    ("obj", "path"),
    [
        (o.JOB, ("spec", "managedBy")),
        (o.JOB_SET, ("spec", "managedBy")),
        (o.RAY_JOB, ("spec", "managedBy")),
        (o.changed(o.MPI_JOB, ("spec", "runPolicy"), {}), ("spec", "runPolicy", "managedBy")),
    ],
)
def test_what_kueue_runs_in_another_cluster_is_not_planned_here(obj: o.Json, path: tuple[str, ...]) -> None:
    """MultiKueue: its controller creates no pods here. Another controller may create them in this cluster."""
    assert not wants_plan(read(o.changed(obj, path, "kueue.x-k8s.io/multikueue")))
    assert wants_plan(read(o.changed(obj, path, "example.com/controller")))
    assert wants_plan(read(obj))


def test_what_makes_pods_by_itself_may_grow_but_no_job() -> None:
    """A Job starts a pod as soon as another has ended; each replica of a LeaderWorkerSet has its size."""
    growing = {row.name for row in KINDS.values() if row.grows}
    jobs = {"Pod", "Job", "CronJob", "JobSet", "LeaderWorkerSet", "PodCliqueSet"}
    assert growing == {row.name for row in KINDS.values() if row.has_templates} - jobs


def test_kinds_with_a_subresource_scale_keep_templates_that_may_change() -> None:
    """Their objects live on when their number of pods changes."""
    scaled = [row for row in KINDS.values() if row.has_scale]
    assert {row.name for row in scaled} == {"Deployment", "ReplicaSet", "StatefulSet", "LeaderWorkerSet"}
    assert not [row for row in scaled if row.template_immutable]
