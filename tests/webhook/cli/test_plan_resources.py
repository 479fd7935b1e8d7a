"""`bayplan plan` counts every resource that a pod asks of its node: as many pods as fit, and not one more."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml

from webhook.cli.main import main

Json = dict[str, Any]
Planner = Callable[..., Json]

H100 = "NVIDIA-H100-80GB-HBM3"
NODE: Json = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {
        "name": "n1",
        "labels": {
            "kubernetes.io/hostname": "n1",
            "nvidia.com/gpu.product": H100,
            "nvidia.com/gpu.memory": "81559",
        },
    },
    "status": {"allocatable": {"cpu": "32", "memory": "256Gi", "nvidia.com/gpu": "4", "pods": "110"}},
}


@pytest.fixture
def planned(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Planner:
    """The answer to a Job of so many pods on one node that offers these amounts besides."""

    def planning(
        pods: int, spec: Json, offers: Json | None = None, *, node: Json = NODE, **extras: Any
    ) -> Json:
        host = deepcopy(node)
        host["status"]["allocatable"] |= offers or {}
        cluster, manifest = tmp_path / "cluster.yaml", tmp_path / "job.yaml"
        cluster.write_text(yaml.safe_dump_all([host, *extras.pop("cluster", ())]))
        template = {"metadata": extras.pop("metadata", {}), "spec": {"restartPolicy": "Never", **spec}}
        job = {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": "job", "namespace": "team"},
            "spec": {
                "parallelism": pods,
                "completions": pods,
                "completionMode": "Indexed",
                "template": template,
            },
        }
        manifest.write_text(yaml.safe_dump_all([job, *extras.pop("manifests", ())]))
        main(("plan", "-c", str(cluster), "-f", str(manifest), "--reserve", "nodes", "-o", "json"))
        answer: Json = json.loads(capsys.readouterr().out)["gangs"][0]
        return answer

    return planning


def container(name: str = "main", *, always: bool = False, **limits: str) -> Json:
    """A container with these limits; `always`: a sidecar."""
    return {
        "name": name,
        "image": "x",
        "resources": {"limits": limits},
        **({"restartPolicy": "Always"} if always else {}),
    }


def asking_for(resource: str, amount: str) -> Json:
    """A pod spec of one GPU container that asks for so much of one resource."""
    return {"containers": [{"name": "main", "image": "x", "resources": {"limits": {resource: amount}}}]}


@pytest.mark.parametrize(
    ("resource", "amount", "capacity", "fits"),
    [
        ("cpu", "9", "32", 3),
        ("memory", "100Gi", "256Gi", 2),
        ("ephemeral-storage", "400Gi", "1Ti", 2),
        ("hugepages-2Mi", "512Mi", "1Gi", 2),
        ("hugepages-1Gi", "4Gi", "8Gi", 2),
        ("nvidia.com/gpu", "2", "4", 2),
        ("amd.com/gpu", "4", "8", 2),
        ("nvidia.com/mig-1g.10gb", "2", "7", 3),
        ("rdma/hca_shared_devices_a", "1", "2", 2),
        ("rdma/ib", "8", "8", 1),
        ("openshift.io/mlnxnics", "4", "8", 2),
        ("nvidia.com/sriov-rdma-vf", "16", "16", 1),
        ("vpc.amazonaws.com/efa", "32", "32", 1),
        ("networking.gke.io.networks/rdma-0", "1", "1", 1),
        ("example.com/fpga", "1", "3", 3),
    ],
)
def test_each_resource_is_counted(
    planned: Planner, resource: str, amount: str, capacity: str, fits: int
) -> None:
    """As many pods as it holds are admitted, one more is refused, and the message names the number."""
    annotated = {"metadata": {"annotations": {"bayplan.dev/reserve": "nodes"}}}  # so that a plan is asked for
    spec, offers = asking_for(resource, amount), {resource: capacity}
    assert planned(fits, spec, offers, **annotated)["decision"] == "admitted"
    refused = planned(fits + 1, spec, offers, **annotated)
    assert refused["decision"] == "rejected"
    assert f"room for {fits} of {fits + 1} pods" in refused["message"]


def test_a_resource_that_no_node_has_is_named_with_those_there_are(planned: Planner) -> None:
    """The message lists the cluster's devices."""
    answer = planned(
        1, asking_for("rdma/ib", "1"), metadata={"annotations": {"bayplan.dev/reserve": "nodes"}}
    )
    assert (answer["decision"], answer["reason"]) == ("rejected", "PodFitsNoNode")
    assert "the only node has no rdma/ib. The cluster's devices: nvidia.com/gpu." in answer["message"]
    assert "nvidia.com/gpu" in answer["message"]


def test_pods_per_node_are_a_resource(planned: Planner) -> None:
    """The kubelet's limit, pods of others counted."""
    busy = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "x", "namespace": "other"},
        "spec": {"nodeName": "n1", "containers": [{"name": "c"}]},
    }
    spec, offers = asking_for("nvidia.com/gpu", "1"), {"pods": "3"}
    assert planned(3, spec, offers)["decision"] == "admitted"
    assert planned(4, spec, offers)["decision"] == "rejected"
    assert planned(2, spec, offers, cluster=(busy,))["decision"] == "admitted"
    assert planned(3, spec, offers, cluster=(busy,))["decision"] == "queued"


