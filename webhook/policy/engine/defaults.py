"""The API server's defaults, set before policies see an object (k8s.io/kubernetes pkg/apis/*/v1/defaults.go).

`defaulted` returns a copy with defaults; `webhook.policy.engine.mutation.changes` transfers the changes of a
policy from such a copy back to the object without defaults. So an object from a file and the same object in a
cluster are judged alike, and no manifest gets fields that no policy set. Additions of admission plug-ins
(serviceAccountName, tolerations for node conditions, priority) are not defaults. A value of the wrong type is
unchanged.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from webhook.cel.libraries import quantity

Json = dict[str, Any]


MODE = 0o644
"""The API server's default mode of the files in a volume."""


POD_SPEC: Json = {
    "restartPolicy": "Always",
    "dnsPolicy": "ClusterFirst",
    "terminationGracePeriodSeconds": 30,
    "schedulerName": "default-scheduler",
    "securityContext": {},
}


CONTAINER: Json = {
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
    "resources": {},
}


PROBE: Json = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}


CLAIM: Json = {"volumeMode": "Filesystem"}


VOLUMES: Mapping[str, Json] = {
    **{name: {"defaultMode": MODE} for name in ("secret", "configMap", "downwardAPI", "projected")},
    "hostPath": {"type": ""},
    "iscsi": {"iscsiInterface": "default"},
    "rbd": {"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"},
    "scaleIO": {"storageMode": "ThinProvisioned", "fsType": "xfs"},
    "azureDisk": {"cachingMode": "ReadWrite", "fsType": "ext4", "kind": "Shared", "readOnly": False},
}
"""The defaults of a volume, by the field that is its source."""


ROLLING: Json = {"type": "RollingUpdate"}


CONTAINER_LISTS = ("containers", "initContainers", "ephemeralContainers")


PROBES = ("livenessProbe", "readinessProbe", "startupProbe")


def defaulted(obj: Mapping[str, Any], *, template: bool = False) -> Json:
    """Returns a copy with the defaults of its kind; a shallow copy for an unknown kind.

    A null field of a known kind, or of any kind's metadata, is removed: the API server decodes it as a
    missing field. `managedFields` are shared with the object, not copied: they may be most of it, and have no
    defaults. `template`: the object is a pod template shown as a Pod. Its requests do not default to limits,
    because the API server sets them only when pods are created.
    """
    fill = _template_pod if template else KINDS.get((str(obj.get("apiVersion")), str(obj.get("kind"))))
    metadata = obj.get("metadata")
    if fill is None:
        if isinstance(metadata, dict) and None in metadata.values():
            return {**obj, "metadata": {key: value for key, value in metadata.items() if value is not None}}
        return dict(obj)
    if isinstance(metadata, dict) and metadata.get("managedFields") is not None:
        rest = {key: value for key, value in metadata.items() if key != "managedFields"}
        result: Json = _without_nulls({**obj, "metadata": rest})
        result["metadata"]["managedFields"] = metadata["managedFields"]
    else:
        result = _without_nulls(dict(obj))
    fill(result)
    return result


def _without_nulls(value: Any) -> Any:
    """Returns a deep copy without null fields. Most of the time of `defaulted` is spent here, so this
    function is kept simple.
    """
    if isinstance(value, dict):
        return {
            key: _without_nulls(item) if isinstance(item, (dict, list)) else item
            for key, item in value.items()
            if item is not None
        }
    return [_without_nulls(item) if isinstance(item, (dict, list)) else item for item in value]


def _fill(target: Any, values: Json) -> None:
    """Sets each of the values whose key is missing or null in the target; copies values that are maps or
    lists.
    """
    if isinstance(target, dict):
        for key, value in values.items():
            if target.get(key) is None:
                target[key] = copy.deepcopy(value) if isinstance(value, (dict, list)) else value


def _maps(owner: Any, *names: str) -> list[Json]:
    """Returns all maps that are elements of the lists under some keys of a map; [] if `owner` is no map."""
    if not isinstance(owner, dict):
        return []
    lists = (owner.get(name) for name in names)
    return [item for items in lists if isinstance(items, list) for item in items if isinstance(item, dict)]


def _map(owner: Any, *path: str) -> Json | None:
    for step in path:
        owner = owner.get(step) if isinstance(owner, dict) else None
    return owner if isinstance(owner, dict) else None


