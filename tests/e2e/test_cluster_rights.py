"""The RBAC rules in the manifests are minimal: the API server's audit log shows that each is used and none is
missing.

The control plane is separate, and its API server logs the requests of the service account. All kinds in the
rules are defined; those of which objects are created have their real schemas.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.e2e.api import Json
from tests.e2e.binaries import ROOT, find
from tests.e2e.conftest import policy_set
from tests.e2e.controlplane import ControlPlane
from tests.e2e.fleet import Fleet, namespace
from tests.e2e.kubectl import Kubectl
from tests.e2e.kubelet import Kubelet
from tests.e2e.processes import wait_until
from tests.e2e.real_kinds import NAMES, define
from tests.e2e.replicas import GPU, events, job, nodes, reservations
from tests.e2e.rollout import SYSTEM, Rollout
from tests.e2e.stage import NAMESPACES, Cluster
from webhook.kube.state.cluster_watch import EXTRAS, GANGS
from webhook.kube.state.gangs import NOTED
from webhook.workloads import KINDS, WorkloadKind

ACCOUNT = f"system:serviceaccount:{SYSTEM}:bayplan"
RIGHTS = ("30-rbac.yaml", "35-certificates.yaml")
BUILT_IN = ("", "apps", "batch", "resource.k8s.io", "scheduling.k8s.io", "storage.k8s.io", "bayplan.dev")
Right = tuple[str, str, str]
RARELY = {("bayplan.dev", "reservations", "get")}
"""Used only by a claim or a commit that meets another writer of the same object, which nothing forces here;
tests/e2e/test_cluster_ledger.py has them meet."""
ASKS = """
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: asks-who-may}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [batch], apiVersions: [v1], resources: [jobs], operations: [CREATE]}]
  validations:
    - expression: authorizer.group('batch').resource('jobs').check('create').allowed()
"""


def rights() -> set[Right]:
    """Group, resource and verb of every rule."""
    documents = [
        body for name in RIGHTS for body in yaml.safe_load_all((ROOT / "manifests" / name).read_text())
    ]
    return {
        (group, resource, verb)
        for body in documents
        for rule in body.get("rules") or ()
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def kinds() -> Iterator[tuple[str, str, str, str]]:
    """Group, version, resource and kind of all watched kinds that a cluster may not have."""
    rows = [(row.group, row.versions[-1], row.resource, row.name) for row in KINDS.values()]
    rows += [(extra.group, "v1alpha1", extra.resource, extra.kind) for extra in (*EXTRAS, *GANGS)]
    seen = set()
    for group, version, resource, kind in rows:
        if group not in BUILT_IN and (group, resource) not in seen:
            seen.add((group, resource))
            yield group, version, resource, kind


def definition(group: str, version: str, resource: str, kind: str) -> Json:
    """A definition of a kind of which the test creates no object; Bayplan only lists it."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    served = {"name": version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    approved = {"api-approved.kubernetes.io": "unapproved, a stand-in for tests"}
    cluster_scoped = resource in ("topologies", "resourceflavors", "noderesourcetopologies")
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{resource}.{group}",
            "annotations": approved if group.endswith(".k8s.io") and "x-k8s" not in group else {},
        },
        "spec": {
            "group": group,
            "scope": "Cluster" if cluster_scoped else "Namespaced",
            "names": {"kind": kind, "plural": resource, "singular": kind.lower(), "listKind": f"{kind}List"},
            "versions": [served],
        },
    }


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Rollout, Path]]:
    """Two replicas on two nodes with 64 GPUs in all, and the audit log of their requests."""
    folder = tmp_path_factory.mktemp("rights")
    programs = find()
    with ControlPlane(programs, folder, audited=ACCOUNT) as plane:
        kubectl = Kubectl(programs["kubectl"], plane.kubeconfig)
        rows = {
            f"{resource}.{group}": definition(group, version, resource, kind)
            for group, version, resource, kind in kinds()
        }
        text = yaml.safe_dump_all(body for name, body in rows.items() if name not in NAMES)
        output = kubectl("apply", "-f", "-", text=text)
        assert output.status == 0, output.err
        define(kubectl, *sorted(NAMES & rows.keys()), "reports.openreports.io", "workloads.kueue.x-k8s.io")
        for name in NAMESPACES:
            namespace(plane.api, name)
        (policies,) = policy_set("default-scheduler", folder)
        (Path(policies) / "asks").mkdir()
        (Path(policies) / "asks" / "policy.yaml").write_text(ASKS)
        rollout = Rollout(Cluster(plane.api, kubectl, Kubelet(plane.api)), folder, (policies,))
        Fleet(plane.api).make(nodes(1, 2, gpus=64))
        try:
            with rollout.cluster.kubelet:
                rollout.install()
                rollout.add()
                rollout.add()
                yield rollout, folder / "audit.log"
        finally:
            rollout.uninstall()


def template() -> Json:
    """A pod of one GPU."""
    container = {"name": "main", "image": "busybox", "resources": {"limits": {GPU: "1"}}}
    return {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [container]}}


