"""Labels that controllers give to pods, by which templates select them before they exist."""

from __future__ import annotations

import pytest

from planner.planning.plan import plan
from tests.builders import racks
from webhook.workloads import read

POD = {"containers": [{"name": "train", "image": "x", "resources": {"limits": {"nvidia.com/gpu": 1}}}]}


def apart(label: str, value: str):
    """A pod template of which no two pods with this label are on one host."""
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {label: value}}}
    rule = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    return {"spec": {**POD, "affinity": rule, "restartPolicy": "Never"}}


def job(template, kind="Job", api="batch/v1", **spec):
    """A workload of three pods, which are a gang."""
    indexed = {"parallelism": 3, "completions": 3, "completionMode": "Indexed", "template": template}
    spec = spec or indexed
    return {"apiVersion": api, "kind": kind, "metadata": {"name": "train", "namespace": "team"}, "spec": spec}


@pytest.mark.parametrize("label", ["job-name", "batch.kubernetes.io/job-name"])
def test_a_jobs_pods_are_known_by_its_name(label):
    """Three pods on three hosts; another job's name selects none of them."""
    (group,) = read(job(apart(label, "train")), namespace="team").gangs
    assert len(plan(racks(1, 4), group).assignments) == 3
    (group,) = read(job(apart(label, "other")), namespace="team").gangs
    assert len(plan(racks(1, 4), group).assignments) == 1


@pytest.mark.parametrize(
    ("label", "value"),
    [
        ("jobset.sigs.k8s.io/jobset-name", "train"),
        ("jobset.sigs.k8s.io/replicatedjob-name", "workers"),
    ],
)
def test_a_jobsets_pods_are_known_by_its_name_and_their_own(label, value):
    """The JobSet's, and that of the replicated job."""
    inner = {"spec": {"parallelism": 3, "completions": 3, "template": apart(label, value)}}
    replicated = [{"name": "workers", "replicas": 1, "template": inner}]
    obj = job(None, "JobSet", "jobset.x-k8s.io/v1alpha2", replicatedJobs=replicated)
    (group,) = read(obj, namespace="team").gangs
    assert len(plan(racks(1, 4), group).assignments) == 3


def test_a_training_jobs_pods_are_known_by_its_name():
    """Master and workers alike."""
    template = apart("training.kubeflow.org/job-name", "train")
    sets = {"Master": {"replicas": 1, "template": template}, "Worker": {"replicas": 2, "template": template}}
    obj = job(None, "PyTorchJob", "kubeflow.org/v1", pytorchReplicaSpecs=sets)
    (group,) = read(obj, namespace="team").gangs
    assert len({assignment.node for assignment in plan(racks(1, 4), group).assignments}) == 3


def test_a_templates_own_label_goes_first():
    """The pods will have the template's value."""
    template = apart("job-name", "train")
    template["metadata"] = {"labels": {"job-name": "mine"}}
    (group,) = read(job(template), namespace="team").gangs
    assert len(plan(racks(1, 4), group).assignments) == 1
