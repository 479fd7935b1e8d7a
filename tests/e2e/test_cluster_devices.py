"""Devices by claim on a real control plane: the plan agrees with kube-scheduler about DeviceTaintRules.

The devices are real objects, which kube-scheduler allocates; no kubelet prepares them.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.api import Json
from tests.e2e.processes import wait_until
from tests.e2e.replicas import Replicas
from tests.e2e.serving import PODS, empty, replicas_of
from tests.e2e.stage import Cluster
from tests.e2e.verdicts import decided, planned

GROUP = "/apis/resource.k8s.io/v1"
CLASSES, SLICES, RULES = f"{GROUP}/deviceclasses", f"{GROUP}/resourceslices", f"{GROUP}/devicetaintrules"
TEMPLATES = f"{GROUP}/namespaces/research/resourceclaimtemplates"
SEEN = "nodes,pods,deviceclasses,resourceslices,resourceclaims,resourceclaimtemplates,devicetaintrules"
DRIVER, NODE = "gpu.nvidia.com", "r1-n1"
TOLERATES = {"tolerations": [{"key": "repair", "operator": "Exists"}]}


@pytest.fixture(scope="module")
def serving(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Replicas]:
    """One node with two devices, and templates of claims for one, for two, and for two that tolerate."""
    with replicas_of(cluster, tmp_path_factory.mktemp("replicas"), 1, 1, count=1) as replicas:
        if "devicetaintrules" not in {row["name"] for row in replicas.api.get(GROUP)["resources"]}:
            pytest.skip("this version of Kubernetes serves no DeviceTaintRule of v1")
        driver = {"cel": {"expression": f"device.driver == '{DRIVER}'"}}
        replicas.api.create(CLASSES, of_group("DeviceClass", DRIVER, {"selectors": [driver]}))
        pool = {"name": NODE, "generation": 1, "resourceSliceCount": 1}
        devices = [{"name": f"gpu-{n}", "attributes": {"type": {"string": "gpu"}}} for n in range(2)]
        slices = {"driver": DRIVER, "nodeName": NODE, "pool": pool, "devices": devices}
        replicas.api.create(SLICES, of_group("ResourceSlice", f"{NODE}-gpus", slices))
        for name, count, fields in (("one", 1, {}), ("two", 2, {}), ("tolerant", 2, TOLERATES)):
            exactly = {"deviceClassName": DRIVER, "count": count, **fields}
            spec = {"spec": {"devices": {"requests": [{"name": "gpus", "exactly": exactly}]}}}
            replicas.api.create(TEMPLATES, of_group("ResourceClaimTemplate", name, spec))
        yield replicas
        empty(replicas.api, PODS, TEMPLATES, SLICES, CLASSES, RULES)


def of_group(kind: str, name: str, spec: Json) -> Json:
    """An object of the group resource.k8s.io."""
    namespace = {"namespace": "research"} if kind == "ResourceClaimTemplate" else {}
    metadata = {"name": name, **namespace}
    return {"apiVersion": "resource.k8s.io/v1", "kind": kind, "metadata": metadata, "spec": spec}


@pytest.mark.parametrize(
    ("selector", "admitted"),
    [
        (None, ["one", "two", "tolerant"]),
        ({"pool": NODE}, ["tolerant"]),
        ({"driver": DRIVER, "pool": NODE, "device": "gpu-0"}, ["one", "tolerant"]),
        ({"driver": "nic.example.com"}, ["one", "two", "tolerant"]),
    ],
    ids=str,
)
def test_the_plan_takes_the_devices_that_kube_scheduler_takes(
    serving: Replicas, cluster: Cluster, selector: Json | None, admitted: list[str]
) -> None:
    """A rule taints all devices of the pool, or one, or those of another driver; a claim may tolerate it."""
    if selector is not None:
        taint = {"key": "repair", "value": "now", "effect": "NoSchedule"}
        rule = of_group("DeviceTaintRule", "repair", {"deviceSelector": selector, "taint": taint})
        serving.api.create(RULES, rule)
    verdicts: dict[str, tuple[bool, bool | None]] = {}
    for template in ("one", "two", "tolerant"):
        container = {"name": "main", "image": "busybox", "resources": {"claims": [{"name": "gpus"}]}}
        claims = [{"name": "gpus", "resourceClaimTemplateName": template}]
        spec = {"containers": [container], "resourceClaims": claims}
        wanted = planned(cluster, SEEN, template, spec)
        metadata = {"name": template, "namespace": "research"}
        annotated = {**metadata, "annotations": {"bayplan.dev/skip": "true"}}
        serving.api.create(PODS, {"apiVersion": "v1", "kind": "Pod", "metadata": annotated, "spec": spec})
        wait_until(lambda name=template: decided(serving, name) is not None, "kube-scheduler to decide", 60)
        verdicts[template] = wanted, decided(serving, template)
        empty(serving.api, PODS)
        wait_until(lambda: not serving.api.items(PODS), "the pod to go", 60)
        wait_until(lambda: not claims_of(serving), "its claim to go", 60)
    empty(serving.api, RULES)
    assert verdicts == {name: (name in admitted, name in admitted) for name in verdicts}


def claims_of(serving: Replicas) -> list[Json]:
    """The ResourceClaims that exist."""
    return serving.api.items(f"{GROUP}/namespaces/research/resourceclaims")
