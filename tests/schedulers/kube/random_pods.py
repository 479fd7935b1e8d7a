"""Random pod specs: containers, init containers, amounts, host ports, RuntimeClasses; and running pods."""

from __future__ import annotations

from random import Random

from tests.e2e.api import Json
from tests.schedulers.kube.random_constraints import NAMESPACES, constraints, random_labels

STATES = ("terminating", "done", "resized", "infeasible", *("running",) * 6)
"""States of pods that are there; those of `resized` have other amounts than in their spec for now, and those
of `infeasible` for ever."""
RUNTIMES = ("kata", "pinned")
"""The RuntimeClasses of the run."""


def runtime_classes() -> list[Json]:
    """One with an overhead, and one whose pods go to nodes of pool x and tolerate the taint gpu."""
    head = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "handler": "kata"}
    scheduling = {"nodeSelector": {"pool": "x"}, "tolerations": [{"key": "gpu", "operator": "Exists"}]}
    return [
        {**head, "metadata": {"name": "kata"}, "overhead": {"podFixed": {"cpu": "1500m", "memory": "2Gi"}}},
        {**head, "metadata": {"name": "pinned"}, "scheduling": scheduling},
    ]


def random_spec(chance: Random, world: str, *, plain: bool = False) -> Json:
    """The spec of a pod; a `plain` one has few constraints, for pods whose other fields are to matter."""
    container: Json = {"name": "main", "image": "busybox", "resources": _amounts(chance, plain)}
    if chance.random() < 0.08:
        container["ports"] = [_port(chance)]
    spec: Json = {"containers": [container]}
    if chance.random() < 0.15:
        spec["containers"].append({"name": "more", "image": "busybox", "resources": _amounts(chance, True)})
    if chance.random() < 0.2:
        spec["initContainers"] = [_init(chance, number) for number in range(chance.choice((1, 1, 2)))]
    _of_the_pod(chance, spec)
    return spec | constraints(chance, world, 0.1 if plain else chance.choice((0.3, 0.5, 0.8)))


def _of_the_pod(chance: Random, spec: Json) -> None:
    """Adds amounts of the whole pod and a RuntimeClass, now and then."""
    if chance.random() < 0.08:
        amounts: Json = {"requests": {"cpu": "4", "memory": "21Gi"}}
        if chance.random() < 0.4:
            amounts = {"limits": {"cpu": "5", "memory": "24Gi"}}
        spec["resources"] = amounts
    if chance.random() < 0.08:
        spec["runtimeClassName"] = chance.choice(RUNTIMES)


def _amounts(chance: Random, small: bool = False) -> Json:
    requests: Json = {}
    limits: Json = {}
    if chance.random() < 0.7:
        requests["cpu"] = chance.choice(("100m", "1", "2", "3500m"))
    if chance.random() < 0.4:
        requests["memory"] = chance.choice(("1Gi", "8Gi", "20Gi"))
    if chance.random() < 0.1:
        requests["ephemeral-storage"] = chance.choice(("1Gi", "9Gi"))
    if not small and chance.random() < 0.6:
        limits["nvidia.com/gpu"] = str(chance.choice((1, 1, 1, 2)))
        if chance.random() < 0.5:
            requests["nvidia.com/gpu"] = limits["nvidia.com/gpu"]
    if chance.random() < 0.05:
        limits["hugepages-2Mi"] = "512Mi"
        requests.setdefault("cpu", "100m")
    if "cpu" in requests and chance.random() < 0.15:
        limits["cpu"] = requests["cpu"]
    elif "cpu" not in requests and chance.random() < 0.2:
        limits["cpu"] = "2"  # which is the request then
    stated = (("requests", requests), ("limits", limits))
    return {name: amounts for name, amounts in stated if amounts}


def _init(chance: Random, number: int) -> Json:
    amounts = _amounts(chance, chance.random() < 0.7)
    container: Json = {"name": f"i{number}", "image": "busybox", "resources": amounts}
    if chance.random() < 0.5:
        container["restartPolicy"] = "Always"
    return container


def _port(chance: Random) -> Json:
    port: Json = {"containerPort": 80, "hostPort": chance.choice((80, 81))}
    if chance.random() < 0.2:
        port["protocol"] = "UDP"
    if chance.random() < 0.3:
        port["hostIP"] = chance.choice(("10.0.0.1", "0.0.0.0"))
    return port


def running_pods(chance: Random, world: str, nodes: list[str]) -> list[tuple[Json, str]]:
    """Pods that are on the nodes already, each with its state."""
    pods = []
    for node in nodes:
        for number in range(chance.choice((0, 0, 1, 2))):
            spec = random_spec(chance, world)
            for field in ("nodeSelector", "topologySpreadConstraints", "runtimeClassName"):
                spec.pop(field, None)
            spec.get("affinity", {}).pop("nodeAffinity", None)
            spec |= {"tolerations": [{"operator": "Exists"}], "nodeName": node}
            metadata: Json = {
                "name": f"{node}-{number}",
                "namespace": chance.choice(NAMESPACES),
                "labels": random_labels(chance),
            }
            state = chance.choice(STATES)
            if state == "terminating":
                metadata["finalizers"] = ["example.com/keep"]
            pods.append(({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}, state))
    return pods


def resized_status(pod: Json, *, infeasible: bool) -> Json:
    """The status of a pod whose containers do not have the amounts that its spec has: some have more cores,
    some fewer.
    """

    def status(container: Json, number: int) -> Json:
        requests = dict(container.get("resources", {}).get("requests", {}))
        if "cpu" in requests:
            requests["cpu"] = ("3", "250m")[(len(pod["metadata"]["name"]) + number) % 2]
        state = {"running": {}}
        head = {"name": container["name"], "image": "", "imageID": "", "ready": True, "restartCount": 0}
        return {**head, "state": state, "allocatedResources": requests, "resources": {"requests": requests}}

    statuses = [status(container, number) for number, container in enumerate(pod["spec"]["containers"])]
    condition = {"type": "PodResizePending", "status": "True", "reason": "Infeasible"}
    conditions = {"conditions": [condition]} if infeasible else {}
    return {"containerStatuses": statuses, **conditions}
