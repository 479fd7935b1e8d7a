"""Random volumes of pods: claims that are bound, claims that wait for a pod, volumes of a pod's own."""

from __future__ import annotations

from random import Random

from tests.e2e.api import Json
from tests.schedulers.kube.random_nodes import HOST, REGION, ZONE

OLD_ZONE = "failure-domain.beta.kubernetes.io/zone"
PROVISIONER = "example.com/disk"
LOCAL = "kubernetes.io/no-provisioner"


def storage_classes() -> list[Json]:
    """Classes that make volumes everywhere, in zones a and b, in zone c of a region, and one of local
    volumes; all of them wait for the first pod."""
    zones = {"key": ZONE, "values": ["a", "b"]}
    return [
        _class("disk", PROVISIONER),
        _class("disk-ab", PROVISIONER, [[zones]]),
        _class(
            "disk-cx", PROVISIONER, [[{"key": ZONE, "values": ["c"]}], [{"key": REGION, "values": ["x"]}]]
        ),
        _class("local", LOCAL),
    ]


def _class(name: str, provisioner: str, allowed: list[list[Json]] | None = None) -> Json:
    topologies = [{"matchLabelExpressions": expressions} for expressions in allowed or ()]
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": provisioner,
        "volumeBindingMode": "WaitForFirstConsumer",
        "allowedTopologies": topologies or None,
    }


def with_volumes(chance: Random, spec: Json, name: str, nodes: list[str], pods: int) -> list[Json]:
    """Adds volumes to the spec, and returns the claims and volumes that it needs."""
    needed: list[Json] = []
    mounted: list[Json] = []
    for number in range(chance.choice((1, 1, 1, 1, 2))):
        own = f"{name}-v{number}"
        kind = chance.choice(("bound", "bound", "waiting", "local", "ephemeral", "ephemeral"))
        if kind == "bound":
            needed += _bound(chance, own, nodes, pods)
        elif kind == "ephemeral" or pods > 1:
            template = {"spec": _claim_spec(chance.choice(("disk", "disk-ab", "disk-ab", "disk-cx")))}
            mounted.append({"name": f"v{number}", "ephemeral": {"volumeClaimTemplate": template}})
            continue
        elif kind == "waiting":
            needed.append(_claim(own, chance.choice(("disk", "disk-ab", "disk-cx"))))
        else:
            needed += _local(chance, own, nodes)
        mounted.append({"name": f"v{number}", "persistentVolumeClaim": {"claimName": own}})
    spec["volumes"] = mounted
    return needed


def _claim_spec(storage: str, mode: str = "ReadWriteOnce", size: str = "1Gi") -> Json:
    return {
        "accessModes": [mode],
        "resources": {"requests": {"storage": size}},
        "storageClassName": storage,
    }


def _claim(name: str, storage: str, **fields: str) -> Json:
    metadata = {"name": name, "namespace": "research"}
    spec = _claim_spec(storage, **fields)
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}


def volume(name: str, terms: list[Json] | None = None, labels: Json | None = None, **spec: object) -> Json:
    """A volume of 1Gi, usable on the nodes that one of the terms selects, on all without terms."""
    stated: Json = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "persistentVolumeReclaimPolicy": "Retain",
        "storageClassName": "by-hand",
        "nfs": {"server": "example.com", "path": "/"},
    }
    if terms:
        stated["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms}}
    metadata = {"name": name, "labels": labels or {}}
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": metadata, "spec": {**stated, **spec}}


def in_values(key: str, *values: str) -> Json:
    """A term for nodes with one of the values of a label."""
    return {"matchExpressions": [{"key": key, "operator": "In", "values": list(values)}]}


def _bound(chance: Random, name: str, nodes: list[str], pods: int) -> list[Json]:
    """A claim and the volume to which it is bound."""
    mode = chance.choice(("ReadWriteMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"))
    if pods > 1 and chance.random() < 0.7:
        mode = "ReadWriteMany"
    terms: list[Json] | None = None
    labels: Json = {}
    kind = chance.random()
    if kind < 0.3:
        terms = [in_values(ZONE, *chance.sample("aabbc", chance.randint(1, 2)))]
    elif kind < 0.5:
        terms = [in_values(HOST, *chance.sample(nodes, chance.choice((1, 2, 2))))]
    elif kind < 0.65:
        terms = [in_values(ZONE, "a"), in_values("pool", "x")]
    elif kind < 0.75:
        terms = [{"matchExpressions": [{"key": ZONE, "operator": chance.choice(("Exists", "DoesNotExist"))}]}]
    elif kind < 0.92:
        key = OLD_ZONE if chance.random() < 0.2 else ZONE
        labels = {key: chance.choice(("a", "b", "a__b", "b__c"))}
        if chance.random() < 0.3:
            labels[REGION] = "x"
    reference = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": "research", "name": name}
    bound = volume(name, terms, labels, accessModes=[mode], claimRef=reference)
    return [bound, _claim(name, "by-hand", mode=mode)]


def _local(chance: Random, name: str, nodes: list[str]) -> list[Json]:
    """A claim for a local volume, and some that are there; not all are large enough."""
    volumes = []
    for number in range(chance.randint(1, 3)):
        size = chance.choice(("1Gi", "3Gi", "512Mi"))
        mode = chance.choice(("Filesystem", "Filesystem", "Filesystem", "Block"))
        volumes.append(
            volume(
                f"{name}-l{number}",
                [in_values(HOST, chance.choice(nodes))],
                capacity={"storage": size},
                storageClassName="local",
                volumeMode=mode,
            )
        )
    return [*volumes, _claim(name, "local", size=chance.choice(("1Gi", "1Gi", "2Gi")))]
