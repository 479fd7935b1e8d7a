"""Admission reviews of every kind with something wrong in them: one for each number, the same each time.

A review starts from a valid workload. Most have one to four places of the object changed: what stands there
is replaced by something of another type or an extreme of its own, taken away, or told twice, or keys that
Bayplan reads get odd values. In some the request around the object is damaged.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from typing import Any

from tests.webhook.workloads import objects as o
from webhook.wire.request import from_object
from webhook.workloads.key_table.known_keys import KNOWN_KEYS
from webhook.workloads.keys.topology_keys import KEYS

Json = dict[str, Any]

PLAIN: tuple[Json, ...] = (
    {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "demo", "namespace": "team"}, "data": {}},
    {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": "team", "labels": {"bayplan.dev/mode": "warn"}},
    },
    o.obj(
        "scheduling.run.ai/v2alpha2", "PodGroup", {"minMember": 2, "topologyConstraint": {"topology": "f"}}
    ),
    o.obj("scheduling.k8s.io/v1alpha2", "PodGroup", {"schedulingPolicy": {"gang": {"minCount": 2}}}),
    o.obj("trainer.kubeflow.org/v1alpha1", "TrainJob", {"trainer": {"numNodes": 2}}),
)
OBJECTS = (*o.EVERY, o.BAG, *PLAIN)

ODD: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**31, 2**63 - 1, -(2**63), 1.5, 1e308, "", " ", "x", "-1", "0", "1e400",
    "1Ei", "½", "a/b/c", "../..", "x" * 300, "\x00", "é" * 70, "{}", "[[", "${x}", "1m", "9" * 40, [], [None],
    [[]], [{}], {}, {"": None}, {"a": {"b": [1, "2", None]}}, ["x"] * 50,
)  # fmt: skip
"""Values that stand where something else is expected."""

PARTS: tuple[tuple[tuple[str, ...], Any], ...] = (
    (
        ("metadata", "ownerReferences"),
        [{"apiVersion": "batch/v1", "kind": "Job", "name": "a", "controller": True}],
    ),
    (("metadata", "generateName"), "demo-"),
    (("metadata", "managedFields"), [{"manager": "x"}]),
    (("metadata", "finalizers"), ["a/b"]),
    (("metadata", "deletionTimestamp"), "2026-01-01T00:00:00Z"),
    (("status",), {"startTime": "x", "conditions": [{"type": "Complete"}]}),
    (("spec", "suspend"), True),
    (("spec", "schedulingGates"), [{"name": "bayplan.dev/queued"}]),
    (("spec", "nodeName"), "dgx-01"),
    (("spec", "resourceClaims"), [{"name": "g", "resourceClaimTemplateName": "t"}]),
    (
        ("spec", "topologySpreadConstraints"),
        [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "x"}],
    ),
    (("spec", "affinity"), {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{}]}}),
    (("spec", "tolerations"), [{"operator": "Exists", "tolerationSeconds": 1.5}]),
    (("spec", "volumes"), [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]),
    (("spec", "overhead"), {"cpu": "1"}),
    (("spec", "priority"), 2**31 - 1),
    (("spec", "initContainers"), [{"name": "i", "image": "i", "resources": {"limits": {o.GPU: 9}}}]),
)
"""What valid objects may have, at the object and in any pod spec."""


def review(number: int) -> Json:
    """The review of this number."""
    chance = random.Random(number)
    obj = copy.deepcopy(chance.choice(OBJECTS))
    old = copy.deepcopy(obj)
    for _ in range(chance.randint(0, 4)):
        _change(obj, chance)
    if chance.random() < 0.2:
        _change(old, chance)
    operation = chance.choice(("CREATE", "CREATE", "CREATE", "UPDATE", "UPDATE", "DELETE"))
    request = _request(obj, old, operation, chance, number)
    body: Json = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    if chance.random() < 0.15:
        _damage(request, chance)
    if chance.random() < 0.01:
        _damage(body, chance)
    return body


def _request(obj: Any, old: Any, operation: str, chance: random.Random, number: int) -> Json:
    request = from_object(obj if isinstance(obj, dict) else old)
    deleted = operation == "DELETE"
    return {
        "uid": f"fuzz-{number}",
        "kind": request.kind.as_cel(),
        "resource": request.resource.as_cel(),
        "name": request.name,
        "namespace": request.namespace,
        "operation": operation,
        "userInfo": {
            "username": chance.choice(("ann", "bob", "system:serviceaccount:kube-system:job-controller"))
        },
        "object": None if deleted else obj,
        "oldObject": old if operation != "CREATE" else None,
        "dryRun": chance.random() < 0.5,
        "options": {},
    }


def _change(obj: Json, chance: random.Random) -> None:
    """One change of an object, in place."""
    roll = chance.random()
    if roll < 0.2:
        _annotate(obj, chance)
    elif roll < 0.35:
        steps, value = chance.choice(PARTS)
        hosts = (
            [obj, *_pod_specs(obj)] if steps[0] != "spec" else [obj, *({"spec": s} for s in _pod_specs(obj))]
        )
        _put(chance.choice(hosts), steps, copy.deepcopy(value))
    else:
        _damage(obj, chance)


def _annotate(obj: Json, chance: random.Random) -> None:
    """A key that Bayplan reads, with a value that fits or not."""
    key = chance.choice(KNOWN_KEYS)
    fitting = (*key.values, "rack", "2", "0.5", "true", "a")
    value = copy.deepcopy(chance.choice(fitting) if chance.random() < 0.7 else chance.choice(ODD))
    name = key.name if chance.random() < 0.8 else chance.choice(KEYS).name
    places = [mapping for mapping in _mappings(obj) if "template" in mapping or "metadata" in mapping]
    place = chance.choice(places) if places else obj
    _put(place, ("metadata", "labels" if key.form == "label" else "annotations", name), value)


def _damage(root: Any, chance: random.Random) -> None:
    """Something below the root replaced, taken away, or told twice."""
    places = list(_places(root))
    if not places:
        return
    host, key = chance.choice(places)
    roll = chance.random()
    if roll < 0.6:
        host[key] = copy.deepcopy(chance.choice(ODD))
    elif roll < 0.8:
        del host[key]
    elif isinstance(host, list):
        host.insert(key, copy.deepcopy(host[key]))
    else:
        host[chance.choice(("", "x", "metadata", "spec", "replicas", str(key) + "s"))] = copy.deepcopy(
            host[key]
        )


def _put(host: Any, steps: tuple[str, ...], value: Any) -> None:
    for step in steps[:-1]:
        below = host.get(step) if isinstance(host, dict) else None
        if not isinstance(below, dict):
            if not isinstance(host, dict):
                return
            below = host[step] = {}
        host = below
    host[steps[-1]] = value


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Each container below a value with a key or index in it."""
    entries = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for key, part in list(entries):
        yield value, key
        yield from _places(part)


def _mappings(value: Any) -> list[Json]:
    mappings = [value] if isinstance(value, dict) else []
    return mappings + [part for host, key in _places(value) if isinstance(part := host[key], dict)]


def _pod_specs(value: Any) -> list[Json]:
    return [mapping for mapping in _mappings(value) if "containers" in mapping]
