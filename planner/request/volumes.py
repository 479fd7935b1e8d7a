"""The nodes on which a gang's pods can use their volumes, as node exclusions. Pure.

Source: kube-scheduler's VolumeBinding and VolumeZone plugins.

- A bound volume restricts its pods to the nodes of its node affinity. If the nodes have zone or region
  labels, they must also match the volume's `topology.kubernetes.io` labels.
- If a claim has no volume and its StorageClass binds for the first pod (WaitForFirstConsumer), its pods can
  use nodes on which a matching volume of the class is available, or on which the class provisions volumes.
- Pods that wait for a volume of a StorageClass with binding mode Immediate are planned with a warning:
  kube-scheduler schedules them once the volume is bound.

- A claim with the access mode `ReadWriteOncePod` that a bound pod mounts keeps other pods from all nodes.

Not checked, and left to the scheduler: how many volumes a node can attach, `ReadWriteOncePod` claims of pods
that are only reserved, the storage capacity that drivers report, and whether there are enough available
volumes if a pod needs several of them, or several pods need one each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from planner.cluster.snapshot import Snapshot
from planner.cluster.usage.occupancy import belongs_to_gang
from planner.model.labels import NODE_NAME_FIELD, Requirement, Term
from planner.model.names import namespace_of
from planner.model.node import Node
from planner.model.pod import VolumeClaim, VolumeUse, selected
from planner.model.podgroup import PodGroup
from planner.model.reservation import reservation_id
from planner.model.resolved import NodeExclusion, ResolvedPodGroup, ResolvedPodSet
from planner.model.topology import HOSTNAME, REGION, ZONE, short
from planner.model.volumes import PersistentVolume, Volumes
from planner.model.words import listed, pods
from planner.node.eligibility import term_matches
from planner.request.validation import Refusal

_GENERAL = {
    "failure-domain.beta.kubernetes.io/region": REGION,
    "failure-domain.beta.kubernetes.io/zone": ZONE,
    REGION: REGION,
    ZONE: ZONE,
}
"""The zone and region labels that VolumeZone reads, each with its current name."""

ONE_POD = "ReadWriteOncePod"

_NOWHERE: Term = (Requirement(NODE_NAME_FIELD, "In", ()),)
"""A term that no node matches. An empty tuple of terms would match all nodes."""


@dataclass(frozen=True, slots=True)
class Reach:
    """The nodes from which a volume can be used.

    A node must match one of `terms` (() matches all) and, if it has any zone or region label, must have one
    of the values of each entry (label, values) in `zones`. `cause`: why the other nodes are excluded.
    `passing`: whether the restriction may end by itself.
    """

    cause: str
    terms: tuple[Term, ...] = ()
    zones: tuple[tuple[str, frozenset[str]], ...] = ()
    passing: bool = False

    def holds(self, node: Node) -> bool:
        """Reports whether the volume can be used from the node."""
        if self.terms and not any(term_matches(term, node) for term in self.terms):
            return False
        if not self.zones or not any(key in node.labels for key in _GENERAL):
            return True
        return all(
            node.labels.get(key, node.labels.get(_GENERAL[key])) in values for key, values in self.zones
        )


def with_volumes(snapshot: Snapshot, group: ResolvedPodGroup) -> ResolvedPodGroup:
    """Returns the gang restricted to the nodes on which its pods can use their volumes.

    The gang is unchanged if no volumes, claims or StorageClasses of the cluster are known. Raises `Refusal`
    for a claim that more pods mount than its access mode allows.
    """
    volumes = snapshot.base.volumes
    if not volumes or not any(pod_set.shape.volumes for pod_set in group.pod_sets):
        return group
    namespace, notes = namespace_of(group.name), dict[str, None]()
    _check_shared(volumes, namespace, group, notes)
    users = _users_of_claims_for_one_pod(snapshot, group, namespace)
    sets = tuple(
        _restricted(
            snapshot,
            pod_set,
            (*_reaches(volumes, namespace, group, pod_set, notes), *_reaches_in_use(pod_set, users)),
        )
        for pod_set in group.pod_sets
    )
    warnings = tuple(dict.fromkeys((*group.warnings, *notes)))
    return replace(group, pod_sets=sets, warnings=warnings)


def _users_of_claims_for_one_pod(snapshot: Snapshot, group: PodGroup, namespace: str) -> dict[str, str]:
    """Returns the gang's claims that only one pod may mount and a bound pod of another workload mounts, each
    with this pod.
    """
    claims, names = snapshot.base.volumes.claims, set[str]()
    for pod_set in group.pod_sets:
        for use in pod_set.shape.volumes:
            claim = None if use.own else claims.get(f"{namespace}/{use.claim}")
            if claim is not None and ONE_POD in claim.modes:
                names.add(use.claim)
    users: dict[str, str] = {}
    own_id = reservation_id(group.name)
    for pod in snapshot.bound if names else ():
        in_use = names.intersection(pod.volume_claims) if pod.volume_claims else ()
        if in_use and namespace_of(pod.name) == namespace and not belongs_to_gang(pod, group.name, own_id):
            users |= dict.fromkeys(in_use, pod.name)
    return users


def _reaches_in_use(pod_set: ResolvedPodSet, users: Mapping[str, str]) -> Iterator[tuple[Reach, ...]]:
    """Yields for each claim of the PodSet that another pod has to itself that no node will do for now."""
    for use in pod_set.shape.volumes:
        if not use.own and use.claim in users:
            cause = f"without claim {use.claim} ({ONE_POD}), which pod {users[use.claim]} mounts"
            yield (Reach(cause, (_NOWHERE,), passing=True),)


def _check_shared(volumes: Volumes, namespace: str, group: PodGroup, notes: dict[str, None]) -> None:
    """Checks claims that several pods of the gang mount: adds warnings to `notes`, or raises `Refusal` if
    only one pod may mount the claim.
    """
    counts = Counter[str]()
    for pod_set in group.pod_sets:
        for use in pod_set.shape.volumes:
            counts[use.claim] += 0 if use.own else pod_set.count
    for name, count in counts.items():
        claim = volumes.claims.get(f"{namespace}/{name}")
        if claim is None or count < 2:
            continue
        subject = f"{pods(count)} mount the claim {name}, which"
        if ONE_POD in claim.modes:
            raise Refusal(
                "ClaimTakesOnePod",
                f"{subject} is {ONE_POD}. Would work: a claim for each pod, or access mode ReadWriteMany.",
            )
        if claim.modes == {"ReadWriteOnce"}:
            notes[f"{subject} is ReadWriteOnce: most drivers attach its volume to one node at a time"] = None
        elif not claim.volume:
            consequence = "it is made for the first of them, and the others must reach it from their nodes"
            notes[f"{subject} has no volume yet: {consequence}"] = None


def _reaches(
    volumes: Volumes, namespace: str, group: PodGroup, pod_set: ResolvedPodSet, notes: dict[str, None]
) -> Iterator[tuple[Reach, ...]]:
    """Yields a tuple of alternatives for each volume claim in the pod spec that restricts the nodes: a node
    must satisfy one of them.

    The pods of a StatefulSet have a volume claim each, so there is an alternative for each pod; any other
    volume claim has one.
    """
    for use in pod_set.shape.volumes:
        if not use.stateful_set:
            claims = [(use.claim, use.own or volumes.claims.get(f"{namespace}/{use.claim}"))]
        else:
            names = [f"{use.claim}-{use.stateful_set}-{number}" for number in _ordinals(group, pod_set, use)]
            claims = [(name, volumes.claims.get(f"{namespace}/{name}", use.own)) for name in names]
        reaches = [_reach(volumes, name, claim, notes) for name, claim in claims]
        if len({reach and (reach.terms, reach.zones) for reach in reaches}) > 1:
            shown = listed([name for name, _ in claims])
            notes[f"the volumes of claims {shown} are in different places: each pod may find another's"] = (
                None
            )
        limits = tuple(reach for reach in reaches if reach is not None)
        if limits and len(limits) == len(reaches):
            yield limits


def _ordinals(group: PodGroup, pod_set: ResolvedPodSet, use: VolumeUse) -> Iterable[int]:
    """Returns the ordinals of the StatefulSet's pods in the gang: of all pods; for a gang of a single pod,
    the first ordinal plus the number at the end of the gang's name.
    """
    last = group.name.rpartition("/")[2]
    if group.name.count("/") > 2 and last.isdecimal() and pod_set.count == 1:
        return (use.first + int(last),)
    return range(use.first, use.first + pod_set.count)


def _reach(volumes: Volumes, name: str, claim: VolumeClaim | None, notes: dict[str, None]) -> Reach | None:
    """Returns the nodes from which the volume of a claim can be used; None if nothing is known that restricts
    them. Adds warnings to `notes`.
    """
    if claim is None:
        notes[f"the claim {name} is not known: its pods wait for it, and its volume is not planned"] = None
        return None
    if claim.bound:
        return _bound(name, volumes.volumes.get(claim.volume), claim.volume, notes)
    storage = volumes.class_of(claim)
    if storage is None or not storage.waits or claim.volume:
        kind = f"class {storage.name}, which binds at once" if storage else "no class that is known"
        notes[f"the claim {name} ({kind}) has no volume yet: its pods wait until it has"] = None
        # A class that does not wait for a pod also creates the volume in one of its topologies.
        if storage is None or not storage.topologies or not storage.provisions:
            return None
    elif claim.node:
        return Reach(
            f"other than {claim.node}, where the volume of claim {name} is being made",
            ((Requirement(NODE_NAME_FIELD, "In", (claim.node,)),),),
            passing=True,
        )
    if storage.provisions and not storage.topologies:
        return None
    serving = [volume for volume in volumes.volumes.values() if _serves(volume, claim, storage.name)]
    if any(not volume.affinity for volume in serving):
        return None
    terms = tuple(dict.fromkeys(term for volume in serving for term in volume.affinity))
    if storage.provisions:
        place = _place(storage.topologies)
        cause = f"outside {place or 'the topologies'} where class {storage.name} makes volumes (claim {name})"
        return Reach(cause, (*storage.topologies, *terms))
    cause = f"without an available volume of class {storage.name} for claim {name}"
    return Reach(cause, terms or (_NOWHERE,), passing=True)


def _bound(name: str, volume: PersistentVolume | None, stated: str, notes: dict[str, None]) -> Reach | None:
    if volume is None:
        notes[f"the volume {stated} of claim {name} is not known: where it is cannot be planned"] = None
        return None
    zones = tuple(  # the label of a regional volume lists its zones: "a__b"
        (key, frozenset(volume.labels[key].split("__"))) for key in _GENERAL if volume.labels.get(key)
    )
    if not volume.affinity and not zones:
        return None
    place = _place(volume.affinity) or _place(
        tuple((Requirement(k, "In", tuple(sorted(v))),) for k, v in zones[-1:])
    )
    where = f"outside {place}, where" if place else "out of reach of"
    cause = f"{where} volume {volume.name} of claim {name}{' is' if place else ''}"
    return Reach(cause, volume.affinity, zones)


def _place(terms: tuple[Term, ...]) -> str:
    """Returns the label and the values that the terms require, as text, for example "zone a, b"; "" if they
    require more than values of a single label.
    """
    keys = {requirement.key for term in terms for requirement in term}
    if len(keys) != 1 or any(requirement.operator != "In" for term in terms for requirement in term):
        return ""
    values = dict.fromkeys(value for term in terms for requirement in term for value in requirement.values)
    key = keys.pop()
    return f"{'node' if key in (HOSTNAME, NODE_NAME_FIELD) else short(key)} {listed(list(values))}"


def _serves(volume: PersistentVolume, claim: VolumeClaim, storage_class: str) -> bool:
    """Reports whether a claim that waits for its first pod could be bound to the volume."""
    if volume.size < claim.size or volume.mode != claim.mode:
        return False
    if volume.claim:
        return bool(claim.name) and volume.claim == claim.name
    return (
        volume.available
        and volume.storage_class == storage_class
        and claim.modes <= volume.modes
        and selected(claim.selector, volume.labels)
    )


def _restricted(
    snapshot: Snapshot, pod_set: ResolvedPodSet, claims: Iterable[tuple[Reach, ...]]
) -> ResolvedPodSet:
    claim_exclusions = [_exclusion(snapshot, reaches) for reaches in claims]
    if not claim_exclusions:
        return pod_set
    exclusions = tuple(dict.fromkeys((*pod_set.shape.exclusions, *claim_exclusions)))
    return replace(pod_set, shape=replace(pod_set.shape, exclusions=exclusions))


def _exclusion(snapshot: Snapshot, reaches: tuple[Reach, ...]) -> NodeExclusion:
    """Returns the exclusion of all nodes from which none of these volumes can be used: by the values of one
    label if that is equivalent, else by node name.
    """
    first = reaches[0]
    terms = [term for reach in reaches for term in reach.terms or ((),)]
    keys = {requirement.key for term in terms for requirement in term}
    simple = all(len(term) == 1 and term[0].operator == "In" for term in terms)
    passing = all(reach.passing for reach in reaches)
    if simple and len(keys) == 1 and not any(reach.zones for reach in reaches):
        values = frozenset(value for term in terms for value in term[0].values if value)
        return NodeExclusion(keys.pop(), values, first.cause, inside=True, passing=passing)
    reached = (node for node in snapshot.nodes.values() if any(reach.holds(node) for reach in reaches))
    names = frozenset(node.name for node in reached)
    return NodeExclusion(NODE_NAME_FIELD, names, first.cause, inside=True, passing=passing)
