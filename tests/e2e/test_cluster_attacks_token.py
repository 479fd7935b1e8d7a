"""A stolen token of Bayplan's service account can remove Bayplan's scheduling gate and do hardly anything
else.

The rights are those of manifests/30-rbac.yaml, limited further by manifests/31-least-power.yaml, on a real
API server and without a webhook, as if Bayplan were down.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e.api import Api, ApiError, Json
from tests.e2e.binaries import ROOT
from tests.e2e.fleet import namespace
from tests.e2e.processes import wait_until
from tests.e2e.stage import Cluster

SYSTEM = "bayplan-system"
FILES = ("10-namespace.yaml", "20-crds.yaml", "30-rbac.yaml", "31-least-power.yaml")
OURS, FOREIGN = "bayplan.dev/queued", "example.com/approval"
PODS = "/api/v1/namespaces/{}/pods"
JOBS = "/apis/batch/v1/namespaces/{}/jobs"
DEPLOYMENTS = "/apis/apps/v1/namespaces/{}/deployments"
AFFINITY = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [
                {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["n1"]}]}
            ]
        }
    }
}


@pytest.fixture(scope="module")
def thief(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """The API server with the token of the replicas' account."""
    for name in FILES:
        output = cluster.kubectl("apply", "-f", str(ROOT / "manifests" / name))
        assert output.status == 0, output.err
    account = f"/api/v1/namespaces/{SYSTEM}/serviceaccounts/bayplan"
    token = cluster.api.create(f"{account}/token", {"spec": {"expirationSeconds": 3600}})["status"]["token"]
    config = yaml.safe_load(Path(cluster.kubectl.kubeconfig).read_text())
    config = copy.deepcopy(config)
    config["users"] = [{"name": user["name"], "user": {"token": token}} for user in config["users"]]
    stolen = tmp_path_factory.mktemp("token") / "kubeconfig"
    stolen.write_text(yaml.safe_dump(config))
    yield Api(stolen)
    for name in reversed(FILES[2:]):
        cluster.kubectl("delete", "-f", str(ROOT / "manifests" / name), "--ignore-not-found")


def template(**spec: Any) -> Json:
    """A pod of one container with Bayplan's scheduling gate and another one."""
    container = {"name": "main", "image": "busybox:1", "resources": {"limits": {"cpu": "1"}}}
    gates = [{"name": OURS}, {"name": FOREIGN}]
    return {"restartPolicy": "Never", "containers": [container], "schedulingGates": gates, **spec}


@pytest.fixture
def pods(cluster: Cluster) -> Iterator[dict[str, str]]:
    """The paths of a gated pod in a tenant's namespace and of one in kube-system, by namespace."""
    paths = {}
    for space in ("research", "kube-system"):
        namespace(cluster.api, space)
        body = {"metadata": {"name": "stolen", "annotations": {"team": "a"}}, "spec": template()}
        cluster.api.create(PODS.format(space), body)
        paths[space] = f"{PODS.format(space)}/stolen"
    yield paths
    for path in paths.values():
        cluster.api.delete(path, grace=0)
        wait_until(lambda path=path: not _exists(cluster.api, path), "the pod to go")


def _exists(api: Api, path: str) -> bool:
    try:
        api.get(path)
    except ApiError:
        return False
    return True


def refused(thief: Api, path: str, patch: Json) -> str:
    """The API server's error for a patch that it must refuse."""
    with pytest.raises(ApiError) as caught:
        thief.merge(path, patch)
    assert caught.value.status in (403, 422)
    return str(caught.value)


@pytest.fixture(autouse=True)
def in_force(thief: Api, pods: dict[str, str]) -> None:
    """Waits until the policy is in force, a moment after it was applied."""

    def denied() -> bool:
        try:
            thief.merge(pods["kube-system"], {"metadata": {"annotations": {"bayplan.dev/probe": "x"}}})
        except ApiError as error:
            return "bayplan-least-power" in str(error)
        return False

    wait_until(denied, "the policy to be in force", 60)


def test_the_gate_may_be_opened_and_the_place_written(thief: Api, pods: dict[str, str]) -> None:
    """As the controller lets a pod in: gate, affinity, toleration and annotations in one patch."""
    reserved = {"key": "bayplan.dev/reserved", "operator": "Equal", "value": "x", "effect": "NoSchedule"}
    stored = thief.get(pods["research"])
    patch = {
        "metadata": {"annotations": {"bayplan.dev/placement": "{}", "bayplan.dev/reservation": "bp-1"}},
        "spec": {
            "schedulingGates": [{"name": FOREIGN}],
            "affinity": AFFINITY,
            "tolerations": [*stored["spec"]["tolerations"], reserved],
        },
    }
    opened = thief.merge(pods["research"], patch)
    assert opened["spec"]["schedulingGates"] == [{"name": FOREIGN}]
    assert opened["spec"]["affinity"] == AFFINITY


