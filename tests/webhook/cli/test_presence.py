"""What commands write and say where a scheduler, a queue or a Topology is missing, or may be."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from webhook.cli.main import main

Run = Any
JOB = """
apiVersion: batch/v1
kind: Job
metadata: {name: train, namespace: research}
spec:
  parallelism: 2
  completions: 2
  completionMode: Indexed
  template:
    spec:
      restartPolicy: Never
      containers:
      - {name: train, image: trainer, resources: {limits: {cpu: "64", memory: 512Gi, nvidia.com/gpu: 8}}}
"""
NODES = "".join(
    f"""---
apiVersion: v1
kind: Node
metadata: {{name: n{number}, labels: {{example.com/rack: r1, kubernetes.io/hostname: n{number}}}}}
status: {{allocatable: {{cpu: "96", memory: 1Ti, nvidia.com/gpu: "8", pods: "110"}}}}
"""
    for number in (1, 2)
)
KAIS = """---
apiVersion: kai.scheduler/v1alpha1
kind: Topology
metadata: {name: fabric}
spec: {levels: [{nodeLabel: example.com/rack}, {nodeLabel: kubernetes.io/hostname}]}
"""
QUEUE = """---
apiVersion: scheduling.run.ai/v2
kind: Queue
metadata: {name: default-queue}
"""


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    """Run a command on the Job and a cluster of these documents, None for none; output and errors."""

    def running(command: str, cluster: str | None, *words: str, job: str = JOB) -> tuple[str, str]:
        (tmp_path / "job.yaml").write_text(job)
        cluster_option = [] if cluster is None else ["-c", str(tmp_path / "cluster.yaml")]
        (tmp_path / "cluster.yaml").write_text(cluster or "")
        main(
            [
                *command.split(),
                *cluster_option,
                *words,
                *(() if "topology" in command else ("-f", str(tmp_path / "job.yaml"))),
            ]
        )
        return capsys.readouterr()

    return running


def written(text: str) -> dict[str, Any]:
    """What of KAI's is on the Job."""
    obj = yaml.safe_load(text)
    annotations = {
        key: value for key, value in obj["metadata"].get("annotations", {}).items() if "kai." in key
    }
    spec = obj["spec"]["template"]["spec"]
    return {**annotations, **obj["metadata"].get("labels", {}), "scheduler": spec.get("schedulerName")}


def test_in_a_cluster_without_kai_nothing_of_kais_is_written_and_one_line_says_so(run: Run) -> None:
    """With kube-scheduler the pods start."""
    out, err = run("mutate", NODES)
    assert written(out) == {"scheduler": None}
    assert err == (
        "Note: schedulerName kai-scheduler is not written, as nothing in the cluster shows that scheduler: "
        "no object of its kinds, no CustomResourceDefinition, no pod. "
        "What would work, if it is there all the same: the parameter schedulers.present: kai-scheduler\n"
    )


def test_a_topology_of_kais_is_enough_and_the_queue_that_is_assumed_is_told(run: Run) -> None:
    """`kubectl get nodes,pods,topologies` prints no queues."""
    out, err = run("mutate", NODES + KAIS)
    assert written(out) == {
        "kai.scheduler/topology": "fabric",
        "kai.scheduler/topology-preferred-placement": "example.com/rack",
        "kai.scheduler/batch-min-member": "2",
        "kai.scheduler/queue": "default-queue",
        "scheduler": "kai-scheduler",
    }
    assert err == (
        "Note: assumed to be there, as the cluster's objects do not tell: KAI's queue default-queue\n"
    )


def test_where_queues_are_given_nothing_is_assumed(run: Run) -> None:
    """The default queue is one of them; where it is not, the user hears which there are."""
    _, err = run("mutate", NODES + KAIS + QUEUE)
    assert err == ""
    out, err = run("mutate", NODES + KAIS + QUEUE.replace("default-queue", "training"))
    assert "kai.scheduler/queue" not in written(out)
    assert "KAI has no queue default-queue, and its pods wait until there is one. There are training." in err


def test_without_a_cluster_a_line_says_what_is_assumed(run: Run) -> None:
    """KAI and its default queue."""
    out, err = run("mutate", None)
    assert written(out)["scheduler"] == "kai-scheduler"
    assert err.splitlines()[-1] == (
        "Note: assumed to be there, as no cluster is given: the scheduler kai-scheduler, "
        "KAI's queue default-queue"
    )


WISH = JOB.replace("{name: train,", "{name: train, annotations: {kai.scheduler/topology: nowhere},", 1)
LEVEL = JOB.replace(
    "{name: train,", "{name: train, annotations: {kai.scheduler/topology-required-placement: a/b},", 1
)


@pytest.mark.parametrize("job", [JOB, WISH, LEVEL, JOB.replace("parallelism: 2", "parallelism: 3")])
@pytest.mark.parametrize(
    "command",
    [
        "plan",
        "plan -o json",
        "plan -o yaml",
        "plan --explain",
        "mutate",
        "mutate -o patch",
        "report",
        "report -o json",
        "report -o yaml",
        "report -o html",
        "topology show",
        "topology show -o json",
    ],
)
def test_the_name_of_what_has_none_is_nowhere(run: Run, command: str, job: str) -> None:
    """Levels that come from the nodes' labels are in no object, so no output names one."""
    out, err = run(command, NODES, job=job)
    assert out + err
    assert "inferred" not in out + err


def test_the_plan_of_such_a_cluster_has_a_topology_without_a_name(run: Run) -> None:
    """And a level and a domain as any other."""
    out, _ = run("plan -o json", NODES)
    (gang,) = json.loads(out)["gangs"]
    assert (gang["topology"], gang["level"], gang["domain"]) == ("", "example.com/rack", ["r1"])
