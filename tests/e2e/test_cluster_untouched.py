"""Workloads from before Bayplan's installation keep running, under real controllers.

A Deployment, StatefulSet, DaemonSet, CronJob with its Job, and JobSet (its operator is simulated) are applied
before the webhooks are installed. Changes that leave their templates alone must leave template, revision and
pods alone too. A change of a template makes one new revision and no more.
"""

from __future__ import annotations

import copy
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from tests.e2e.api import Json
from tests.e2e.conftest import policy_set
from tests.e2e.fleet import Fleet
from tests.e2e.kube_ledgers import install
from tests.e2e.kubectl import Output
from tests.e2e.operators import operate
from tests.e2e.processes import wait_until
from tests.e2e.replicas import GPU, Replicas, nodes, reservations
from tests.e2e.stage import Cluster

PODS = "/api/v1/namespaces/research/pods"
APPS = "/apis/apps/v1/namespaces/research"
JOBS = "/apis/batch/v1/namespaces/research/jobs"
FOLDERS = {
    "Deployment": f"{APPS}/deployments",
    "StatefulSet": f"{APPS}/statefulsets",
    "DaemonSet": f"{APPS}/daemonsets",
    "CronJob": "/apis/batch/v1/namespaces/research/cronjobs",
    "JobSet": "/apis/jobset.x-k8s.io/v1alpha2/namespaces/research/jobsets",
}
SETTLED = 3.0
"""Seconds in which a controller that disagrees with its template makes another revision: the storm that this
file is about made four in each."""
SPARING = {"bayplan.dev/reserve": "nodes"}
"""Gangs of one GPU a pod hold no whole host here: other workloads' pods run on all of them."""


def template(name: str) -> Json:
    """A pod of one GPU that states nothing else, so that the policies add much to it."""
    container = {"name": "main", "image": "busybox", "resources": {"limits": {GPU: "1"}}}
    return {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container]}}


def workload(kind: str, name: str) -> Json:
    """One object of each kind, with two pods if it has a number of them."""
    pods = template(name)
    spec: Json = {"selector": {"matchLabels": {"app": name}}, "template": pods}
    job = {**pods, "spec": {**pods["spec"], "restartPolicy": "Never"}}
    if kind == "Deployment":
        spec["replicas"] = 2
    elif kind == "StatefulSet":
        spec |= {"replicas": 2, "serviceName": name, "podManagementPolicy": "Parallel"}
    elif kind == "CronJob":
        jobs = {"parallelism": 2, "completions": 2, "completionMode": "Indexed", "template": job}
        spec = {"schedule": "0 0 1 1 *", "jobTemplate": {"spec": jobs}}
    elif kind == "JobSet":
        jobs = {"parallelism": 2, "completions": 2, "completionMode": "Indexed", "template": job}
        spec = {"replicatedJobs": [{"name": "train", "replicas": 1, "template": {"spec": jobs}}]}
    version = "/".join(FOLDERS[kind].split("/")[2:4])
    metadata: Json = {"name": name, "namespace": "research"}
    if kind == "CronJob":
        spec["jobTemplate"]["metadata"] = {"annotations": SPARING}
    if kind == "JobSet":
        metadata["annotations"] = SPARING
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}


@dataclass(frozen=True)
class Picture:
    """What must not change: the stored template, the controller's revisions of it, and the pods."""

    template: Json
    revisions: tuple[str, ...]
    pods: frozenset[str]


