"""The kinds of objects of which each is one record of the cluster: claims, volumes, quotas and others.

Such a record depends on its object alone. So a watch reads a changed object by itself, and changes one entry
of a mapping (`planner.cluster.facts.RECORDS`). Objects of other kinds, such as Topologies, ResourceSlices and
queues, are read together (`cluster`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from planner.manifests.devices import claim_from, class_from, domain_template
from planner.manifests.fields import mapping, qualified_name, texts
from planner.manifests.numa import numa_from
from planner.manifests.settings import bounds_from, priority_class_from, quota_from, runtime_class_from
from planner.manifests.volumes import storage_class_from, volume_claim_from, volume_from
from planner.model.errors import Where


@dataclass(frozen=True, slots=True)
class RecordKind:
    """How objects of a kind are read. `fact`: the path of the mapping with their records.

    `read`: returns the record, or None for an object that states nothing that the planner uses; raises
    `InputError`. `namespaced`: whether the key is NAMESPACE/NAME instead of NAME.
    """

    fact: str
    read: Callable[[Mapping[str, object], Where], object]
    namespaced: bool = True


def _labels(item: Mapping[str, object], where: Where) -> Mapping[str, str]:
    metadata = mapping(item.get("metadata"), where.at_path("metadata"))
    return texts(metadata.get("labels"), where.at_path("metadata.labels"))


RECORD_KINDS: Mapping[tuple[str, str], RecordKind] = {
    ("", "LimitRange"): RecordKind("bounds", bounds_from),
    ("", "ResourceQuota"): RecordKind("quotas", quota_from),
    ("", "Namespace"): RecordKind("spaces", _labels, namespaced=False),
    ("", "PersistentVolume"): RecordKind("volumes.volumes", volume_from, namespaced=False),
    ("", "PersistentVolumeClaim"): RecordKind("volumes.claims", volume_claim_from),
    ("storage.k8s.io", "StorageClass"): RecordKind("volumes.classes", storage_class_from, namespaced=False),
    ("scheduling.k8s.io", "PriorityClass"): RecordKind(
        "priorities.by_name", priority_class_from, namespaced=False
    ),
    ("node.k8s.io", "RuntimeClass"): RecordKind(
        "runtime_classes.by_name", runtime_class_from, namespaced=False
    ),
    ("topology.node.k8s.io", "NodeResourceTopology"): RecordKind("numa", numa_from, namespaced=False),
    ("resource.k8s.io", "ResourceClaim"): RecordKind("claims.claims", claim_from),
    ("resource.k8s.io", "ResourceClaimTemplate"): RecordKind("claims.templates", claim_from),
    ("resource.k8s.io", "DeviceClass"): RecordKind("claims.classes", class_from, namespaced=False),
    ("resource.nvidia.com", "ComputeDomain"): RecordKind("claims.domains", domain_template),
}
"""The kinds by API group and kind."""


def key_of(kind: RecordKind, item: Mapping[str, object], where: Where) -> str:
    """Returns the key of an object's record. An object without a namespace is in "default"."""
    metadata = mapping(item.get("metadata"), where.at_path("metadata"))
    return qualified_name(metadata, where) if kind.namespaced else str(metadata["name"])