def specs() -> dict[str, Json]:
    """A small gang of every supported kind."""
    pod = template()
    never = {**pod, "spec": {**pod["spec"], "restartPolicy": "Never"}}
    ray = {"headGroupSpec": {"template": pod}, "workerGroupSpecs": []}
    apps = {"replicas": 1, "selector": {"matchLabels": {"app": "x"}}, "template": pod}
    by_kind: dict[str, Json] = {
        "Job": {"template": never},
        "JobSet": {"replicatedJobs": [{"name": "a", "template": {"spec": {"template": never}}}]},
        "LeaderWorkerSet": {"replicas": 1, "leaderWorkerTemplate": {"size": 1, "workerTemplate": pod}},
        "RayCluster": ray,
        "RayJob": {"rayClusterSpec": ray},
        "RayService": {"rayClusterConfig": ray},
        **dict.fromkeys(("Deployment", "ReplicaSet", "StatefulSet"), apps),
    }
    for kind, field in (
        ("PyTorch", "pytorch"),
        ("TF", "tf"),
        ("XGBoost", "xgb"),
        ("JAX", "jax"),
        ("Paddle", "paddle"),
    ):
        by_kind[f"{kind}Job"] = {f"{field}ReplicaSpecs": {"Worker": {"replicas": 1, "template": pod}}}
    return by_kind | {"MPIJob": {"mpiReplicaSpecs": {"Worker": {"replicas": 1, "template": pod}}}}


def group_version(row: WorkloadKind) -> str:
    """The group and version that the kind is stored in: KubeRay's first version, and the newest of the
    others.
    """
    return f"{row.group}/{row.versions[0 if row.group == 'ray.io' else -1]}"


def folder_of(row: WorkloadKind) -> str:
    """The path of the kind's objects."""
    return f"/apis/{group_version(row)}/namespaces/research/{row.resource}"


def note(rollout: Rollout, row: WorkloadKind) -> str:
    """The object's annotation about the placement of its gang."""
    annotations = rollout.api.get(f"{folder_of(row)}/{row.name.lower()}")["metadata"]["annotations"]
    return str(annotations["bayplan.dev/placement"])


def done(audit: Path) -> tuple[set[Right], list[str]]:
    """The requests of the account that were served, and those that were forbidden."""
    used: set[Right] = set()
    refused: list[str] = []
    for line in audit.read_text().splitlines():
        entry = json.loads(line)
        reference = entry.get("objectRef") or {}
        if entry["responseStatus"].get("code") == 403:
            refused.append(f"{entry['verb']} {entry['requestURI']}")
        if reference.get("resource"):
            used.add((reference.get("apiGroup", ""), reference["resource"], entry["verb"]))
    return used, refused


def unserved(rollout: Rollout) -> set[Right]:
    """Rights on devices that this version of Kubernetes does not serve: 1.36 has no DeviceTaintRule of v1."""
    served = {row["name"] for row in rollout.api.get("/apis/resource.k8s.io/v1")["resources"]}
    return {right for right in rights() if right[0] == "resource.k8s.io" and right[1] not in served}


def reports(rollout: Rollout) -> set[str]:
    """The kinds of the objects in the namespace's Report."""
    path = "/apis/openreports.io/v1alpha1/namespaces/research/reports"
    documents = rollout.api.items(path)
    return {result["resources"][0]["kind"] for document in documents for result in document["results"]}


def fail(rollout: Rollout) -> None:
    """Makes a Job fail; the leader adds it to the history of its leaf."""
    body = job("fails", 1)
    body["spec"] |= {"backoffLimit": 0}
    rollout.api.create("/apis/batch/v1/namespaces/research/jobs", body)

    def pods() -> list[Json]:
        listed = rollout.api.items("/api/v1/namespaces/research/pods", labelSelector="job-name=fails")
        return [pod for pod in listed if "nodeName" in pod["spec"]]

    wait_until(lambda: bool(pods()), "the pod to be bound", 60)
    rollout.cluster.kubelet.finish(pods()[0], "Failed")
    path = f"/api/v1/namespaces/{SYSTEM}/configmaps/topology-scheduler-history"
    wait_until(lambda: "data" in rollout.api.get(path), "the history", 60)


def test_every_right_of_the_manifests_is_used_and_none_is_missing(audited: tuple[Rollout, Path]) -> None:
    """A gang of every kind waits, is let in, goes; one fails; certificates are made; a leader changes."""
    rollout, audit = audited
    shapes = specs()
    assert set(shapes) == {row.name for row in NOTED}
    for name in ("busy-1", "busy-2"):
        rollout.api.create("/apis/batch/v1/namespaces/research/jobs", job(name, 1, gpus=64))
    wait_until(lambda: len(reservations(rollout.api)) == 2, "both nodes to be taken")
    wait_until(lambda: bool(reports(rollout)), "the Report to be made, so that what follows updates it", 60)
    for row in NOTED:
        asked = {"bayplan.dev/reserve": "nodes", "bayplan.dev/gang": row.name.lower()}
        metadata = {"name": row.name.lower(), "namespace": "research", "annotations": asked}
        body = {
            "apiVersion": group_version(row),
            "kind": row.name,
            "metadata": metadata,
            "spec": shapes[row.name],
        }
        rollout.api.create(folder_of(row), body)
        assert "queued" in note(rollout, row), row.name
    wait_until(lambda: "Queued" in dict(events(rollout.api, "Job", "job")), "the event", 60)
    for name in ("busy-1", "busy-2"):
        rollout.api.delete(f"/apis/batch/v1/namespaces/research/jobs/{name}")
    for row in NOTED:
        wait_until(lambda row=row: "admitted" in note(rollout, row), f"the {row.name} to be let in", 60)  # type: ignore[misc]
    wait_until(lambda: set(shapes) <= reports(rollout), "the Report to tell of every kind", 60)
    for row in NOTED:
        rollout.api.delete(f"{folder_of(row)}/{row.name.lower()}")
    wait_until(lambda: not reservations(rollout.api), "all places to be free", 60)
    fail(rollout)
    rollout.retire(rollout.replicas[0])
    used, refused = done(audit)
    assert refused == []
    granted = rights()
    assert sorted(granted - used - RARELY - unserved(rollout)) == [], "never used"
    assert sorted(used - granted) == [], "used without being given, by another role"
