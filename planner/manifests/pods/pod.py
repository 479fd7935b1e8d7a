"""Reads the scheduling fields of a pod's spec: its effective request and its node constraints.

Effective request by the kubelet's rule: per resource max(sum of the containers and sidecars, max over the
init containers of (that container and the sidecars started before it)), plus the pod's overhead. A limit
without a request sets the request. For cpu, memory and huge pages, `spec.resources.requests` (pod level)
replaces that sum; a limit there sets the request if no container requests the resource (KEP-2837). The API
server does not allow device requests at pod level or in ephemeral containers, but does not check this in the
pod templates of custom resources. Such requests are counted, so that none goes unnoticed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from types import MappingProxyType

import orjson

from planner.manifests.devices import uses_from
from planner.manifests.fields import integer, mapping, maps, text, texts
from planner.manifests.numa import alignment_of
from planner.manifests.pods.gpu_sharing import SHARE_KEYS, share_asked
from planner.manifests.pods.host_ports import host_ports
from planner.manifests.pods.pod_affinity import spreads_of, terms_of
from planner.manifests.requirements import node_term_from, tolerations_of
from planner.manifests.volumes import claims_of
from planner.model import quantity
from planner.model.errors import InputError, Where
from planner.model.host_ports import port_labels, port_terms
from planner.model.labels import Term
from planner.model.pod import ContainerRequest, NodeSelection, PodShape, peak_request

CONTAINERS, INIT_CONTAINERS = ("containers", "ephemeralContainers"), "initContainers"
"""The fields with containers that run together, and the field with containers that run before them."""

CONTAINER_LISTS = (*CONTAINERS, INIT_CONTAINERS)

AMOUNTS = ("limits", "requests")
"""The fields of `resources` that state amounts."""

POD_LEVEL = ("cpu", "memory", "hugepages-")
"""Prefixes of the resources for which the pod-level amount replaces the sum of its containers."""

UNREAD = frozenset(("image", "command", "args", "env", "envFrom", "volumeMounts"))
"""Container fields that do not affect where a pod fits."""


_UNREAD_OF_POD = frozenset(("hostname", "subdomain", "volumes", *CONTAINER_LISTS))
"""Fields of a spec that do not affect where a pod fits, or that `spec_content` adds separately."""


_READ_VOLUMES = frozenset(("persistentVolumeClaim", "ephemeral"))
"""The sources of volumes that affect where a pod fits."""

MOST_KEPT, LONGEST_KEPT = 1024, 8192
"""Maximum number of cached shapes, and maximum size in bytes of a spec that is cached: at most 8 MiB in each
of the two caches.
"""

NOTHING: Mapping[str, str] = MappingProxyType({})

AS_SENT = orjson.OPT_PASSTHROUGH_SUBCLASS | orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME
"""Options by which `orjson` rejects a value that is not plain JSON. Such a value is not cached: its text
could equal that of another value.
"""


def shape_of(
    pod_spec: Mapping[str, object],
    where: Where,
    *,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, object] | None = None,
    noted: Where | None = None,
) -> PodShape:
    """Returns the shape of a pod with this spec: what the planner needs of it to find a node.

    `where`: the location of the spec; `noted`: that of `annotations`. Raises `InputError` that names a
    malformed field.
    """
    own, notes = labels or {}, annotations or {}
    shape = remembered_shape(pod_spec, own, notes)
    return shape or _read(mapping(pod_spec, where), where, own, notes, noted or where)


def remembered_shape(
    pod_spec: Mapping[str, object], labels: Mapping[str, str], annotations: Mapping[str, object]
) -> PodShape | None:
    """Returns the shape of a pod as `shape_of` does, from its cache; None if the pod is malformed or too
    large for the cache.

    This function has no parameter `where`, for callers with hundreds of pods: making a `where` takes as long
    as finding the shape in the cache.
    """
    content = spec_content(pod_spec, labels, annotations)
    if content is None:
        return None
    try:
        return _labelled(content, tuple(labels.items())) if labels else _of_content(content)
    except InputError:  # names no location, unlike the error of `shape_of`
        return None


def spec_content(
    spec: object, labels: Mapping[str, str] = NOTHING, notes: Mapping[str, object] = NOTHING
) -> bytes | None:
    """Returns the part of the spec that determines the shape, as a cache key; None if it is not cached,
    because it is too large or not plain JSON.

    The labels are left out if nothing in the spec selects pods by label. The key is the same for all pods of
    a controller, which differ in hostnames and in the name of the volume with the ServiceAccount's token; for
    a pod before and after most policies have patched it; and for templates that differ only in what they run.
    """
    if not isinstance(spec, dict):
        return None
    affinity = spec.get("affinity")
    selects = "topologySpreadConstraints" in spec or (
        affinity and (type(affinity) is not dict or not affinity.keys() <= {"nodeAffinity"})
    )
    containers = [_without_unread(spec.get(name)) for name in CONTAINER_LISTS]
    rest = {name: value for name, value in spec.items() if name not in _UNREAD_OF_POD}
    volumes = _without_unread_volumes(spec.get("volumes"))
    if volumes is not None and volumes != []:
        rest["volumes"] = volumes
    shares = [notes.get(name) for name in SHARE_KEYS]
    try:
        content = orjson.dumps([rest, containers, shares, labels if selects else None], None, AS_SENT)
    except TypeError:
        return None
    return content if len(content) <= LONGEST_KEPT else None


def _without_unread(containers: object) -> object:
    if not isinstance(containers, list):
        return containers
    return [
        {name: value for name, value in container.items() if name not in UNREAD}
        if isinstance(container, dict)
        else container
        for container in containers
    ]


def _without_unread_volumes(volumes: object) -> object:
    if not isinstance(volumes, list):
        return volumes
    return [
        volume for volume in volumes if not isinstance(volume, dict) or not _READ_VOLUMES.isdisjoint(volume)
    ]


@lru_cache(maxsize=MOST_KEPT)
def _labelled(content: bytes, labels: tuple[tuple[str, str], ...]) -> PodShape:
    """Returns the shape with these labels. Cached, because templates are read several times."""
    shape = _of_content(content)
    return replace(shape, labels={**dict(labels), **shape.labels})


@lru_cache(maxsize=MOST_KEPT)
def _of_content(content: bytes) -> PodShape:
    """Returns the shape for a cache key of `spec_content`, with the labels in it. Raises `InputError`."""
    _, _, shares, labels = orjson.loads(content)
    notes = dict(zip(SHARE_KEYS, shares, strict=True))
    return _read(spec_of(content), Where(), labels or {}, notes, Where())


def spec_of(content: bytes) -> dict[str, object]:
    """Returns the spec of a cache key of `spec_content`, without the fields that do not affect the shape."""
    rest, containers, _, _ = orjson.loads(content)
    lists = zip(CONTAINER_LISTS, containers, strict=True)
    return {**rest, **{name: items for name, items in lists if items is not None}}


def _read(
    spec: Mapping[str, object],
    where: Where,
    own: Mapping[str, str],
    notes: Mapping[str, object],
    noted: Where,
) -> PodShape:
    affinity = mapping(spec.get("affinity"), where.below("affinity"))
    node_affinity = mapping(affinity.get("nodeAffinity"), where.below("affinity.nodeAffinity"))
    containers = _containers(spec, where)
    requests = _effective(spec, containers, where)
    if notes and (share := share_asked(notes, noted)) is not None:
        requests[share.name] = 1
    ports = host_ports(spec, where)
    terms = terms_of(affinity, own, where.below("affinity")) if affinity else ()
    return PodShape(
        requests=requests,
        node_selector=texts(spec.get("nodeSelector"), where.below("nodeSelector")),
        affinity=_required_terms(node_affinity, where.below("affinity.nodeAffinity")),
        preferences=_preferred_terms(node_affinity, where.below("affinity.nodeAffinity")),
        tolerations=tolerations_of(spec, where),
        alignment=alignment_of(spec, where),
        claims=uses_from(spec, {}, where),
        volumes=claims_of(spec, where),
        labels={**own, **port_labels(ports)} if ports else own,
        terms=(*terms, *port_terms(ports)),
        spread=spreads_of(spec, own, where.below("topologySpreadConstraints")),
        priority_class=text(spec.get("priorityClassName"), where.below("priorityClassName")),
        stated_priority=_stated_priority(spec, where.below("priority")),
        gates=_gates(spec, where.below("schedulingGates")),
        runtime_class=text(spec.get("runtimeClassName"), where.below("runtimeClassName")),
        overhead=_overhead(spec, where),
        containers=() if spec.get("resources") else containers,
    )


KUEUE_MANAGED = "kueue.x-k8s.io/managed"
"""Label of a pod that Kueue gates until it has quota (Kueue v0.19.2, pkg/controller/jobs/pod)."""


def kueue_selection(
    labels: Mapping[str, object], spec: Mapping[str, object], where: Where
) -> NodeSelection | None:
    """Returns the node selector and tolerations of a pod that Kueue manages, or None for another pod.

    Raises `InputError`.
    """
    if labels.get(KUEUE_MANAGED) != "true":
        return None
    return NodeSelection(
        texts(spec.get("nodeSelector"), where.below("nodeSelector")), tolerations_of(spec, where)
    )


def _gates(spec: Mapping[str, object], where: Where) -> tuple[str, ...]:
    return tuple(text(gate.get("name"), where) for gate in maps(spec.get("schedulingGates"), where))


def _stated_priority(spec: Mapping[str, object], where: Where) -> int | None:
    stated = spec.get("priority")
    return None if stated is None else integer(stated, where)


def effective_request(spec: Mapping[str, object], where: Where) -> dict[str, int]:
    """Returns the request that the scheduler counts, in base units, with `pods: 1`; zero amounts are left
    out.
    """
    return _effective(spec, _containers(spec, where), where)


def _effective(
    spec: Mapping[str, object], containers: Iterable[ContainerRequest], where: Where
) -> dict[str, int]:
    total = peak_request(containers)
    total.update(_pod_level(spec, total, where))
    for name, amount in _overhead(spec, where).items():
        total[name] = total.get(name, 0) + amount
    return {name: amount for name, amount in total.items() if amount > 0} | {"pods": 1}


def _containers(spec: Mapping[str, object], where: Where) -> tuple[ContainerRequest, ...]:
    """Returns what the containers request, in the order in which they start."""
    result = []
    for field in (INIT_CONTAINERS, *CONTAINERS):
        for index, container in enumerate(maps(spec.get(field), where.below(field))):
            request = _container_request(container, where.below(f"{field}[{index}]"))
            stays = field != INIT_CONTAINERS or container.get("restartPolicy") == "Always"
            result.append(ContainerRequest("", request, stays))
    return tuple(result)


def _overhead(spec: Mapping[str, object], where: Where) -> dict[str, int]:
    overhead = quantity.amounts(spec.get("overhead"), where.below("overhead"), up=True)
    return {name: amount for name, amount in overhead.items() if amount > 0}


def _pod_level(spec: Mapping[str, object], total: Mapping[str, int], where: Where) -> dict[str, int]:
    """Returns the pod-level amounts, in base units, that apply instead of `total`, the sums over the
    containers: pod-level requests, limits of huge pages, and limits of resources that no container requests
    (k8s.io/kubernetes pkg/apis/core/v1/defaults.go, `defaultPodRequests`).
    """
    stated = mapping(mapping(spec.get("resources"), where.below("resources")).get("requests"), where)
    return {
        name: amount
        for name, amount in _container_request(spec, where).items()
        if not total.get(name)
        or name.startswith("hugepages-")
        or (name in stated and name.startswith(POD_LEVEL))
    }


def _container_request(container: Mapping[str, object], where: Where) -> dict[str, int]:
    """Returns the requests of a container or pod level; a limit without a request sets the request."""
    resources = mapping(container.get("resources"), where.below("resources"))
    limits = quantity.amounts(resources.get("limits"), where.below("resources.limits"), up=True)
    requests = quantity.amounts(resources.get("requests"), where.below("resources.requests"), up=True)
    for name, amount in requests.items():
        if amount > limits.get(name, amount):
            stated, limit = (quantity.show(name, size) for size in (amount, limits[name]))
            raise InputError(
                f"{stated} is more than the limit of {limit}; use {limit} or less",
                where.below(f"resources.requests.{name}"),
            )
    return {**limits, **requests}


def _required_terms(node_affinity: Mapping[str, object], where: Where) -> tuple[Term, ...]:
    place = where.below("requiredDuringSchedulingIgnoredDuringExecution")
    required = mapping(node_affinity.get("requiredDuringSchedulingIgnoredDuringExecution"), place)
    place = place.below("nodeSelectorTerms")
    terms = maps(required.get("nodeSelectorTerms"), place)
    return tuple(node_term_from(term, place.below(f"[{index}]")) for index, term in enumerate(terms))


def _preferred_terms(node_affinity: Mapping[str, object], where: Where) -> tuple[tuple[int, Term], ...]:
    place = where.below("preferredDuringSchedulingIgnoredDuringExecution")
    entries = maps(node_affinity.get("preferredDuringSchedulingIgnoredDuringExecution"), place)
    return tuple(
        (
            integer(entry.get("weight"), place.below(f"[{index}].weight")),
            node_term_from(
                mapping(entry.get("preference"), place.below(f"[{index}].preference")),
                place.below(f"[{index}].preference"),
            ),
        )
        for index, entry in enumerate(entries)
    )
