"""Bayplan is installed on a cluster in use: 300 workloads of every kind were created before it.

Bayplan is installed in mode `audit`, switched to `enforce`, upgraded and uninstalled. In between, thirty
workloads are labelled, applied again or scaled. No template, revision or running pod may change except as
asked for. The commands of docs/roll-out.md are run unchanged.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import yaml

from tests.e2e.api import Json
from tests.e2e.binaries import ROOT
from tests.e2e.conftest import policy_set
from tests.e2e.fleet import Fleet
from tests.e2e.hook import BAYPLAN
from tests.e2e.operators import operate
from tests.e2e.processes import wait_until
from tests.e2e.replicas import GPU, RACK, nodes
from tests.e2e.rollout import SYSTEM, Rollout
from tests.e2e.stage import Cluster

PAGE = ROOT / "docs" / "roll-out.md"
BLOCK = re.compile(r"^## (?P<title>[^\n]+)\n|```sh\n(?P<lines>.*?)```", re.DOTALL | re.MULTILINE)
COUNTS = {
    "Deployment": 130,
    "StatefulSet": 40,
    "DaemonSet": 10,
    "Job": 60,
    "CronJob": 20,
    "JobSet": 25,
    "LeaderWorkerSet": 15,
}
"""Three hundred."""
APPS, BATCH = "/apis/apps/v1/namespaces/research", "/apis/batch/v1/namespaces/research"
FOLDERS = {
    "Deployment": f"{APPS}/deployments",
    "StatefulSet": f"{APPS}/statefulsets",
    "DaemonSet": f"{APPS}/daemonsets",
    "Job": f"{BATCH}/jobs",
    "CronJob": f"{BATCH}/cronjobs",
    "JobSet": "/apis/jobset.x-k8s.io/v1alpha2/namespaces/research/jobsets",
    "LeaderWorkerSet": "/apis/leaderworkerset.x-k8s.io/v1/namespaces/research/leaderworkersets",
}
REVISIONS = (f"{APPS}/replicasets", f"{APPS}/controllerrevisions")
PODS = "/api/v1/namespaces/research/pods"
SETTLED = 4.0
"""Seconds in which a controller that disagrees with its template makes another revision."""


def template(name: str, gpus: int) -> Json:
    """A pod that states nothing except its GPUs, so that the policies add much to it."""
    limits = {"resources": {"limits": {GPU: str(gpus)}}} if gpus else {}
    containers = [{"name": "main", "image": "busybox", **limits}]
    return {"metadata": {"labels": {"app": name}}, "spec": {"containers": containers}}


def workload(kind: str, number: int) -> Json:
    """A workload of one kind; every fourth requests no GPU."""
    name = f"{kind.lower()}-{number}"
    pods = template(name, (1, 0, 1, 2)[number % 4])
    spec: Json = {"selector": {"matchLabels": {"app": name}}, "template": pods}
    job = {**pods, "spec": {**pods["spec"], "restartPolicy": "Never"}}
    match kind:
        case "StatefulSet":
            spec |= {"serviceName": name}
        case "DaemonSet":
            spec["template"] = template(name, 0)
            spec["template"]["spec"]["nodeSelector"] = {RACK: "r1"}
        case "Job":
            spec = {"template": job, "backoffLimit": 100}
        case "CronJob":
            spec = {"schedule": "0 0 1 1 *", "jobTemplate": {"spec": {"template": job}}}
        case "JobSet":
            jobs = {"parallelism": 2, "completions": 2, "completionMode": "Indexed", "template": job}
            spec = {"replicatedJobs": [{"name": "train", "replicas": 1, "template": {"spec": jobs}}]}
        case "LeaderWorkerSet":
            spec = {"replicas": 1, "leaderWorkerTemplate": {"size": 2, "workerTemplate": pods}}
    version = "/".join(FOLDERS[kind].split("/")[2:4])
    return {
        "apiVersion": version,
        "kind": kind,
        "metadata": {"name": name, "namespace": "research"},
        "spec": spec,
    }


EVERY = [(kind, number) for kind, count in COUNTS.items() for number in range(count)]
RUNNING = 130 + 40 + 10 * 3 + 60 + 25 * 2 + 15 * 2
"""Their pods: those of a DaemonSet are on a rack of three nodes."""


@dataclass(frozen=True)
class Seen:
    """One stored object: the data that it is made from, and its generation."""

    name: str
    content: str
    generation: int


@dataclass
class Trial:
    """The cluster, its workloads, and the replicas after the installation."""

    cluster: Cluster
    rollout: Rollout
    policies: Path
    seen: dict[str, Seen] = field(default_factory=dict)

    def kubectl(self, *arguments: str, text: str | None = None) -> str:
        """Runs kubectl in the namespace; it must succeed."""
        output = self.cluster.kubectl("-n", "research", *arguments, text=text)
        assert output.status == 0, output.err
        return output.out

    def picture(self) -> dict[str, Seen]:
        """Every workload, revision and pod that is not being deleted, by UID."""
        by_uid: dict[str, Seen] = {}
        for path in (*FOLDERS.values(), *REVISIONS, PODS):
            for item in self.cluster.api.items(path):
                metadata = item["metadata"]
                if "deletionTimestamp" in metadata:
                    continue
                desired = item["spec"] if path == PODS else _made_of(item)
                content = json.dumps(desired, sort_keys=True)
                name = f"{path.rpartition('/')[2]}/{metadata['name']}"
                by_uid[metadata["uid"]] = Seen(name, content, metadata.get("generation", 0))
        return by_uid

    def undisturbed(self, *scaled: str) -> None:
        """Checks that nothing changed except the number of pods of the scaled workloads. The current state is
        what the next call compares with.
        """
        time.sleep(SETTLED)
        now = self.picture()
        gone = [seen.name for uid, seen in self.seen.items() if uid not in now]
        assert gone == [], "nothing is restarted or replaced"
        changed = [
            (self.seen[uid].name, self.seen[uid].generation, seen.generation)
            for uid, seen in now.items()
            if uid in self.seen and seen != self.seen[uid] and seen.content != self.seen[uid].content
        ]
        assert changed == [], "no template or pod is changed"
        written = {
            seen.name.rpartition("/")[2]
            for uid, seen in now.items()
            if uid in self.seen and seen.generation != self.seen[uid].generation
        }
        # A Deployment's generation counts its annotations too; its ReplicaSet is scaled with it.
        assert {re.sub(r"-[a-z0-9]{6,10}$", "", name) for name in written} <= {*scaled, *self.annotated}
        new = [seen.name for uid, seen in now.items() if uid not in self.seen]
        assert all(name.startswith(tuple(f"pods/{owner}-" for owner in scaled)) for name in new), new
        assert len(new) == len(scaled), new
        self.seen = now

    def touch(self, turn: int) -> list[str]:
        """Changes thirty workloads: ten are labelled, ten applied again unchanged, ten scaled. Returns the
        names of the scaled ones.
        """
        labelled = [f"{kind.lower()}/{kind.lower()}-{number}" for kind, number in EVERY[turn::30]]
        self.kubectl("label", "--overwrite", *labelled, "team=blue")
        self.kubectl("annotate", "--overwrite", *labelled, f"example.com/turn={turn}")
        self.annotated = {name.partition("/")[2] for name in labelled}
        again = [workload(*row) for row in EVERY[turn + 7 :: 30]]
        self.kubectl("apply", "-f", "-", text=yaml.safe_dump_all(again))
        scaled = [
            f"{kind}-{5 * turn + place}" for place in range(5) for kind in ("deployment", "statefulset")
        ]
        for name in scaled:
            self.kubectl("scale", f"{name.partition('-')[0]}/{name}", "--replicas=2")
        self.added_pods += len(scaled)
        wanted = RUNNING + self.added_pods
        wait_until(lambda: self.running() == len(self.pods()) == wanted, "the new pods to run", 90)
        return scaled

    annotated: set[str] = field(default_factory=set)
    """What was labelled and annotated last."""
    added_pods: int = 0
    """Pods that were added by scaling so far."""

    def pods(self) -> list[Json]:
        """The pods that are not being deleted."""
        listed = self.cluster.api.items(PODS)
        return [pod for pod in listed if "deletionTimestamp" not in pod["metadata"]]

    def running(self) -> int:
        """The number of running pods."""
        return sum(pod["status"].get("phase") == "Running" for pod in self.pods())

    def read_out(self, title: str) -> str:
        """Runs the shell commands below a heading of the page unchanged and returns their output."""
        kubectl = Path(self.cluster.kubectl.program).parent
        path = f"{kubectl}:{Path(BAYPLAN).parent}:{os.environ['PATH']}"
        environment = {**os.environ, "PATH": path, "KUBECONFIG": str(self.cluster.kubectl.kubeconfig)}
        output = ""
        for lines in shell_lines()[title]:
            command = ["sh", "-ec", lines]
            done = subprocess.run(
                command, capture_output=True, text=True, check=False, timeout=180, env=environment
            )
            assert done.returncode == 0, f"{lines}\n{done.stderr}"
            output += done.stdout
        return output


def _made_of(item: Json) -> Json:
    """The spec that an object creates others from, without its number of replicas, or the data of a
    revision.
    """
    spec: Json = {key: value for key, value in (item.get("spec") or {}).items() if key != "replicas"}
    return {"spec": spec, "data": item.get("data")}


def shell_lines() -> dict[str, list[str]]:
    """The page's blocks of shell commands, by the heading above them."""
    by_title: dict[str, list[str]] = {}
    title = ""
    for block in BLOCK.finditer(PAGE.read_text()):
        title = block["title"] or title
        if block["lines"]:
            by_title.setdefault(title, []).append(block["lines"])
    return by_title