@dataclass
class Ground:
    """A cluster with workloads, the replicas that the API server calls, and the folder of their policies."""

    cluster: Cluster
    replicas: Replicas
    policies: Path

    def kubectl(self, *arguments: str, text: str | None = None) -> Output:
        """Runs kubectl in the namespace; it must succeed."""
        output = self.cluster.kubectl("-n", "research", *arguments, text=text)
        assert output.status == 0, output.err
        return output

    def stored(self, kind: str, name: str) -> Json:
        """The stored object."""
        return self.cluster.api.get(f"{FOLDERS[kind]}/{name}")

    def pods(self, name: str, label: str = "app") -> list[Json]:
        """The object's pods that are not being deleted."""
        listed = self.cluster.api.items(PODS, labelSelector=f"{label}={name}")
        return [pod for pod in listed if "deletionTimestamp" not in pod["metadata"]]

    def uids(self, name: str, label: str = "app") -> frozenset[str]:
        """The UIDs of the pods: a replaced pod has another one."""
        return frozenset(pod["metadata"]["uid"] for pod in self.pods(name, label))

    def running(self, name: str, count: int, label: str = "app") -> list[Json]:
        """The object's pods, once exactly this many run."""

        def run() -> bool:
            pods = self.pods(name, label)
            return len(pods) == count and all(pod["status"].get("phase") == "Running" for pod in pods)

        try:
            wait_until(run, f"{count} pods of {name} to run", 60)
        except TimeoutError as error:
            pods = [
                (pod["metadata"]["name"], pod["spec"].get("nodeName"), pod["status"])
                for pod in self.pods(name, label)
            ]
            raise AssertionError(f"{error}: {json.dumps(pods)[:3000]}") from None
        return self.pods(name, label)

    def replace_one(self, name: str, label: str = "app") -> None:
        """Deletes one of the object's pods and waits until it is gone."""
        first = self.pods(name, label)[0]["metadata"]
        self.cluster.api.delete(f"{PODS}/{first['name']}")
        wait_until(lambda: first["uid"] not in self.uids(name, label), "the pod to go")

    def look(self, kind: str, name: str) -> Picture:
        """The current picture of one object."""
        spec = self.stored(kind, name)["spec"]
        template = spec.get("template") or spec.get("jobTemplate") or spec.get("replicatedJobs")
        path = f"{APPS}/replicasets" if kind == "Deployment" else f"{APPS}/controllerrevisions"
        history = self.cluster.api.items(path, labelSelector=f"app={name}")
        revisions = tuple(sorted(revision["metadata"]["name"] for revision in history))
        return Picture(template, revisions, self.uids(name))

    def parameters(self, **changed: str) -> None:
        """Sets other parameters and waits until every replica uses them."""
        path = self.policies / "parameters.yaml"
        former = [json.loads(self.replicas.readiness(port)[1])["revision"] for port in self.replicas.ports]
        body = yaml.safe_load(path.read_text())
        body["data"] |= {key.replace("__", "."): value for key, value in changed.items()}
        path.write_text(yaml.safe_dump(body))
        for port, revision in zip(self.replicas.ports, former, strict=True):
            wait_until(
                lambda port=port, revision=revision: (
                    json.loads(self.replicas.readiness(port)[1])["revision"] != revision
                ),
                "the new parameters",
            )


BEFORE = {kind: f"old-{kind.lower()}" for kind in FOLDERS}
AFTER = {kind: f"new-{kind.lower()}" for kind in FOLDERS}
COUNT = {"Deployment": 2, "StatefulSet": 2, "DaemonSet": 6, "CronJob": 0, "JobSet": 2}


