"""Finds the values in a pod or workload in which otherwise equal objects differ, and which hardly any policy
reads: what names an object, what its containers run, and labels and annotations that Bayplan does not know.

Some of them are written by the API server and by the controllers that create pods. Sources: the Job
controller and the ServiceAccount admission of Kubernetes, JobSet, LeaderWorkerSet, Kubeflow's training
operator.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from planner.manifests.pods.bound_pod import KUEUE_WORKLOAD
from planner.manifests.pods.pod import CONTAINER_LISTS, UNREAD
from webhook.jsontools.path import Path, find
from webhook.workloads.implied_labels import LABELS_WITH_NAME
from webhook.workloads.key_table.known_keys import KNOWN_KEYS
from webhook.workloads.keys.annotation_keys import APPLIED, GANG_OF, PLACEMENT, POLICIES, RESERVATION

_BY_THE_SERVER = (
    "name", "generateName", "uid", "resourceVersion", "creationTimestamp", "managedFields", "selfLink"
)  # fmt: skip
"""The fields of `metadata` that name an object, or that the API server writes about it."""


_NAMING = frozenset(
    (
        APPLIED,
        GANG_OF,
        PLACEMENT,
        POLICIES,
        RESERVATION,
        KUEUE_WORKLOAD,
        "jobset.sigs.k8s.io/job-global-index",
        "leaderworkerset.sigs.k8s.io/group-index",
        *LABELS_WITH_NAME,
    )
)
"""Labels and annotations that Bayplan knows, and whose value names an object, its number or its place."""


_SHARED: Final = frozenset(key.name for key in KNOWN_KEYS) - _NAMING
"""The labels and annotations that Bayplan knows, and in which equal objects do not differ."""


_TOKEN_VOLUME = "kube-api-access-"
"""The start of the name of the volume with the ServiceAccount's token. The API server adds it to nearly every
pod, with a random end.
"""


def varies(key: str) -> bool:
    """Returns whether otherwise equal objects may differ in the value of this label or annotation."""
    return key not in _SHARED


def varying_paths(obj: Mapping[str, Any], templates: Sequence[Path]) -> Iterator[Path]:
    """Yields the paths at which otherwise equal objects may differ; the object may lack some of them.

    `templates`: the paths of the pod templates in the object. No path is below another one.
    """
    yield from _of_object(obj)
    yield from _keys(obj, "spec", "selector", "matchLabels")  # a Job selects its pods by its uid
    for path in templates:
        yield from ((*path, *inner) for inner in _of_object(find(obj, path)))


def _of_object(pod: Any) -> Iterator[Path]:
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
        if str(find(volume, ("name",))).startswith(_TOKEN_VOLUME):
            yield "spec", "volumes", index, "name"
    for part in CONTAINER_LISTS:
        for index, container in _items(spec, part):
            fields = container if isinstance(container, dict) else ()
            yield from (("spec", part, index, field) for field in fields if field in UNREAD)


def _keys(obj: Any, *path: str) -> Iterator[Path]:
    """Yields the path of each key of a mapping of labels or annotations in which equal objects may differ."""
    values = find(obj, path)
    for key in values if isinstance(values, dict) else ():
        if varies(key):
            yield *path, key


def _items(value: Any, key: str) -> Iterator[tuple[int, Any]]:
    items = value.get(key) if isinstance(value, dict) else None
    return enumerate(items if isinstance(items, list) else ())