@pytest.fixture(scope="module")
def trial(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trial]:
    """All workloads are running, and Bayplan is not installed."""
    folder = tmp_path_factory.mktemp("trial")
    (policies,) = policy_set("default-scheduler", folder)
    fleet = Fleet(cluster.api)
    rollout = Rollout(cluster, folder, (policies,), ("--mode", "audit"), observed=True)
    trial = Trial(cluster, rollout, Path(policies))
    try:
        fleet.make(nodes(8, 3, gpus=24))
        bodies = [workload(kind, number) for kind, number in EVERY]
        trial.kubectl("apply", "-f", "-", text=yaml.safe_dump_all(bodies))
        operated = [
            cluster.api.get(f"{FOLDERS[kind]}/{kind.lower()}-{number}")
            for kind, number in EVERY
            if kind in ("JobSet", "LeaderWorkerSet")
        ]
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda stored: operate(cluster.api, stored), operated))
        wait_until(lambda: trial.running() == RUNNING, "all pods to run", 120)
        time.sleep(SETTLED)
        trial.seen = trial.picture()
        yield trial
    finally:
        rollout.uninstall()
        cluster.kubectl("label", "namespace", "research", "bayplan.dev/mode-")
        for path in FOLDERS.values():
            cluster.api.delete(path)
        wait_until(lambda: not cluster.api.items(PODS), "the pods to go", 90)
        fleet.remove()


