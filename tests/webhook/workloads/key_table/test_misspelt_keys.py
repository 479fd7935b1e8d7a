"""Keys that are nearly one that is read are told; those of other systems are left alone."""

from __future__ import annotations

from typing import Any

import pytest

from webhook.workloads.key_table.known_keys import KNOWN_KEYS
from webhook.workloads.key_table.misspelt_keys import DOMAINS, likely_key, misspelt, misspelt_resources

OURS = sorted(
    {key.name for key in KNOWN_KEYS if key.name.startswith(tuple(f"{domain}/" for domain in DOMAINS))}
)


@pytest.mark.parametrize(
    ("written", "right"),
    [
        ("kai.scheduler/topology-required-placment", "kai.scheduler/topology-required-placement"),
        ("topology-required-placment", "kai.scheduler/topology-required-placement"),
        ("kai.schedular/topology", "kai.scheduler/topology"),
        ("kai.scheduler/podset-required-topology", "kueue.x-k8s.io/podset-required-topology"),
        ("kueue.x-k8s.io/podset-prefered-topology", "kueue.x-k8s.io/podset-preferred-topology"),
        ("kueue.x-k8s.io/queue_name", "kueue.x-k8s.io/queue-name"),
        ("bayplan.dev/gangsize", "bayplan.dev/gang-size"),
        ("bayplan.dev/on_unavailable", "bayplan.dev/on-unavailable"),
        ("topology.scheduler/placment-strategy", "topology.scheduler/placement-strategy"),
    ],
)
def test_a_key_that_is_nearly_right_is_told_with_the_right_one(written: str, right: str) -> None:
    """A letter too few or too many, another sign, the domain of a neighbour or none."""
    assert likely_key(written) == right
    assert misspelt({"annotations": {written: "x"}})[0].endswith(f"What would work: {right}")


@pytest.mark.parametrize("name", OURS)
def test_every_key_is_meant_by_itself_with_a_letter_less(name: str) -> None:
    """Or another key of the same family is as near."""
    assert likely_key(name[:-1]) in OURS or len(name.rpartition("/")[2]) < 5


REAL = (
    "kueue.x-k8s.io/priority-class", "kueue.x-k8s.io/pod-group-serving", "kueue.x-k8s.io/pod-group-pod-index",
    "kueue.x-k8s.io/prebuilt-workload-name",
    "kueue.x-k8s.io/retriable-in-group", "kueue.x-k8s.io/elastic-job",
    "kueue.x-k8s.io/max-exec-time-seconds", "kueue.x-k8s.io/admission-gated-by", "kueue.x-k8s.io/workload",
    "kueue.x-k8s.io/pod-suspending-parent", "kueue.x-k8s.io/role-hash", "kueue.x-k8s.io/managed",
    "kueue.x-k8s.io/podset-slice-required-topology-constraints", "kueue.x-k8s.io/podset",
    "kai.scheduler/stale-podgroup", "kai.scheduler/top-owner-metadata",
    "jobset.sigs.k8s.io/job-key", "batch.kubernetes.io/job-name", "topology.kubernetes.io/zone", "topology",
    "queue", "reserve", "gang", "app.kubernetes.io/name", "example.com/topology", "x" * 400, "",
)  # fmt: skip


@pytest.mark.parametrize("key", REAL)
def test_other_keys_of_these_systems_and_other_peoples_are_left_alone(key: str) -> None:
    """What is real, or too short to tell, is no mistake."""
    assert likely_key(key) == ""


@pytest.mark.parametrize(
    "metadata", [None, [], {}, {"annotations": None}, {"labels": [1]}, {"labels": {1: "x"}}]
)
def test_metadata_that_are_none_have_no_keys(metadata: object) -> None:
    """The API server reports what is wrong."""
    assert misspelt(metadata) == []


OFFERED = {"nvidia.com/gpu": 8, "rdma/hca_shared_devices_a": 63, "habana.ai/gaudi": 8, "example.com/fpga": 2}


def asking_for(name: str) -> dict[str, Any]:
    """A pod spec that asks for one of it."""
    return {"containers": [{"name": "main", "resources": {"limits": {name: "1"}}}]}


@pytest.mark.parametrize(
    ("name", "right"),
    [
        ("nvidia.con/gpu", "nvidia.com/gpu"),
        ("nvidea.com/gpu", "nvidia.com/gpu"),
        ("Nvidia.com/Gpu", "nvidia.com/gpu"),
        ("habana.ai/guadi", "habana.ai/gaudi"),
        ("habana.ai/gaudis", "habana.ai/gaudi"),
        ("rdma/hca_shared_device_a", "rdma/hca_shared_devices_a"),
        ("example.com/fgpa", "example.com/fpga"),
        ("amd.com/gppu", "amd.com/gpu"),
    ],
)
def test_a_resource_that_is_nearly_a_device_or_what_a_node_offers_is_told(name: str, right: str) -> None:
    """The API server accepts any name, so the pod would wait forever."""
    message = f"resource {name} is offered by no device plugin. What would work: {right}"
    assert misspelt_resources(asking_for(name), OFFERED) == [message]


@pytest.mark.parametrize(
    "name",
    [
        "nvidia.com/gpu",
        "amd.com/gpu",
        "nvidia.com/mig-1g.5gb",
        "nvidia.com/vgpu",
        "nvidia.com/gpumem",
        "nvidia.com/gpucores",
        "rdma/hca_shared_devices_b",
        "habana.ai/gaudi2",
        "example.com/asic",
        "tencent.com/vcuda-core",
        "cpu",
        "hugepages-1Gi",
    ],
)
def test_a_resource_that_may_be_meant_is_left_alone(name: str) -> None:
    """Other people's devices, devices whose nodes have yet to come, and names of two pools."""
    assert misspelt_resources(asking_for(name), OFFERED) == []