def test_nothing_in_kube_system_may_be_changed(thief: Api, pods: dict[str, str]) -> None:
    """Not even our own gate."""
    message = refused(thief, pods["kube-system"], {"spec": {"schedulingGates": [{"name": FOREIGN}]}})
    assert "namespaces of the cluster's own programs" in message


@pytest.mark.parametrize(
    "spec",
    [
        {"containers": [{"name": "main", "image": "evil"}]},
        {"schedulingGates": [{"name": OURS}]},
        {"activeDeadlineSeconds": 1},
        {"nodeSelector": {"pool": "mine"}},
        {"tolerations": [{"operator": "Exists"}]},
    ],
    ids=["image", "anothers-gate", "deadline", "node-selector", "toleration"],
)
def test_no_other_field_of_a_pod_may_be_changed(thief: Api, pods: dict[str, str], spec: Json) -> None:
    """Of what the API server lets anybody change of a pod who may patch it at all."""
    stored = thief.get(pods["research"])
    if "containers" in spec:
        spec = {"containers": [{**stored["spec"]["containers"][0], "image": "evil"}]}
    if "tolerations" in spec:
        spec = {"tolerations": [*stored["spec"]["tolerations"], *spec["tolerations"]]}
    assert "bayplan-least-power" in refused(thief, pods["research"], {"spec": spec})


@pytest.mark.parametrize(
    "metadata",
    [
        {"labels": {"app": "mine"}},
        {"annotations": {"team": "b"}},
        {"annotations": {"team": None}},
        {"finalizers": ["example.com/stay"]},
    ],
    ids=["label", "annotation", "annotation-away", "finalizer"],
)
def test_of_the_metadata_only_our_annotations_may_be_changed(
    thief: Api, pods: dict[str, str], metadata: Json
) -> None:
    """Labels choose Services and policies, and annotations of others are theirs."""
    assert "only annotations under bayplan.dev/" in refused(thief, pods["research"], {"metadata": metadata})


def test_affinity_behind_others_gates_alone_may_not_be_changed(
    cluster: Cluster, thief: Api, pods: dict[str, str]
) -> None:
    """What does not wait for us is not ours to place."""
    cluster.api.merge(pods["research"], {"spec": {"schedulingGates": [{"name": FOREIGN}]}})
    assert "bayplan-least-power" in refused(thief, pods["research"], {"spec": {"affinity": AFFINITY}})


@pytest.mark.parametrize("kind", ["jobs", "deployments"])
def test_a_workloads_spec_may_not_be_changed(cluster: Cluster, thief: Api, kind: str) -> None:
    """Its annotations of ours may: they tell where the gang is. In kube-system not even these."""
    folder = {"jobs": JOBS, "deployments": DEPLOYMENTS}[kind]
    labels = {"app": "stolen"}
    body: Json = {"metadata": {"name": "stolen"}, "spec": {"template": {"spec": template()}}}
    patch: Json = {"spec": {"parallelism": 0}}
    if kind == "deployments":
        body["spec"] |= {"selector": {"matchLabels": labels}}
        body["spec"]["template"] |= {"metadata": {"labels": labels}}
        body["spec"]["template"]["spec"] |= {"restartPolicy": "Always"}
        patch = {"spec": {"replicas": 0}}
    try:
        for space in ("research", "kube-system"):
            cluster.api.create(folder.format(space), body)
        path = f"{folder.format('research')}/stolen"
        assert "the spec of a workload may not change" in refused(thief, path, patch)
        note = {"metadata": {"annotations": {"bayplan.dev/placement": "{}"}}}
        assert thief.merge(path, note)["metadata"]["annotations"]["bayplan.dev/placement"] == "{}"
        refused(thief, f"{folder.format('kube-system')}/stolen", note)
    finally:
        for space in ("research", "kube-system"):
            cluster.api.delete(f"{folder.format(space)}/stolen")


@pytest.mark.parametrize(
    ("verb", "path"),
    [
        ("GET", "/api/v1/secrets"),
        ("GET", "/api/v1/namespaces/kube-system/secrets"),
        ("GET", "/api/v1/namespaces/bayplan-system/secrets/other"),
        ("DELETE", "/api/v1/namespaces/research/pods/stolen"),
        ("DELETE", "/apis/batch/v1/namespaces/research/jobs/stolen"),
        ("GET", "/apis/rbac.authorization.k8s.io/v1/clusterroles"),
    ],
)
def test_there_is_no_right_to_secrets_deletions_or_rights(thief: Api, verb: str, path: str) -> None:
    """RBAC alone says so."""
    with pytest.raises(ApiError) as caught:
        thief.call(verb, path, None)
    assert caught.value.status == 403