def test_before_anything_is_installed_the_report_tells_what_would_change(trial: Trial) -> None:
    """All but the DaemonSets, each once; most of them would be mended, and nothing is."""
    output = trial.read_out("Before you install Bayplan")
    assert "of 290 objects 217 changed, 73 unchanged" in output
    trial.undisturbed()


def test_installed_in_audit_nothing_changes(trial: Trial) -> None:
    """Three replicas, called for what is touched. What would be is in the namespace's Report."""
    trial.rollout.install()
    for _ in range(3):
        trial.rollout.add()
    trial.undisturbed(*trial.touch(0))
    output = trial.read_out("A week in audit")
    assert re.search(r"^research +bayplan ", output, re.MULTILINE), output


def test_switched_to_warn_and_to_enforce_nothing_that_runs_changes(trial: Trial) -> None:
    """What is applied from now on is mended; what runs goes on as it is."""
    trial.read_out("Warn")
    trial.undisturbed()
    trial.read_out("Enforce, one namespace after the other")
    deployment = workload("Deployment", 1000)
    trial.kubectl("apply", "-f", "-", text=yaml.safe_dump(deployment))
    stored = json.loads(trial.kubectl("get", "deployment/deployment-1000", "-o", "json"))
    assert "cpu" in stored["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"]
    trial.kubectl("delete", "deployment/deployment-1000", "--cascade=foreground")
    wait_until(lambda: len(trial.pods()) == RUNNING + trial.added_pods, "its pods to go", 60)
    trial.undisturbed(*trial.touch(1))


def test_upgraded_nothing_that_runs_changes(trial: Trial) -> None:
    """Other parameters, another policy, and replicas that take the place of the former."""
    data = {"guaranteed-qos.enabled": "false", "rdma-fabric.ipc-lock": "false"}
    patch = json.dumps({"data": data})
    output = trial.cluster.kubectl("-n", SYSTEM, "patch", "configmap", "bayplan-parameters", "-p", patch)
    assert output.status == 0, output.err
    policy = trial.policies / "scheduler-name" / "policy.yaml"
    policy.write_text(policy.read_text() + "\n# another version of it\n")
    for replica in list(trial.rollout.replicas):
        trial.rollout.add()
        trial.rollout.retire(replica)
    trial.undisturbed(*trial.touch(2))


def test_uninstalled_nothing_that_runs_changes(trial: Trial) -> None:
    """The off switch first, which needs no replica; then the rest."""
    trial.read_out("Turn everything off")
    trial.rollout.uninstall()
    trial.undisturbed(*trial.touch(3))
