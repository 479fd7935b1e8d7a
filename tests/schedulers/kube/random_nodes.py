"""Random nodes: labels, taints, capacity; some are cordoned, under pressure, or not ready."""

from __future__ import annotations

from random import Random

from tests.e2e.api import Json

HOST, ZONE, RACK = "kubernetes.io/hostname", "topology.kubernetes.io/zone", "example.com/rack"
REGION = "topology.kubernetes.io/region"
EFFECTS = ("NoSchedule", "NoSchedule", "NoExecute", "PreferNoSchedule")


def random_nodes(chance: Random, world: str) -> list[Json]:
    """Two to six nodes, whose names begin with that of the world."""
    return [_node(chance, f"{world}-n{number}") for number in range(chance.randint(2, 6))]


def _node(chance: Random, name: str) -> Json:
    amounts = _amounts(chance)
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": _labels(chance, name)},
        "spec": _spec(chance),
        "status": {"allocatable": amounts, "capacity": amounts, "conditions": _conditions(chance)},
    }


def _labels(chance: Random, name: str) -> Json:
    labels = {HOST: name}
    if chance.random() < 0.9:
        labels[ZONE] = chance.choice("aaabbbbc")
    if chance.random() < 0.3:
        labels[REGION] = "x"
    if chance.random() < 0.85:
        labels[RACK] = chance.choice(("r1", "r2", "r3"))
    if chance.random() < 0.7:
        labels["pool"] = chance.choice("xy")
    if chance.random() < 0.6:
        labels["gen"] = str(chance.randint(1, 9))
    return labels


def _amounts(chance: Random) -> Json:
    amounts = {
        "cpu": str(chance.choice((4, 8, 16))),
        "memory": chance.choice(("32Gi", "64Gi")),
        "pods": str(chance.choice((4, 8, 12))),
        "ephemeral-storage": chance.choice(("10Gi", "100Gi")),
    }
    if chance.random() < 0.85:
        amounts["nvidia.com/gpu"] = str(chance.choice((1, 2, 4, 8)))
    if chance.random() < 0.2:
        amounts["hugepages-2Mi"] = "1Gi"
    return amounts


def _spec(chance: Random) -> Json:
    spec: Json = {}
    if chance.random() < 0.25:
        key, value, effect = (
            chance.choice(("gpu", "team")),
            chance.choice(("yes", "no")),
            chance.choice(EFFECTS),
        )
        spec["taints"] = [{"key": key, "value": value, "effect": effect}]
    if chance.random() < 0.08:
        spec["unschedulable"] = True
    return spec


def _conditions(chance: Random) -> list[Json]:
    ready = "True" if chance.random() < 0.93 else "False"
    conditions = [{"type": "Ready", "status": ready, "reason": "Kubelet"}]
    if chance.random() < 0.06:
        kind = chance.choice(("MemoryPressure", "DiskPressure", "PIDPressure"))
        conditions.append({"type": kind, "status": "True", "reason": "Kubelet"})
    return conditions


def awaited_taints(node: Json) -> set[str]:
    """The keys of the taints that the node controller gives the node for its conditions."""
    keys = {
        "MemoryPressure": "node.kubernetes.io/memory-pressure",
        "DiskPressure": "node.kubernetes.io/disk-pressure",
        "PIDPressure": "node.kubernetes.io/pid-pressure",
    }
    ready, *others = node["status"]["conditions"]
    taints = {keys[condition["type"]] for condition in others}
    return taints if ready["status"] == "True" else taints | {"node.kubernetes.io/not-ready"}