@pytest.fixture(scope="module")
def ground(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    """Workloads of each kind from before the webhooks; then two replicas, and the same workloads again."""
    folder = tmp_path_factory.mktemp("untouched")
    install(cluster.kubectl)
    fleet = Fleet(cluster.api)
    (policies,) = policy_set("default-scheduler", folder)
    # Policies that are on whatever the cluster is; read again within seconds when they change.
    replicas = Replicas(cluster.api, cluster.kubectl.kubeconfig, folder, 2, (policies,))
    ground = Ground(cluster, replicas, Path(policies))
    try:
        fleet.make(nodes(2, 3, gpus=24))
        make(ground, BEFORE)
        ground.kubectl("create", "job", "old-run", f"--from=cronjob/{BEFORE['CronJob']}")
        replicas.start()
        replicas.configure()
        make(ground, AFTER)
        yield ground
        replicas.unconfigure()
    finally:
        for names in (BEFORE, AFTER):
            for kind, name in names.items():
                cluster.api.delete(f"{FOLDERS[kind]}/{name}")
        for job in cluster.api.items(JOBS):
            cluster.api.delete(f"{JOBS}/{job['metadata']['name']}")
        wait_until(lambda: not cluster.api.items(PODS), "the pods to go", 60)
        replicas.stop()
        fleet.remove()


def make(ground: Ground, names: dict[str, str]) -> None:
    """Runs `kubectl apply` for one object of each kind and waits until all their pods run."""
    for kind, name in names.items():
        ground.kubectl("apply", "-f", "-", text=yaml.safe_dump(workload(kind, name)))
        if kind == "JobSet":
            operate(ground.cluster.api, ground.stored(kind, name))
    for kind, name in names.items():
        ground.running(name, COUNT[kind])


EVERY = [(kind, names[kind]) for kind in FOLDERS for names in (BEFORE, AFTER)]
each = pytest.mark.parametrize(("kind", "name"), EVERY, ids=[name for _, name in EVERY])


def unmoved(ground: Ground, kind: str, name: str, before: Picture) -> None:
    """Waits a while and checks that nothing changed."""
    time.sleep(SETTLED)
    assert ground.look(kind, name) == before


@each
def test_a_label_an_annotation_and_a_finalizer_restart_nothing(ground: Ground, kind: str, name: str) -> None:
    """A label on a running StatefulSet was once a rolling restart of production."""
    before = ground.look(kind, name)
    resource = f"{kind.lower()}/{name}"
    ground.kubectl("label", resource, "team=blue")
    ground.kubectl("annotate", resource, "example.com/note=seen")
    path = f"{FOLDERS[kind]}/{name}"
    ground.cluster.api.merge(path, {"metadata": {"finalizers": ["example.com/hold"]}})
    ground.cluster.api.merge(path, {"metadata": {"finalizers": None}})
    unmoved(ground, kind, name, before)


@each
def test_the_same_manifest_applied_again_changes_nothing(ground: Ground, kind: str, name: str) -> None:
    """By kubectl on the client and on the server, and replaced as it was written, as GitOps tools do."""
    before = ground.look(kind, name)
    text = yaml.safe_dump(workload(kind, name))
    ground.kubectl("apply", "-f", "-", text=text)
    ground.kubectl(
        "apply", "--server-side", "--force-conflicts", "--field-manager=gitops", "-f", "-", text=text
    )
    ground.kubectl(
        "apply", "--server-side", "--force-conflicts", "--field-manager=gitops", "-f", "-", text=text
    )
    ground.kubectl("replace", "-f", "-", text=text)
    unmoved(ground, kind, name, before)


@each
def test_other_parameters_change_nothing_that_is_not_applied_anew(
    ground: Ground, kind: str, name: str
) -> None:
    """A policy is switched off, and what was mended with it is labelled, applied again, and replaced."""
    before = ground.look(kind, name)
    ground.parameters(**{"guaranteed-qos__enabled": "false", "rdma-fabric__ipc-lock": "false"})
    try:
        ground.kubectl("label", "--overwrite", f"{kind.lower()}/{name}", "team=red")
        text = yaml.safe_dump(workload(kind, name))
        ground.kubectl("apply", "-f", "-", text=text)
        ground.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", text=text)
        ground.kubectl("replace", "-f", "-", text=text)
        unmoved(ground, kind, name, before)
    finally:
        ground.parameters(**{"guaranteed-qos__enabled": "true", "rdma-fabric__ipc-lock": "true"})


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet"])
@pytest.mark.parametrize("names", [BEFORE, AFTER], ids=["old", "new"])
def test_scaling_adds_pods_and_touches_nothing_else(ground: Ground, kind: str, names: dict[str, str]) -> None:
    """From two to three: the fault was 90 ReplicaSets in 25 seconds. The pod that is new is mended."""
    name = names[kind]
    before = ground.look(kind, name)
    path = f"{FOLDERS[kind]}/{name}"
    ground.cluster.api.merge(path, {"spec": {"replicas": 3}})
    ground.running(name, 3)
    time.sleep(SETTLED)
    after = ground.look(kind, name)
    assert (after.template, after.revisions) == (before.template, before.revisions)
    assert before.pods < after.pods
    (new,) = (pod for pod in ground.pods(name) if pod["metadata"]["uid"] not in before.pods)
    assert "cpu" in new["spec"]["containers"][0]["resources"]["requests"], "its owner was made before Bayplan"
    ground.kubectl("scale", f"{kind.lower()}/{name}", "--replicas=2")
    ground.running(name, 2)
    time.sleep(SETTLED)
    again = ground.look(kind, name)
    assert (again.template, again.revisions) == (before.template, before.revisions)


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "DaemonSet"])
@pytest.mark.parametrize("names", [BEFORE, AFTER], ids=["old", "new"])
def test_a_restart_by_hand_makes_one_new_revision(ground: Ground, kind: str, names: dict[str, str]) -> None:
    """`kubectl rollout restart` changes the template: it is mended, once, and the rollout ends."""
    name = names[kind]
    before = ground.look(kind, name)
    output = ground.kubectl("rollout", "restart", f"{kind.lower()}/{name}")
    ground.kubectl("rollout", "status", f"{kind.lower()}/{name}", "--timeout=90s")
    ground.running(name, COUNT[kind])
    time.sleep(SETTLED)
    after = ground.look(kind, name)
    assert len(set(after.revisions) - set(before.revisions)) == 1
    assert not before.pods & after.pods
    requests = after.template["spec"]["containers"][0]["resources"].get("requests", {})
    assert ("cpu" in requests) == (kind != "DaemonSet")
    assert bool(output.warnings) == (kind != "DaemonSet" and names is BEFORE), output.err
    unmoved(ground, kind, name, after)