def _pod(pod: Json) -> None:
    spec = pod.get("spec")
    _pod_spec(spec)
    # Only for a Pod: in templates the API server leaves these fields until their pods are created.
    _fill(spec, {"enableServiceLinks": True})
    on_host = isinstance(spec, dict) and spec.get("hostNetwork") is True
    for container in _maps(spec, "containers", "initContainers"):
        if on_host:
            for port in _maps(container, "ports"):
                if "containerPort" in port:
                    _fill(port, {"hostPort": port["containerPort"]})
        limits = _map(container, "resources", "limits")
        if limits:
            _fill(container["resources"], {"requests": {}})
            _fill(container["resources"]["requests"], limits)


def _template_pod(pod: Json) -> None:
    _pod_spec(pod.get("spec"))


def _pod_spec(spec: Any) -> None:
    _fill(spec, POD_SPEC)
    if isinstance(spec, dict):
        _canonical_amounts(spec)
    for container in _maps(spec, *CONTAINER_LISTS):
        _container(container)
    for volume in _maps(spec, "volumes"):
        _volume(volume)


def _container(container: Json) -> None:
    _fill(container, CONTAINER)
    _canonical_amounts(container)
    policy = pull_policy(container)
    if policy is not None:
        container["imagePullPolicy"] = policy
    for port in _maps(container, "ports"):
        _fill(port, {"protocol": "TCP"})
    for variable in _maps(container, "env"):
        _references(_map(variable, "valueFrom"))
    for name in PROBES:
        probe = _map(container, name)
        if probe is not None:
            for field in PROBE:
                if type(stated := probe.get(field)) is int and not stated:
                    del probe[field]  # a zero counts as missing
        _fill(probe, PROBE)
        _fill(_map(probe, "httpGet"), {"path": "/", "scheme": "HTTP"})
        _fill(_map(probe, "grpc"), {"service": ""})
    for hook in ("postStart", "preStop"):
        _fill(_map(container, "lifecycle", hook, "httpGet"), {"path": "/", "scheme": "HTTP"})


def _references(source: Json | None) -> None:
    """Sets the defaults of what an environment variable, or a file of a downwardAPI volume, refers to."""
    _fill(_map(source, "fieldRef"), {"apiVersion": "v1"})
    resource = _map(source, "resourceFieldRef")
    _fill(resource, {"divisor": "0"})
    _canonical(resource, ("divisor",))


def _canonical_amounts(owner: Json) -> None:
    """Writes limits and requests as the API server does: `8` as "8", `1.5` as "1500m"."""
    for name in ("limits", "requests"):
        amounts = _map(owner, "resources", name)
        _canonical(amounts, amounts or ())


def _canonical(amounts: Json | None, names: Iterable[str]) -> None:
    if amounts is None:
        return
    for name in names:
        amount = amounts.get(name)
        if type(amount) in (str, int, float):  # not a stand-in, nor a bool
            amounts[name] = quantity.canonical(str(amount))


def pull_policy(container: Mapping[str, Any]) -> Any:
    """Returns a container's imagePullPolicy, by default Always for an image without a digest whose tag is
    `latest` or missing, else IfNotPresent; None if there is no image.
    """
    stated, image = container.get("imagePullPolicy"), container.get("image")
    return stated if stated is not None or type(image) is not str else _policy_of(image)  # or a stand-in


def _policy_of(image: str) -> str:
    name = image.rpartition("/")[2]
    if "@" in name:
        return "IfNotPresent"
    return "Always" if name.partition(":")[2] in ("", "latest") else "IfNotPresent"


def _volume(volume: Json) -> None:
    if set(volume) <= {"name"}:  # no source is stated
        volume["emptyDir"] = {}
    for name, values in VOLUMES.items():
        _fill(_map(volume, name), values)
    _canonical(_map(volume, "emptyDir"), ("sizeLimit",))
    image = _map(volume, "image")
    if image is not None and type(image.get("reference")) is str:
        _fill(image, {"pullPolicy": _policy_of(image["reference"])})
    claim = _map(volume, "ephemeral", "volumeClaimTemplate")
    _fill(claim, {"metadata": {}})
    _claim(claim)
    projected = _maps(_map(volume, "projected"), "sources")
    for source in projected:
        _fill(_map(source, "serviceAccountToken"), {"expirationSeconds": 3600})
    for owner in (volume, *projected):
        for item in _maps(_map(owner, "downwardAPI"), "items"):
            _references(item)


def _claim(claim: Json | None) -> None:
    """Sets the defaults of a template of a PersistentVolumeClaim."""
    spec = _map(claim, "spec")
    _fill(spec, CLAIM)
    if spec is not None:
        _canonical_amounts(spec)


