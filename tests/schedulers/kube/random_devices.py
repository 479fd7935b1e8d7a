"""Random devices of nodes (DRA), and random claims of pods for them."""

from __future__ import annotations

from random import Random

from tests.e2e.api import Json

GPU, NIC = "gpu.example.com", "nic.example.com"
ROOT = "resource.kubernetes.io/pcieRoot"
VERSION = "resource.k8s.io/v1"
EXTENDED = "example.com/device"
"""The extended resource for which a pod gets a claim to a device of the class `GPU`."""
SELECTORS = (
    f"device.attributes['{GPU}'].model == 'a100'",
    f"device.attributes['{GPU}'].model in ['a100', 'h100']",
    f"device.capacity['{GPU}'].memory.compareTo(quantity('60Gi')) >= 0",
    f"device.attributes['{GPU}'].cores > 100",
    f"has(device.attributes['{GPU}'].numa) && device.attributes['{GPU}'].numa == 0",
    f"device.attributes['{GPU}'].driverVersion.isGreaterThan(semver('1.5.0'))",
    f"'numa' in device.attributes['{GPU}']",
    f"device.attributes['{GPU}'].?numa.orValue(1) == 1",
    "device.driver.startsWith('gpu')",
    f"device.attributes['{GPU}'].healthy",
)
TAINTS = ({"key": "repair", "value": "now", "effect": "NoSchedule"}, {"key": "old", "effect": "NoExecute"})


def device_classes() -> list[Json]:
    """GPUs, network adapters, and GPUs of much memory."""

    def device_class(name: str, *expressions: str, **spec: str) -> Json:
        selectors = [{"cel": {"expression": text}} for text in expressions]
        return _object("DeviceClass", name, {"selectors": selectors, **spec})

    return [
        device_class(GPU, f"device.driver == '{GPU}'", extendedResourceName=EXTENDED),
        device_class(NIC, f"device.driver == '{NIC}'"),
        device_class("large", f"device.driver == '{GPU}'", SELECTORS[2]),
    ]


def _object(kind: str, name: str, spec: Json, namespace: str = "") -> Json:
    metadata = {"name": name, "namespace": namespace} if namespace else {"name": name}
    return {"apiVersion": VERSION, "kind": kind, "metadata": metadata, "spec": spec}


def random_slices(chance: Random, nodes: list[str]) -> list[Json]:
    """The ResourceSlices of the drivers on these nodes."""
    slices = []
    for node in nodes:
        if chance.random() < 0.9:
            slices += _gpu_slices(chance, node)
        if chance.random() < 0.6:
            count = chance.randint(1, 3)
            adapters = [_adapter(chance, number) for number in range(count)]
            slices += _pool(NIC, node, [{"devices": adapters}])
    return slices


def _gpu_slices(chance: Random, node: str) -> list[Json]:
    if chance.random() < 0.25:
        return _pool(GPU, node, _partitions(chance))
    gpus = [_gpu(chance, number) for number in range(chance.choice((2, 3, 4, 4, 6, 8)))]
    if chance.random() < 0.6:
        for gpu in gpus[1:]:
            for name in ("model", "cores", "driverVersion", "healthy"):
                gpu["attributes"][name] = gpus[0]["attributes"][name]
            gpu["capacity"] = gpus[0]["capacity"]
    if len(gpus) > 2 and chance.random() < 0.3:
        return _pool(GPU, node, [{"devices": gpus[:2]}, {"devices": gpus[2:]}])
    return _pool(GPU, node, [{"devices": gpus}])


def _pool(driver: str, node: str, parts: list[Json]) -> list[Json]:
    pool = {"name": node, "generation": 1, "resourceSliceCount": len(parts)}
    common = {"driver": driver, "nodeName": node, "pool": pool}
    short = driver.partition(".")[0]
    return [
        _object("ResourceSlice", f"{node}-{short}-{number}", {**common, **part})
        for number, part in enumerate(parts)
    ]


def _gpu(chance: Random, number: int) -> Json:
    attributes: Json = {
        "model": {"string": chance.choice(("a100", "h100"))},
        "cores": {"int": chance.choice((80, 120))},
        "driverVersion": {"version": chance.choice(("1.4.0", "2.0.0"))},
        "healthy": {"bool": chance.random() < 0.8},
        "index": {"int": number},
        ROOT: {"string": f"pci0000:0{number % 2}"},
    }
    if chance.random() < 0.8:
        attributes["numa"] = {"int": number % 2}
    memory = {"value": chance.choice(("40Gi", "80Gi"))}
    device: Json = {"name": f"gpu-{number}", "attributes": attributes, "capacity": {"memory": memory}}
    if chance.random() < 0.12:
        device["taints"] = [dict(chance.choice(TAINTS))]
    return device


