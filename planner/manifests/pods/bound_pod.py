"""A bound pod: what it uses on its node, and its anti-affinity to other pods."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from functools import lru_cache
from typing import TypeVar

from planner.manifests.devices import extended_claim, uses_from
from planner.manifests.fields import mapping, maps, text, texts
from planner.manifests.numa import alignment_of
from planner.manifests.pods.gpu_sharing import shared_by
from planner.manifests.pods.host_ports import host_ports
from planner.manifests.pods.pod import kueue_selection
from planner.manifests.pods.pod_affinity import terms_of
from planner.manifests.pods.resized import used_request
from planner.manifests.schedulers.systems import schedulers_of
from planner.manifests.volumes import mounted_claims
from planner.model.errors import Where
from planner.model.host_ports import port_labels
from planner.model.pod import DEFAULT_SCHEDULER, BoundPod, PodTerm
from planner.model.reservation import kueue_gang, reservation_id

T = TypeVar("T")

RESERVATION_KEY = "bayplan.dev/reservation"
"""Annotation of a pod: the id of its gang's reservation."""

MOST_RESERVATIONS = 256
"""Maximum number of reservation ids in a pod's annotation; one with more counts as empty. A pod has one id,
or those of all replicas of its object if admission did not see it. Anybody may write thousands onto a pod of
theirs, and each is looked up in the index of bound pods with every change on the pod's node.
"""

KUEUE_WORKLOAD = "kueue.x-k8s.io/workload"
"""Annotation of a pod that Kueue has admitted: the name of its Workload."""

_KUEUE_TOPOLOGY = re.compile(r"kueue\.x-k8s\.io/podset-.*topology")
"""Annotations of pods whose nodes Kueue assigns (Kueue ff69552e, pkg/util/tas/tas.go)."""


def pod_from(item: Mapping[str, object], where: Where) -> BoundPod | None:
    """Returns a pod that uses capacity, or None for a pod that is not bound or has ended. Raises
    `InputError`.
    """
    metadata = mapping(item.get("metadata"), where.at_path("metadata"))
    spec = mapping(item.get("spec"), where.at_path("spec"))
    status = mapping(item.get("status"), where.at_path("status"))
    node = text(spec.get("nodeName"), where.at_path("spec.nodeName"))
    if not node or status.get("phase") in ("Succeeded", "Failed"):
        return None
    namespace = text(metadata.get("namespace"), where.at_path("metadata.namespace")) or "default"
    annotations = texts(metadata.get("annotations"), where.at_path("metadata.annotations"))
    owners = maps(metadata.get("ownerReferences"), where.at_path("metadata.ownerReferences"))
    labels = texts(metadata.get("labels"), where.at_path("metadata.labels"))
    requests = used_request(spec, status, where)
    joined = mapping(spec.get("schedulingGroup"), where.at_path("spec.schedulingGroup"))
    ports = host_ports(spec, where.at_path("spec"))
    group = text(joined.get("podGroupName"), where.at_path("spec.schedulingGroup.podGroupName"))
    return BoundPod(
        name=f"{namespace}/{metadata['name']}",
        node=sys.intern(node),
        requests=_shared(tuple(requests.items())),
        reservation=_reservations(namespace, annotations),
        labels=_shared(tuple({**labels, **port_labels(ports)}.items())),
        daemon=any(owner.get("kind") == "DaemonSet" and bool(owner.get("controller")) for owner in owners),
        alignment=alignment_of(spec, where.at_path("spec")),
        terms=_anti_affinity(spec, labels, where),
        terminating=metadata.get("deletionTimestamp") is not None,
        gpu_groups=shared_by(requests, namespace, labels, annotations),
        claims=uses_from(spec, status, where.at_path("spec")),
        extended_claim=extended_claim(status, where),
        scheduling_group=group,
        scheduler=(text(spec.get("schedulerName"), where.at_path("spec.schedulerName")) or DEFAULT_SCHEDULER)
        if group
        else "",
        shows=schedulers_of(spec, labels, where),
        selection=kueue_selection(labels, spec, where.at_path("spec")),
        volume_claims=mounted_claims(spec, where.at_path("spec.volumes")),
    )


@lru_cache(maxsize=8192)  # an entry for the amounts and one for the labels of each pod template
def _shared(entries: tuple[tuple[str, T], ...]) -> Mapping[str, T]:
    """Returns a mapping with these entries, as one object for all pods that have the same: there are many
    such pods, and a mapping for each was a tenth of the memory of 5,000 nodes with 50,000 pods.
    """
    return dict(entries)


def stated_reservations(annotations: Mapping[str, object]) -> str:
    """Returns the reservation ids in a pod's annotations, joined by a comma; "" for none, and for more than
    `MOST_RESERVATIONS`.
    """
    ids = str(annotations.get(RESERVATION_KEY, ""))
    return ids if ids.count(",") < MOST_RESERVATIONS else ""


def _reservations(namespace: str, annotations: Mapping[str, str]) -> str:
    """Returns the ids of the reservations that may account for the pod, joined by a comma; "" for none.

    These are the reservation in the pod's annotation, and that of the Workload's gang if Kueue has assigned
    nodes to the pod.
    """
    own, workload = stated_reservations(annotations), annotations.get(KUEUE_WORKLOAD, "")
    if not workload or not any(map(_KUEUE_TOPOLOGY.fullmatch, annotations)):
        return own
    return ",".join(filter(None, (own, reservation_id(kueue_gang(namespace, workload)))))


def _anti_affinity(
    spec: Mapping[str, object], labels: Mapping[str, str], where: Where
) -> tuple[PodTerm, ...]:
    """Returns a bound pod's anti-affinity terms; affinity terms matter only until the pod is bound."""
    affinity = mapping(spec.get("affinity"), where.at_path("spec.affinity"))
    if not affinity.get("podAntiAffinity"):
        return ()
    return tuple(
        term for term in terms_of(affinity, labels, where.at_path("spec.affinity")) if not term.attracts
    )