def test_a_pod_of_a_daemon_set_is_left_alone(ground: Ground) -> None:
    """It runs where its controller puts it: no scheduler, no gate, no resources of ours."""
    name = BEFORE["DaemonSet"]
    ground.replace_one(name)
    for pod in ground.running(name, 6):
        assert not [key for key in pod["metadata"].get("annotations", {}) if "bayplan.dev" in key]
        assert pod["spec"]["containers"][0]["resources"]["requests"] == {GPU: "1"}


@pytest.mark.parametrize("names", [BEFORE, AFTER], ids=["old", "new"])
def test_the_next_job_of_a_cron_job_is_as_its_template_says(ground: Ground, names: dict[str, str]) -> None:
    """Its owner was asked; its pods are mended as they come, and take the place that the gang has."""
    cron, run = names["CronJob"], f"{names['CronJob']}-run"
    ground.kubectl("create", "job", run, f"--from=cronjob/{cron}")
    job = ground.cluster.api.get(f"{JOBS}/{run}")
    template = ground.stored("CronJob", cron)["spec"]["jobTemplate"]["spec"]["template"]
    assert without_labels(job["spec"]["template"]) == without_labels(template)
    held = reservations(ground.cluster.api)[f"research/Job/{run}"]
    for pod in ground.running(run, 2, "job-name"):
        assert pod["metadata"]["annotations"]["bayplan.dev/reservation"] == held["metadata"]["name"]
        assert pod["spec"]["nodeName"] in str(held["spec"])
        assert "cpu" in pod["spec"]["containers"][0]["resources"]["requests"]
    ground.cluster.api.delete(f"{JOBS}/{run}")
    wait_until(lambda: not ground.pods(run, "job-name"), "its pods to go")


def without_labels(template: Json) -> Json:
    """The template of a Job without the labels that the API server adds."""
    rest: Json = copy.deepcopy(template)
    for key in ("labels", "creationTimestamp"):
        rest["metadata"].pop(key, None)
    return rest


def test_a_job_from_before_goes_on_and_its_new_pods_are_mended(ground: Ground) -> None:
    """A label on it changes nothing; a pod that its Job makes anew is let in, and is Guaranteed."""
    ground.running("old-run", 2, "job-name")
    job = ground.cluster.api.get(f"{JOBS}/old-run")
    ground.kubectl("label", "job/old-run", "team=blue")
    assert ground.cluster.api.get(f"{JOBS}/old-run")["spec"] == job["spec"]
    ground.replace_one("old-run", "job-name")
    resources = [
        pod["spec"]["containers"][0]["resources"] for pod in ground.running("old-run", 2, "job-name")
    ]
    assert sorted("cpu" in requirements["requests"] for requirements in resources) == [False, True]
