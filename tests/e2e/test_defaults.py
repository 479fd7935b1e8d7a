"""Objects that leave out what can be left out have here the defaults that the real API server sets."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.api import Json
from tests.e2e.fleet import namespace
from tests.e2e.stage import Cluster
from webhook.policy.engine.defaults import defaulted

NAMESPACE = "defaults-a"
ADMISSION = {"priority", "preemptionPolicy", "serviceAccount", "manualSelector", "selector"}
"""Fields of a spec that admission plug-ins and controllers set, which are no defaults."""
BY_VERSION = {"maxUnavailable"}
"""Of a StatefulSet: a default from 1.37 on, which is not set here."""
LABELS = {"app": "a"}
HTTP = {"httpGet": {"port": 80}}
VOLUMES: list[Json] = [
    {"name": "nothing"},
    {"name": "memory", "emptyDir": {"medium": "Memory", "sizeLimit": "1024Mi"}},
    {"name": "secret", "secret": {"secretName": "s"}},
    {"name": "config", "configMap": {"name": "c"}},
    {
        "name": "downward",
        "downwardAPI": {
            "items": [
                {"path": "name", "fieldRef": {"fieldPath": "metadata.name"}},
                {"path": "cpu", "resourceFieldRef": {"containerName": "main", "resource": "limits.cpu"}},
            ]
        },
    },
    {
        "name": "projected",
        "projected": {
            "sources": [
                {"serviceAccountToken": {"path": "token"}},
                {"downwardAPI": {"items": [{"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}]}},
            ]
        },
    },
    {"name": "host", "hostPath": {"path": "/x"}},
    {"name": "image", "image": {"reference": "data"}},
    {
        "name": "own",
        "ephemeral": {
            "volumeClaimTemplate": {
                "spec": {
                    "accessModes": ["ReadWriteOnce"],
                    "resources": {"requests": {"storage": "1024Mi"}},
                }
            }
        },
    },
    {"name": "rbd", "rbd": {"monitors": ["m"], "image": "i"}},
    {"name": "iscsi", "iscsi": {"targetPortal": "1.2.3.4", "iqn": "iqn.2001-04.com.example:s.x", "lun": 0}},
]
CONTAINER: Json = {
    "name": "main",
    "image": "busybox",
    "ports": [{"containerPort": 80}],
    "resources": {"limits": {"cpu": 1.5, "memory": "1024Mi"}},
    "env": [
        {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        {"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
    ],
    "livenessProbe": {**HTTP, "periodSeconds": 0, "failureThreshold": 2},
    "readinessProbe": {"grpc": {"port": 80}},
    "startupProbe": {"tcpSocket": {"port": 80}},
    "lifecycle": {"preStop": HTTP},
}
SPEC: Json = {
    "containers": [CONTAINER],
    "initContainers": [{"name": "first", "image": "busybox:1", "ports": [{"containerPort": 81}]}],
    "volumes": VOLUMES,
    "hostNetwork": True,
    # What admission plug-ins would add.
    "serviceAccountName": "default",
    "automountServiceAccountToken": False,
    "tolerations": [{"operator": "Exists"}],
}
TEMPLATE: Json = {"metadata": {"labels": LABELS}, "spec": SPEC}
JOB: Json = {
    "template": {**TEMPLATE, "spec": {**SPEC, "restartPolicy": "Never"}},
    "podFailurePolicy": {"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]},
}
CLAIM: Json = {
    "metadata": {"name": "data"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1.5Gi"}}},
}
REPLICATED: Json = {"selector": {"matchLabels": LABELS}, "template": TEMPLATE}
OBJECTS: dict[tuple[str, str], list[Json]] = {
    ("v1", "Pod"): [SPEC],
    ("batch/v1", "Job"): [
        JOB,
        {**JOB, "completionMode": "Indexed", "completions": 2, "backoffLimitPerIndex": 1},
    ],
    ("batch/v1", "CronJob"): [{"schedule": "* * * * *", "jobTemplate": {"spec": JOB}}],
    ("apps/v1", "Deployment"): [REPLICATED, {**REPLICATED, "strategy": {"rollingUpdate": {"maxSurge": 1}}}],
    ("apps/v1", "ReplicaSet"): [REPLICATED],
    ("apps/v1", "DaemonSet"): [REPLICATED, {**REPLICATED, "updateStrategy": {"type": "OnDelete"}}],
    ("apps/v1", "StatefulSet"): [
        {**REPLICATED, "serviceName": "s", "volumeClaimTemplates": [CLAIM], "ordinals": {}},
        {**REPLICATED, "serviceName": "s", "updateStrategy": {"type": "RollingUpdate"}},
    ],
}


def objects() -> Iterator[Json]:
    """An object of each kind that has defaults, or several."""
    for (version, kind), specs in OBJECTS.items():
        for spec in specs:
            yield {
                "apiVersion": version,
                "kind": kind,
                "metadata": {"name": "a", "namespace": NAMESPACE},
                "spec": copy.deepcopy(spec),
            }


def stored(cluster: Cluster, obj: Json) -> Json:
    """The spec that the API server would store."""
    version, kind = obj["apiVersion"], obj["kind"].lower()
    root = f"/api/{version}" if version == "v1" else f"/apis/{version}"
    done: Json = cluster.api.create(f"{root}/namespaces/{NAMESPACE}/{kind}s", obj, dryRun="All")["spec"]
    return done


def judged(value: Any, path: tuple[str, ...] = ()) -> Any:
    """A value without what is no default: what plug-ins add, a Job's labels, and empty fields."""
    if isinstance(value, dict):
        left = {
            key: judged(item, (*path, key))
            for key, item in value.items()
            if not (key in ADMISSION and path[-1:] in ((), ("spec",)))
            and not (key in BY_VERSION and path == ("updateStrategy", "rollingUpdate"))
            and "controller-uid" not in key
            and "job-name" not in key
        }
        return {key: item for key, item in left.items() if item not in ([], None)}
    return [judged(item, (*path, "[]")) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("obj", list(objects()), ids=lambda obj: obj["kind"])
def test_an_object_has_the_defaults_of_the_api_server(cluster: Cluster, obj: Json) -> None:
    """All of them, and no others."""
    namespace(cluster.api, NAMESPACE)
    expected = stored(cluster, obj)
    assert judged(defaulted(obj)["spec"]) == judged(expected)