def test_the_largest_init_container_counts_and_not_their_sum(planned: Planner) -> None:
    """Init containers run one by one, before the others."""
    spec = {
        "initContainers": [container("a", cpu="16"), container("b", cpu="10")],
        "containers": [container(cpu="2")],
    }
    spec["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] = "1"
    assert planned(2, spec)["decision"] == "admitted"
    assert planned(3, spec)["decision"] == "rejected"


def test_a_sidecar_runs_beside_all_that_comes_after_it(planned: Planner) -> None:
    """Eight cores of it beside eight of the pod; the init container before it takes no more."""
    spec = {
        "initContainers": [container("early", cpu="16"), container("proxy", always=True, cpu="8")],
        "containers": [container(cpu="8")],
    }
    noted = {"metadata": {"annotations": {"bayplan.dev/reserve": "nodes"}}}
    assert planned(2, spec, **noted)["decision"] == "admitted"
    later = {**spec, "initContainers": [*reversed(spec["initContainers"])]}
    assert planned(1, later, **noted)["decision"] == "admitted"
    assert planned(2, later, **noted)["decision"] == "rejected"


def test_a_gpu_of_an_init_container_counts_too(planned: Planner) -> None:
    """The node's device plugin keeps it for the pod."""
    spec = {"initContainers": [container("warm")], "containers": [container()]}
    spec["initContainers"][0]["resources"]["limits"] = {"nvidia.com/gpu": "3"}
    spec["containers"][0]["resources"]["limits"] = {"nvidia.com/gpu": "1"}
    assert planned(1, spec)["decision"] == "admitted"
    assert planned(2, spec)["decision"] == "rejected"


def test_the_overhead_of_a_runtime_class_is_added(planned: Planner) -> None:
    """Four cores of it make three pods of eight into two."""
    spec = asking_for("cpu", "8") | {"overhead": {"cpu": "4"}}
    noted = {"metadata": {"annotations": {"bayplan.dev/reserve": "nodes"}}}
    assert planned(2, spec, **noted)["decision"] == "admitted"
    assert planned(3, spec, **noted)["decision"] == "rejected"
    assert planned(4, asking_for("cpu", "8"), **noted)["decision"] == "admitted"


@pytest.mark.parametrize("state", ["pending", "rebooting", "failed"])
def test_slices_of_a_board_that_is_being_divided_are_no_capacity_yet(planned: Planner, state: str) -> None:
    """The gang waits for `success`."""
    node = deepcopy(NODE)
    node["metadata"]["labels"]["nvidia.com/mig.config.state"] = state
    spec, offers = asking_for("nvidia.com/mig-1g.10gb", "1"), {"nvidia.com/mig-1g.10gb": "7"}
    assert planned(1, spec, offers, node=node)["decision"] == "queued"


def test_parts_of_gpus_are_packed_on_gpus(planned: Planner) -> None:
    """Four GPUs take eight halves, and four times 0.6."""
    half, larger = ({"annotations": {"gpu-fraction": size}} for size in ("0.5", "0.6"))
    spec: Json = {"containers": [container(cpu="1")]}
    assert planned(8, spec, metadata=half)["decision"] == "admitted"
    assert planned(9, spec, metadata=half)["decision"] == "rejected"
    assert planned(4, spec, metadata=larger)["decision"] == "admitted"
    assert planned(5, spec, metadata=larger)["decision"] == "rejected"


def test_gpus_by_claim_are_read_from_the_manifests(planned: Planner) -> None:
    """The template stands beside the Job."""
    template = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "two", "namespace": "team"},
        "spec": {
            "spec": {
                "devices": {
                    "requests": [{"name": "g", "exactly": {"deviceClassName": "gpu.nvidia.com", "count": 2}}]
                }
            }
        },
    }
    claims = [{"name": "g", "resourceClaimTemplateName": "two"}]
    spec: Json = {"containers": [container(cpu="1")], "resourceClaims": claims}
    assert planned(2, spec, manifests=(template,))["decision"] == "admitted"
    refused = planned(3, spec, manifests=(template,))
    assert refused["decision"] == "rejected"
    assert "3 pods (6 GPUs) do not fit the empty cluster" in refused["message"]
    assert "claim template two is not known in team" in planned(3, spec)["warnings"][0]


def test_a_part_asked_for_on_the_job_itself_is_told_to_have_no_effect(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """KAI reads the pods' annotations."""
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "job", "annotations": {"gpu-fraction": "0.5"}},
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [container(cpu="1")]}}},
    }
    cluster, manifest = tmp_path / "cluster.yaml", tmp_path / "job.yaml"
    cluster.write_text(yaml.safe_dump(NODE))
    manifest.write_text(yaml.safe_dump(job))
    main(("plan", "-c", str(cluster), "-f", str(manifest)))
    output = " ".join(capsys.readouterr().out.split())
    assert "annotations.gpu-fraction has no effect there: gpu-fraction belongs on pod templates" in output
