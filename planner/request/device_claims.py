"""Gangs with device claims: what these come to in the cluster at hand, before the gang is planned.

What cannot be told is not counted, and a warning says so; devices that no node can ever give are refused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from planner.cluster.snapshot import Snapshot
from planner.devices.availability import AvailableDevices
from planner.devices.catalog import Devices
from planner.devices.claims import CHANNEL_CLASS, ClaimRequest, ResourceClaim
from planner.devices.device import Device
from planner.devices.node_devices import NodeKind
from planner.devices.pools import is_claimed, pool_amounts, pool_of
from planner.model.claim_spec import UNKNOWN, ClaimSpec, claim_spec_of, is_claim_spec
from planner.model.labels import NODE_NAME_FIELD, Requirement
from planner.model.podgroup import PodGroup
from planner.model.resolved import ResolvedPodGroup, ResolvedPodSet, ResolvedShape, resolved_group
from planner.model.resources import CLAIMED_GPU, CLAIMED_MIG, CLIQUE_LABEL
from planner.model.topology import HOSTNAME, Topology
from planner.request.validation import Refusal

_MOST_NAMED = 6


def claimed(devices: Devices, group: ResolvedPodGroup) -> ResolvedPodGroup:
    """The gang with what its claims ask for among its pods' requests; warnings say what cannot be told.

    Raises `Refusal` for devices that no node offers. What was worked out before is worked out anew.
    """
    notes: dict[str, None] = {}
    reserve = group.reserve
    sets = tuple(_set(devices, pod_set, group.name.partition("/")[0], notes) for pod_set in group.pod_sets)
    slices = any(CLAIMED_MIG in one.shape.requests for one in sets)
    if group.presumed and slices and not any(one.shape.gpus for one in sets):
        reserve = "nodes"  # a whole host held for a slice would be absurd
    said = (*group.warnings, *(note for note in notes if note not in group.warnings))
    return replace(group, pod_sets=sets, reserve=reserve, warnings=said)


def in_one_clique(
    devices: Devices, topologies: Iterable[Topology], group: ResolvedPodGroup
) -> ResolvedPodGroup:
    """The gang with the pods that claim a ComputeDomain's channel kept in one clique, which is its reach.

    A gang that requires a clique or a finer level stays as it is; so does one whose topology has no cliques.
    """
    namespace = group.name.partition("/")[0]
    own = [p for p in group.pod_sets if any(devices.is_channel(c, namespace) for c in p.shape.claims)]
    named = [t for t in topologies if CLIQUE_LABEL in t.levels and group.constraint.topology in ("", t.name)]
    if group.size < 2 or not own or not named or sum(p.count for p in own) < 2:
        return group
    within = {level for t in named for level in t.levels[t.index(CLIQUE_LABEL) :]}
    within |= {word for t in named for word, level in t.aliases.items() if level in within}
    loose = {p.name for p in own if p.constraint.required not in within}
    if group.constraint.required in within or not loose:
        return group
    if len(own) == len(group.pod_sets):
        sets = tuple(
            replace(p, constraint=replace(p.constraint, required="")) if p.name in loose else p
            for p in group.pod_sets
        )
        tightened = replace(group.constraint, required=CLIQUE_LABEL)
        return _noted(replace(group, pod_sets=sets, constraint=tightened))
    sets = tuple(
        replace(p, constraint=replace(p.constraint, required=CLIQUE_LABEL)) if p.name in loose else p
        for p in group.pod_sets
    )
    return _noted(replace(group, pod_sets=sets))


def _noted(group: ResolvedPodGroup) -> ResolvedPodGroup:
    note = f"its pods claim a ComputeDomain's channel, which reaches one {CLIQUE_LABEL}: planned within one"
    return replace(group, warnings=(*group.warnings, note))


def _set(devices: Devices, pod_set: ResolvedPodSet, namespace: str, notes: dict[str, None]) -> ResolvedPodSet:
    stand_ins = tuple(
        (name, bundle) for name, bundle in devices.extended_claims.items() if pod_set.shape.requests.get(name)
    )
    if stand_ins or pod_set.shape.extended_claims:
        pod_set = replace(pod_set, shape=replace(pod_set.shape, extended_claims=stand_ins))
    if not pod_set.shape.claims:
        return pod_set
    asked = _Asked(devices, pod_set, notes)
    for use in pod_set.shape.claims:
        if devices.is_channel(use, namespace):
            continue
        claim = devices.find(use, namespace)
        kind = "claim template" if use.template else "claim"
        if claim is None:
            asked.note(f"the {kind} {use.source} is not known in {namespace}: its devices are not planned")
        elif not use.template and (node := devices.node_of(claim)):
            asked.needs.append(
                Requirement(NODE_NAME_FIELD, "In", (node,))
            )  # its devices are there, and in use
        elif not use.template and pod_set.count > 1:
            asked.note(f"{pod_set.count} pods share the claim {use.source}: its devices are not counted")
            asked.together = True
        else:
            asked.claim(claim, f"{kind} {use.source}")
    own = pod_set.constraint
    if asked.together:  # a device is a node's, so its sharers are on one
        own = replace(own, required=HOSTNAME, slice_level="", slice_size=0)
    return replace(pod_set, shape=asked.shape(), constraint=own)


class _Asked:
    """What the claims of one PodSet come to, gathered claim by claim."""

    def __init__(self, devices: Devices, pod_set: ResolvedPodSet, notes: dict[str, None]) -> None:
        self._devices, self._set, self._notes = devices, pod_set, notes
        self._amounts: Counter[str] = Counter()
        self._bundles: list[ClaimSpec] = []
        self.needs: list[Requirement] = []
        self.together = False

    def note(self, text: str) -> None:
        """A warning, once."""
        self._notes[f"{self._set.name}: {text}"] = None

    def claim(self, claim: ResourceClaim, whose: str) -> None:
        """One claim: a bundle where slices tell the devices, amounts where only labels do."""
        if self._devices.claims.slices:
            self._bundle(claim, whose)
            return
        for rule in claim.constraints:
            self.note(f"no ResourceSlice tells which devices have {rule.words} ({whose}): not planned")
        for request in claim.requests:
            self._by_labels(request, whose)

    # -- by slices -----------------------------------------------------------------------------------------

    def _bundle(self, claim: ResourceClaim, whose: str) -> None:
        for request in claim.requests:
            self._first(request, whose, self._told)
        bundle = self._devices.claim_spec(claim)
        if bundle is None:
            return
        if not self._ever([bundle]):
            raise self._never([bundle], whose)
        self._amounts.update(self._devices.min_amounts(bundle))
        self._bundles.append(bundle)

    def _told(self, request: ClaimRequest, whose: str) -> None:
        """Notes what the plan does not know of a request. Raises `Refusal` where no node has so many."""
        want = self._devices.device_request(request)
        if want is None or not self._devices.is_counted(request):
            if request.device_class != CHANNEL_CLASS:
                self.note(f"devices of class {request.device_class} ({whose}) are not planned")
            return
        found = self._devices.kinds_with(want)
        most = max((sum(there.values()) for _, there in found), default=0)
        if most < max(1, request.count):
            raise self._none(request, whose, most)
        meant = {device for _, there in found for device in there}
        for text in self._devices.not_understood(want, meant):
            self.note(self._taken_to_hold(text, whose))
        if any(device.shareable for device in meant):
            self.note(f"devices that several claims may share ({whose}) are planned as if never used up")

    def _taken_to_hold(self, text: str, whose: str) -> str:
        """What is said of a selector of which it cannot be told whether devices meet it."""
        if self._devices.claims.engine is None:
            return f"no CEL engine reads the selector {_cut(text)} ({whose}): taken to hold"
        return f"the selector {_cut(text)} ({whose}) is more than the plan reads: taken to hold"

    def _ever(self, bundles: Sequence[ClaimSpec]) -> bool:
        """Whether some node can give a pod all of them when nothing runs."""
        wanted = [(bundle, 1) for bundle in bundles]
        return any(
            AvailableDevices(one.node_devices).fits(wanted)
            for one in self._devices.node_kinds
            if one.node_devices
        )

    def _never(self, bundles: Sequence[ClaimSpec], whose: str) -> Refusal:
        words = "; ".join(bundle.words for bundle in bundles)
        free = [claim_spec_of(bundle.choices) for bundle in bundles]
        ruled = any(bundle.constraints for bundle in bundles) and self._ever(free)
        works = "the same devices without the claim's constraints" if ruled else "fewer devices in one pod"
        return Refusal(
            "NoSuchDevice",
            f"{self._set.name} claims {words} ({whose}), and no node has all of that together. "
            f"Would work: {works}.",
        )

    # -- by labels -----------------------------------------------------------------------------------------

    def _by_labels(self, request: ClaimRequest, whose: str) -> None:
        self._first(request, whose, self._counted)

    def _first(self, request: ClaimRequest, whose: str, look: Callable[[ClaimRequest, str], None]) -> None:
        """One request of a claim; of its alternatives the first that some node can give."""
        *others, last = request, *request.alternatives
        for one in others:
            try:
                return look(one, whose)
            except Refusal:
                continue
        return look(last, whose)

    def _counted(self, request: ClaimRequest, whose: str) -> None:
        if request.admin_access or request.device_class == CHANNEL_CLASS:
            return
        want = self._devices.device_request(request)
        if want is None:
            self.note(f"devices of class {request.device_class} ({whose}) are not planned")
            return
        found = self._devices.kinds_with(want)
        if not found:
            raise self._none(request, whose, 0)
        meant = {device for _, there in found for device in there}
        for text in self._devices.not_understood(want, meant):
            self.note(self._taken_to_hold(text, whose))
        pools = {pool_of(device) for device in meant}
        if CLAIMED_GPU in pools and len(pools) > 1:
            self.note(f"whole GPUs and slices both meet {whose}: its devices are not planned")
            return
        count = self._count(request, [sum(there.values()) for _, there in found], whose)
        if count:
            self._need(request, pools, count, found, whose)

    def _count(self, request: ClaimRequest, totals: list[int], whose: str) -> int:
        if request.count != UNKNOWN:
            return request.count
        if len(set(totals)) == 1:
            return totals[0]
        numbers = ", ".join(map(str, sorted(set(totals))))
        self.note(f"all devices of a node ({whose}) are {numbers}: not planned")
        return 0

    def _need(
        self,
        request: ClaimRequest,
        pools: set[str],
        count: int,
        found: list[tuple[NodeKind, Counter[Device]]],
        whose: str,
    ) -> None:
        enough = [one for one, there in found if sum(there.values()) >= count]
        if not enough:
            raise self._none(request, whose, max(sum(there.values()) for _, there in found))
        if len(pools) > 1:
            self.note(f"slices of any profile ({whose}) are planned by their nodes only")
        name = next(iter(pools)) if len(pools) == 1 else CLAIMED_MIG
        wanted = Counter({name: count})
        self._amounts.update(wanted if name == CLAIMED_MIG else pool_amounts(wanted))
        if need := self._devices.among(enough, pools, count):
            self.needs.append(need)

    def _none(self, request: ClaimRequest, whose: str, most: int) -> Refusal:
        wanted = f"{request.count} devices" if request.count > 1 else "a device"
        selected = f" where {_cut(' && '.join(request.selectors))}" if request.selectors else ""
        have = f"no node has more than {most}" if most else "no node offers one"
        offered = self._devices.offered()
        more = f" and {len(offered) - _MOST_NAMED} more" if len(offered) > _MOST_NAMED else ""
        works = f"{most} or less a pod" if most else f"one of {', '.join(offered[:_MOST_NAMED])}{more}"
        return Refusal(
            "NoSuchDevice",
            f"{self._set.name} claims {wanted} of class {request.device_class}{selected} ({whose}), and "
            + (f"{have}. Would work: {works}." if offered else f"{have}; none offers GPUs at all."),
        )

    def shape(self) -> ResolvedShape:
        """The pods' shape with all that was gathered. Raises `Refusal` where no node can give all of it."""
        if len(self._bundles) > 1 and not self._ever(self._bundles):
            raise self._never(self._bundles, "its claims")
        shape = self._set.shape
        requests = {
            name: amount
            for name, amount in shape.requests.items()
            if not is_claimed(name) and not is_claim_spec(name)
        }
        affinity = shape.affinity
        for need in self.needs:
            affinity = tuple(t if need in t else (*t, need) for t in affinity) or ((need,),)
        bundles = tuple(sorted(self._bundles, key=lambda one: one.name))
        return replace(shape, requests={**requests, **self._amounts}, affinity=affinity, claim_specs=bundles)


def _cut(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= 120 else flat[:117] + "…"


def with_devices(snapshot: Snapshot, group: PodGroup) -> ResolvedPodGroup:
    """The gang with what its device claims come to in this cluster. Raises `Refusal` for what none offers."""
    gang = resolved_group(group)
    return claimed(snapshot.base.devices, gang) if has_claims(gang) or _stands_in(snapshot, gang) else gang


def has_claims(group: PodGroup) -> bool:
    """Whether any pod of the gang names a device claim."""
    return any(pod_set.shape.claims for pod_set in group.pod_sets)


def _stands_in(snapshot: Snapshot, group: PodGroup) -> bool:
    """Whether some extended resource of the gang may be served by claims."""
    if not snapshot.base.claims.slices or not snapshot.base.claims.classes:
        return False
    served = snapshot.base.devices.extended_claims
    return any(name in served for one in group.pod_sets for name in one.shape.requests)
