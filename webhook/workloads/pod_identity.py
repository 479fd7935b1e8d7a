"""Finds the values in a pod in which the pods of one workload differ, or the pods of workloads that are equal
but for their names.

The API server and the controllers that create pods write them. Sources: the Job and StatefulSet controllers
and the ServiceAccount admission of Kubernetes, JobSet, LeaderWorkerSet, and Kubeflow's training operator.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from planner.manifests.pods.pod import CONTAINER_LISTS
from webhook.jsontools.path import Path, find
from webhook.workloads.implied_labels import LABELS_WITH_NAME
from webhook.workloads.keys.annotation_keys import GANG_OF, PLACEMENT, POLICIES, RESERVATION

_BY_THE_SERVER = (
    "name", "generateName", "uid", "resourceVersion", "creationTimestamp", "managedFields", "selfLink"
)  # fmt: skip
"""The fields of `metadata` that name a pod, or that the API server writes about it."""


_INDEXES = (
    "batch.kubernetes.io/job-completion-index",
    "apps.kubernetes.io/pod-index",
    "statefulset.kubernetes.io/pod-name",
    "jobset.sigs.k8s.io/job-index",
    "jobset.sigs.k8s.io/job-global-index",
    "jobset.sigs.k8s.io/job-group-index",
    "jobset.sigs.k8s.io/job-key",
    "leaderworkerset.sigs.k8s.io/worker-index",
    "leaderworkerset.sigs.k8s.io/group-index",
    "leaderworkerset.sigs.k8s.io/group-key",
    "leaderworkerset.sigs.k8s.io/leader-name",
    "training.kubeflow.org/replica-index",
)


_UIDS = ("controller-uid", "batch.kubernetes.io/controller-uid", "jobset.sigs.k8s.io/jobset-uid")


_BY_THE_PLAN = (PLACEMENT, POLICIES, RESERVATION, GANG_OF)
"""The annotations that admission writes about the plan of a pod or of its workload."""


IDENTITY_KEYS: Final = frozenset((*_INDEXES, *_UIDS, *_BY_THE_PLAN, *LABELS_WITH_NAME))
"""Keys of labels and annotations; controllers write some of them as both."""


_TOKEN_VOLUME = "kube-api-access-"
"""The start of the name of the volume with the ServiceAccount's token. The API server adds it to nearly every
pod, with a random end.
"""


def identity_paths(obj: Mapping[str, Any], templates: Sequence[Path] = ()) -> Iterator[Path]:
    """Yields the paths in a pod, or in an object with templates at these paths, at which equal objects may
    differ; the object may lack some of them.
    """
    yield from _of_pod(obj)
    yield from _keys(obj, "spec", "selector", "matchLabels")  # a Job selects its pods by its uid
    for path in templates:
        yield from ((*path, *inner) for inner in _of_pod(find(obj, path)))


def _of_pod(pod: Any) -> Iterator[Path]:
    metadata, spec = find(pod, ("metadata",)), find(pod, ("spec",))
    for name in _BY_THE_SERVER:
        yield "metadata", name
    for part in ("labels", "annotations"):
        yield from _keys(pod, "metadata", part)
    for index, _ in _items(metadata, "ownerReferences"):
        yield "metadata", "ownerReferences", index, "name"
        yield "metadata", "ownerReferences", index, "uid"
    yield "spec", "hostname"
    yield "spec", "subdomain"
    for index, volume in _items(spec, "volumes"):
        if _is_of_token(volume):
            yield "spec", "volumes", index, "name"
    for part in CONTAINER_LISTS:
        for index, container in _items(spec, part):
            for number, mount in _items(container, "volumeMounts"):
                if _is_of_token(mount):
                    yield "spec", part, index, "volumeMounts", number, "name"


def _keys(obj: Any, *path: str) -> Iterator[Path]:
    """Yields the path of each key of a mapping of labels or annotations in which equal objects may differ."""
    values = find(obj, path)
    for key in values if isinstance(values, dict) else ():
        if key in IDENTITY_KEYS:
            yield *path, key


def _items(value: Any, key: str) -> Iterator[tuple[int, Any]]:
    items = value.get(key) if isinstance(value, dict) else None
    return enumerate(items if isinstance(items, list) else ())


def _is_of_token(volume_or_mount: Any) -> bool:
    name = volume_or_mount.get("name") if isinstance(volume_or_mount, dict) else None
    return isinstance(name, str) and name.startswith(_TOKEN_VOLUME)