def _adapter(chance: Random, number: int) -> Json:
    attributes: Json = {"speed": {"int": chance.choice((100, 400))}}
    if chance.random() < 0.85:
        attributes[ROOT] = {"string": f"pci0000:0{number % 2}"}
    return {"name": f"nic-{number}", "attributes": attributes}


def _partitions(chance: Random) -> list[Json]:
    """Two GPUs, each of which can be given whole or in halves (shared counters)."""
    counters = [{"name": f"card-{n}", "counters": {"slices": {"value": "2"}}} for n in range(2)]
    devices = []
    for card in range(2):
        for name, slices in (("whole", "2"), ("half-a", "1"), ("half-b", "1")):
            device = _gpu(chance, card)
            device["name"] = f"gpu-{card}-{name}"
            device["attributes"]["profile"] = {"string": name.partition("-")[0]}
            used = {"slices": {"value": slices}}
            device["consumesCounters"] = [{"counterSet": f"card-{card}", "counters": used}]
            devices.append(device)
    return [{"sharedCounters": counters}, {"devices": devices}]


def with_claims(chance: Random, spec: Json, name: str) -> list[Json]:
    """Adds claims to the spec, and returns the objects that it needs."""
    if chance.random() < 0.12:
        resources = spec["containers"][0].setdefault("resources", {})
        resources.setdefault("limits", {})[EXTENDED] = str(chance.choice((1, 1, 2)))
        return []
    needed, uses = [], []
    for number in range(chance.choice((1, 1, 1, 2))):
        own = f"{name}-c{number}"
        if chance.random() < 0.2:
            needed.append(_object("ResourceClaim", own, {"devices": _devices(chance)}, "research"))
            uses.append({"name": f"c{number}", "resourceClaimName": own})
        else:
            template = {"spec": {"devices": _devices(chance)}}
            needed.append(_object("ResourceClaimTemplate", own, template, "research"))
            uses.append({"name": f"c{number}", "resourceClaimTemplateName": own})
    spec["resourceClaims"] = uses
    resources = spec["containers"][0].setdefault("resources", {})
    resources["claims"] = [{"name": use["name"]} for use in uses]
    return needed


def _devices(chance: Random) -> Json:
    requests = [_request(chance, f"r{number}") for number in range(chance.choice((1, 1, 1, 2)))]
    devices: Json = {"requests": requests}
    if chance.random() < 0.3:
        kind = chance.choice(("matchAttribute", "matchAttribute", "distinctAttribute"))
        attribute = chance.choice((ROOT, ROOT, f"{GPU}/model", f"{GPU}/numa", f"{GPU}/index"))
        constraint: Json = {kind: attribute}
        if chance.random() < 0.5:
            constraint["requests"] = [chance.choice(requests)["name"]]
        devices["constraints"] = [constraint]
    return devices


def _request(chance: Random, name: str) -> Json:
    if chance.random() < 0.2:
        alternatives = [
            {"name": f"s{number}", **_exactly(chance)} for number in range(chance.choice((2, 2, 3)))
        ]
        return {"name": name, "firstAvailable": alternatives}
    return {"name": name, "exactly": _exactly(chance)}


def _exactly(chance: Random) -> Json:
    device_class = chance.choice((GPU, GPU, GPU, NIC, "large"))
    wanted: Json = {"deviceClassName": device_class}
    if chance.random() < 0.1:
        wanted["allocationMode"] = "All"
    elif chance.random() < 0.6:
        wanted["count"] = chance.choice((1, 1, 1, 2, 2, 3))
    if device_class != NIC and chance.random() < 0.4:
        expressions = chance.sample(SELECTORS, chance.choice((1, 1, 2)))
        wanted["selectors"] = [{"cel": {"expression": text}} for text in expressions]
    if chance.random() < 0.15:
        wanted["tolerations"] = [
            chance.choice(({"operator": "Exists"}, {"key": "repair", "operator": "Exists"}))
        ]
    if device_class != NIC and chance.random() < 0.08:
        wanted["capacity"] = {"requests": {"memory": "50Gi"}}
    return wanted