def _template(owner: Any) -> None:
    _pod_spec(_map(owner, "template", "spec"))


def _job(job: Json) -> None:
    spec = _map(job, "spec")
    if spec is None:
        return
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1
    per_index = spec.get("backoffLimitPerIndex") is not None
    failing = spec.get("podFailurePolicy") is not None
    _fill(
        spec,
        {
            "parallelism": 1,
            "backoffLimit": 2**31 - 1 if per_index else 6,
            "completionMode": "NonIndexed",
            "suspend": False,
            "podReplacementPolicy": "Failed" if failing else "TerminatingOrFailed",
        },
    )
    _job_template(spec)
    # The API server gives a Job without labels those of its template.
    labels = _map(spec, "template", "metadata", "labels")
    if labels and isinstance(job.get("metadata"), dict) and not job["metadata"].get("labels"):
        job["metadata"]["labels"] = dict(labels)


def _job_template(spec: Json | None) -> None:
    """Sets what a Job and the template of Jobs have in common."""
    for rule in _maps(_map(spec, "podFailurePolicy"), "rules"):
        for condition in _maps(rule, "onPodConditions"):
            _fill(condition, {"status": "True"})
    _template(spec)


def _cron_job(job: Json) -> None:
    spec = _map(job, "spec")
    _fill(
        spec,
        {
            "concurrencyPolicy": "Allow",
            "suspend": False,
            "successfulJobsHistoryLimit": 3,
            "failedJobsHistoryLimit": 1,
        },
    )
    jobs = _map(spec, "jobTemplate")
    _fill(jobs, {"metadata": {}})
    _job_template(_map(jobs, "spec"))


def _deployment(deployment: Json) -> None:
    spec = _map(deployment, "spec")
    _fill(
        spec,
        {"replicas": 1, "strategy": ROLLING, "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600},
    )
    strategy = _map(spec, "strategy")
    _rolling(strategy, {"maxUnavailable": "25%", "maxSurge": "25%"})
    _template(spec)


def _rolling(strategy: Json | None, values: Json, *, if_stated: bool = False) -> None:
    """Sets the defaults of a strategy. `if_stated`: a stated type without `rollingUpdate` stays without."""
    if strategy is None:
        return
    stated = if_stated and "type" in strategy
    _fill(strategy, ROLLING)
    if strategy["type"] == "RollingUpdate":
        if not stated:
            _fill(strategy, {"rollingUpdate": {}})
        _fill(strategy.get("rollingUpdate"), values)


def _replica_set(replica_set: Json) -> None:
    _fill(_map(replica_set, "spec"), {"replicas": 1})
    _template(_map(replica_set, "spec"))


def _stateful_set(stateful_set: Json) -> None:
    spec = _map(stateful_set, "spec")
    kept = {"whenDeleted": "Retain", "whenScaled": "Retain"}
    _fill(
        spec,
        {
            "replicas": 1,
            "podManagementPolicy": "OrderedReady",
            "updateStrategy": {},
            "revisionHistoryLimit": 10,
            "persistentVolumeClaimRetentionPolicy": kept,
        },
    )
    _fill(_map(spec, "persistentVolumeClaimRetentionPolicy"), kept)
    # `maxUnavailable` has a default from 1.37 on; it is not set here, since clusters may be older.
    _rolling(_map(spec, "updateStrategy"), {"partition": 0}, if_stated=True)
    _fill(_map(spec, "ordinals"), {"start": 0})
    for claim in _maps(spec, "volumeClaimTemplates"):
        _fill(claim, {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "status": {"phase": "Pending"}})
        _claim(claim)
    _template(spec)


def _daemon_set(daemon_set: Json) -> None:
    spec = _map(daemon_set, "spec")
    _fill(spec, {"updateStrategy": ROLLING, "revisionHistoryLimit": 10})
    _rolling(_map(spec, "updateStrategy"), {"maxUnavailable": 1, "maxSurge": 0})
    _template(spec)


KINDS: dict[tuple[Any, Any], Callable[[Json], None]] = {
    ("v1", "Pod"): _pod,
    ("batch/v1", "Job"): _job,
    ("batch/v1", "CronJob"): _cron_job,
    ("apps/v1", "Deployment"): _deployment,
    ("apps/v1", "ReplicaSet"): _replica_set,
    ("apps/v1", "StatefulSet"): _stateful_set,
    ("apps/v1", "DaemonSet"): _daemon_set,
}
"""The functions that set defaults in an object, by its apiVersion and kind; a new kind is a new row."""
