"""Translates a gang's ResourceClaims (DRA) into resource requests and node requirements before planning.

If ResourceSlices list the cluster's devices, a claim becomes a `ClaimSpec`, for which the search chooses
devices on each node. Otherwise the devices are derived from node labels and counted as amounts of resources
(*pools*). Devices that cannot be counted are left out of the plan, with a warning. A claim for devices that
no node has is refused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from planner.cluster.snapshot import Snapshot
from planner.devices.allocation.allocator import MAX_DEVICES, needs_too_many, overlaps_itself, tolerating_all
from planner.devices.availability import AvailableDevices
from planner.devices.catalog import Devices
from planner.devices.claims import CHANNEL_CLASS, ClaimRequest, ResourceClaim
from planner.devices.device import Device
from planner.devices.devices_by_node import NodeKind
from planner.devices.pools import is_claimed, pool_amounts, pool_of
from planner.model.claim_spec import UNKNOWN, ClaimSpec, DeviceRequest, claim_spec_of, is_claim_spec
from planner.model.labels import NODE_NAME_FIELD, Requirement
from planner.model.names import namespace_of
from planner.model.podgroup import PodGroup
from planner.model.resolved import ResolvedPodGroup, ResolvedPodSet, ResolvedShape, resolved_group
from planner.model.resources import CLAIMED_GPU, CLAIMED_MIG, CLIQUE_LABEL
from planner.model.topology import HOSTNAME, Topology
from planner.model.words import listed, shortened
from planner.request.validation import Refusal

_MOST_NAMED = 6
"""Maximum number of devices that a refusal lists by name, so that its message stays short; it only counts the
others.
"""


def claimed(devices: Devices, group: ResolvedPodGroup) -> ResolvedPodGroup:
    """Returns the gang with the devices of its ResourceClaims added to its pods' requests, and with a warning
    for each claim that is not counted.

    Raises `Refusal` for devices that no node offers. The function is idempotent: it replaces the requests
    that an earlier call added.
    """
    notes: dict[str, None] = {}
    sharers: dict[str, list[ResolvedPodSet]] = {}
    for pod_set in group.pod_sets:
        for source in {use.source for use in pod_set.shape.claims if pod_set.count and not use.template}:
            sharers.setdefault(source, []).append(pod_set)
    sets = tuple(
        _set(devices, pod_set, namespace_of(group.name), sharers, notes) for pod_set in group.pod_sets
    )
    warnings = (*group.warnings, *(note for note in notes if note not in group.warnings))
    return replace(group, pod_sets=sets, warnings=warnings)


def in_one_clique(
    devices: Devices, topologies: Iterable[Topology], group: ResolvedPodGroup
) -> ResolvedPodGroup:
    """Returns the gang with the clique as required level for the pods that claim a ComputeDomain channel.

    A channel works only inside one clique, so pods in two cliques cannot communicate by their channels.
    The gang is returned unchanged if it already requires the clique or a finer level, if no topology that it
    may use has a clique level, or if fewer than two pods claim a channel.
    """
    namespace = namespace_of(group.name)
    claiming = [p for p in group.pod_sets if any(devices.is_channel(c, namespace) for c in p.shape.claims)]
    having_cliques = [
        t for t in topologies if CLIQUE_LABEL in t.levels and group.constraint.topology in ("", t.name)
    ]
    if group.size < 2 or not claiming or not having_cliques or sum(p.count for p in claiming) < 2:
        return group
    inner_levels = {level for t in having_cliques for level in t.levels[t.index(CLIQUE_LABEL) :]}
    inner_levels |= {
        word for t in having_cliques for word, level in t.aliases.items() if level in inner_levels
    }
    loose = {p.name for p in claiming if p.constraint.required not in inner_levels}
    if group.constraint.required in inner_levels or not loose:
        return group
    if len(claiming) == len(group.pod_sets):
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


def _set(
    devices: Devices,
    pod_set: ResolvedPodSet,
    namespace: str,
    sharers: Mapping[str, Sequence[ResolvedPodSet]],
    notes: dict[str, None],
) -> ResolvedPodSet:
    """Returns the PodSet with its claims resolved. `sharers`: by ResourceClaim, the PodSets that name it."""
    # For each requested extended resource that a DeviceClass provides: its name, and the claim for one unit.
    stand_ins = tuple(
        (name, claim_spec)
        for name, claim_spec in devices.extended_claims.items()
        if pod_set.shape.requests.get(name)
    )
    if stand_ins or pod_set.shape.extended_claims:
        pod_set = replace(pod_set, shape=replace(pod_set.shape, extended_claims=stand_ins))
    if not pod_set.shape.claims:
        return pod_set
    reader = _ClaimReader(devices, pod_set, notes)
    for place, use in enumerate(pod_set.shape.claims):
        named_before = not use.template and use in pod_set.shape.claims[:place]
        if named_before or devices.is_channel(use, namespace):
            continue
        claim = devices.find(use, namespace)
        kind = "claim template" if use.template else "claim"
        if claim is None:
            reader.note(f"the {kind} {use.source} is not known in {namespace}: its devices are not planned")
        elif not use.template and (node := devices.node_of(claim)):
            # The claim's devices are already allocated on this node.
            reader.needs.append(Requirement(NODE_NAME_FIELD, "In", (node,)))
        elif not use.template and (count := sum(sharer.count for sharer in sharers.get(use.source, ()))) > 1:
            reader.note(f"{count} pods share the claim {use.source}: its devices are not counted")
            reader.shared_with.append((HOSTNAME, tuple(sorted(s.name for s in sharers[use.source]))))
            reader.claim(claim, f"{kind} {use.source}", counted=False)
        else:
            reader.claim(claim, f"{kind} {use.source}")
    constraint = pod_set.constraint
    if reader.shared_with:  # pods that share a claim share its devices, which are on one node
        constraint = replace(constraint, required=HOSTNAME, slice_level="", slice_size=0)
    return replace(pod_set, shape=reader.shape(), constraint=constraint)


class _ClaimReader:
    """Collects the resource requests and node requirements of one PodSet, claim by claim.

    `notes`: receives the warnings. `needs`: the requirements, all of which a node must satisfy.
    `shared_with`: for each claim that several pods share, the PodSets that must be on one node, as in
    `ResolvedShape.co_located_over`.
    """

    def __init__(self, devices: Devices, pod_set: ResolvedPodSet, notes: dict[str, None]) -> None:
        self._devices, self._set, self._notes = devices, pod_set, notes
        self._amounts: Counter[str] = Counter()
        self._claim_specs: list[ClaimSpec] = []
        self.needs: list[Requirement] = []
        self.shared_with: list[tuple[str, tuple[str, ...]]] = []

    def note(self, text: str) -> None:
        """Adds a warning; a repeated text is added once."""
        self._notes[f"{self._set.name}: {text}"] = None

    def claim(self, claim: ResourceClaim, source: str, *, counted: bool = True) -> None:
        """Adds one claim: as a `ClaimSpec` if ResourceSlices list the devices, else as amounts of devices
        that are derived from node labels. `source`: the claim's kind and name, for messages. If not
        `counted`, it is only refused if no node has its devices.
        """
        if self._devices.claims.slices:
            self._by_slices(claim, source, counted=counted)
            return
        for rule in claim.constraints:
            self.note(f"no ResourceSlice tells which devices have {rule.words} ({source}): not planned")
        for request in claim.requests if counted else ():
            self._by_labels(request, source)

    # -- by ResourceSlices ---------------------------------------------------------------------------------

    def _by_slices(self, claim: ResourceClaim, source: str, *, counted: bool) -> None:
        for request in claim.requests:
            self._first_possible(request, source, self._note_unplanned)
        claim_spec = self._devices.claim_spec(claim)
        if claim_spec is None:
            return
        if not self._fits_some_node([claim_spec]):
            raise self._misfit_refusal([claim_spec], source)
        if counted:
            self._amounts.update(self._devices.min_amounts(claim_spec))
            self._claim_specs.append(claim_spec)

    def _note_unplanned(self, request: ClaimRequest, source: str) -> None:
        """Adds warnings for the parts of a claim's request that are not planned.

        Raises `Refusal` if no node has that many devices.
        """
        want = self._devices.device_request(request)
        if want is None or not self._devices.is_counted(request):
            if request.device_class != CHANNEL_CLASS:
                self.note(f"devices of class {request.device_class} ({source}) are not planned")
            return
        kinds = self._devices.kinds_with(want)
        max_count = max((sum(counts.values()) for _, counts in kinds), default=0)
        if max_count < max(1, request.count):
            raise self._count_refusal(request, source, self._devices.max_count(want) or max_count)
        meant = {device for _, counts in kinds for device in counts}
        self._note_selectors(want, meant, source)
        if any(device.shareable for device in meant):
            self.note(f"devices that several claims may share ({source}) are planned as if never used up")

    def _note_selectors(self, want: DeviceRequest, meant: Iterable[Device], source: str) -> None:
        """Adds warnings for selectors that cannot be evaluated for the devices that are meant, or that end in
        an error for some device.
        """
        for text in self._devices.not_understood(want, meant):
            self.note(self._assumed_true(text, source))
        for text, (node, error) in self._devices.failing(want).items():
            self.note(
                f"the selector {_cut(text)} ({source}) ends in an error on a device of node {node}, {error}: "
                "if the scheduler comes to that device, the pod gets none; test with has() what it reads"
            )

    def _assumed_true(self, text: str, source: str) -> str:
        """Returns the warning that a selector cannot be evaluated and counts as true."""
        if self._devices.claims.engine is None:
            return f"no CEL engine reads the selector {_cut(text)} ({source}), which is assumed to be true"
        return f"the selector {_cut(text)} ({source}) cannot be evaluated and is assumed to be true"

    def _fits_some_node(self, claim_specs: Sequence[ClaimSpec]) -> bool:
        """Reports whether some empty node has the devices for all these claims of one pod."""
        demands = [(claim_spec, 1) for claim_spec in claim_specs]
        return any(
            AvailableDevices(node_kind.node_devices).fits(demands)
            for node_kind in self._devices.node_kinds
            if node_kind.node_devices
        )

    def _misfit_refusal(self, claim_specs: Sequence[ClaimSpec], source: str) -> Refusal:
        words = "; ".join(claim_spec.words for claim_spec in claim_specs)
        ruled = any(claim_spec.constraints for claim_spec in claim_specs) and self._fits_some_node(
            [claim_spec_of(claim_spec.choices) for claim_spec in claim_specs]
        )
        works = "the same devices without the claim's constraints" if ruled else "fewer devices in one pod"
        why = "no node has all of that together"
        kinds = [kind.node_devices for kind in self._devices.node_kinds if kind.node_devices]
        requests = [request for spec in claim_specs for choice in spec.choices for request in choice]
        taints = {
            taint for devices in kinds for request in requests for taint in devices.untolerated(request)
        }
        if taints and self._fits_some_node([tolerating_all(spec) for spec in claim_specs]):
            why = f"devices that match are tainted ({listed(sorted(taints), _MOST_NAMED)})"
            works = "tolerations of these taints in the claim's requests"
        if any(needs_too_many(node_devices, spec) for node_devices in kinds for spec in claim_specs):
            why = f"Kubernetes allocates at most {MAX_DEVICES} devices to one claim"
            works = f"several claims of at most {MAX_DEVICES} devices, or fewer devices in one pod"
        elif any(overlaps_itself(devices, spec) for devices in kinds for spec in claim_specs):
            why = "a request with adminAccess gets no device that another request of its claim has"
            works = "that request in a claim of its own"
        return Refusal(
            "NoSuchDevice", f"{self._set.name} claims {words} ({source}), and {why}. Would work: {works}."
        )

    # -- by node labels --------------------------------------------------------------------------------------

    def _by_labels(self, request: ClaimRequest, source: str) -> None:
        self._first_possible(request, source, self._counted)

    def _first_possible(
        self, request: ClaimRequest, source: str, look: Callable[[ClaimRequest, str], None]
    ) -> None:
        """Calls `look` with a request and its alternatives, in order, until one does not raise `Refusal`.

        Raises the `Refusal` of the last alternative if all are refused.
        """
        *choices, last_choice = request, *request.alternatives
        for choice in choices:
            try:
                return look(choice, source)
            except Refusal:
                continue
        return look(last_choice, source)

    def _counted(self, request: ClaimRequest, source: str) -> None:
        """Adds the amounts and the node requirement for a request, or a warning if its devices cannot be
        counted. Raises `Refusal` if no node has them.
        """
        if request.admin_access or request.device_class == CHANNEL_CLASS:
            return
        want = self._devices.device_request(request)
        if want is None:
            self.note(f"devices of class {request.device_class} ({source}) are not planned")
            return
        kinds = self._devices.kinds_with(want)
        if not kinds:
            raise self._count_refusal(request, source, 0)
        meant = {device for _, counts in kinds for device in counts}
        self._note_selectors(want, meant, source)
        pools = {pool_of(device) for device in meant}
        if CLAIMED_GPU in pools and len(pools) > 1:
            self.note(f"both whole GPUs and MIG devices match {source}: its devices are not planned")
            return
        count = self._count(request, [sum(counts.values()) for _, counts in kinds], source)
        if count:
            self._need(request, pools, count, kinds, source)

    def _count(self, request: ClaimRequest, totals: list[int], source: str) -> int:
        """Returns the number of devices that a request asks for. If it asks for all devices of a node and the
        nodes have different numbers of them (`totals`), adds a warning and returns 0.
        """
        if request.count != UNKNOWN:
            return request.count
        if len(set(totals)) == 1:
            return totals[0]
        numbers = ", ".join(map(str, sorted(set(totals))))
        self.note(f"all devices of a node ({source}) are {numbers}: not planned")
        return 0

    def _need(
        self,
        request: ClaimRequest,
        pools: set[str],
        count: int,
        kinds: list[tuple[NodeKind, Counter[Device]]],
        source: str,
    ) -> None:
        sufficient_kinds = [kind for kind, counts in kinds if sum(counts.values()) >= count]
        if not sufficient_kinds:
            raise self._count_refusal(request, source, max(sum(counts.values()) for _, counts in kinds))
        if len(pools) > 1:
            self.note(f"slices of any profile ({source}) are planned by their nodes only")
        name = next(iter(pools)) if len(pools) == 1 else CLAIMED_MIG
        amounts = Counter({name: count})
        self._amounts.update(amounts if name == CLAIMED_MIG else pool_amounts(amounts))
        if need := self._devices.requirement_for(sufficient_kinds, pools, count):
            self.needs.append(need)

    def _count_refusal(self, request: ClaimRequest, source: str, max_count: int) -> Refusal:
        demand = f"{request.count} devices" if request.count > 1 else "a device"
        selected = f" where {_cut(' && '.join(request.selectors))}" if request.selectors else ""
        have = f"no node has more than {max_count}" if max_count else "no node offers one"
        offered = self._devices.offered(request.device_class)
        works = f"{max_count} or less a pod" if max_count else f"one of {listed(offered, _MOST_NAMED)}"
        return Refusal(
            "NoSuchDevice",
            f"{self._set.name} claims {demand} of class {request.device_class}{selected} ({source}), and "
            + (f"{have}. Would work: {works}." if offered else f"{have}, nor any other of this class."),
        )

    def shape(self) -> ResolvedShape:
        """Returns the shape of the PodSet's pods with all collected requests and node requirements.

        Raises `Refusal` if no empty node has the devices for all claims.
        """
        if len(self._claim_specs) > 1 and not self._fits_some_node(self._claim_specs):
            raise self._misfit_refusal(self._claim_specs, "its claims")
        shape = self._set.shape
        requests = {
            name: amount
            for name, amount in shape.requests.items()
            if not is_claimed(name) and not is_claim_spec(name)
        }
        affinity = shape.affinity
        for need in self.needs:
            affinity = tuple(t if need in t else (*t, need) for t in affinity) or ((need,),)
        claim_specs = tuple(sorted(self._claim_specs, key=lambda claim_spec: claim_spec.name))
        return replace(
            shape,
            requests={**requests, **self._amounts},
            affinity=affinity,
            claim_specs=claim_specs,
            co_located_over=tuple(dict.fromkeys(pair for pair in self.shared_with if len(pair[1]) > 1)),
        )


def _cut(text: str) -> str:
    return shortened(" ".join(text.split()), 120)


def with_devices(snapshot: Snapshot, group: PodGroup) -> ResolvedPodGroup:
    """Returns the gang with its ResourceClaims, and the extended resources that DeviceClasses provide,
    resolved in this cluster.

    Raises `Refusal` for devices that no node offers.
    """
    gang = resolved_group(group)
    return (
        claimed(snapshot.base.devices, gang)
        if has_claims(gang) or _uses_extended_claims(snapshot, gang)
        else gang
    )


def has_claims(group: PodGroup) -> bool:
    """Reports whether any pod of the gang refers to a ResourceClaim."""
    return any(pod_set.shape.claims for pod_set in group.pod_sets)


def _uses_extended_claims(snapshot: Snapshot, group: PodGroup) -> bool:
    """Reports whether a DeviceClass provides an extended resource that the gang requests."""
    if not snapshot.base.claims.slices or not snapshot.base.claims.classes:
        return False
    served = snapshot.base.devices.extended_claims
    return any(name in served for pod_set in group.pod_sets for name in pod_set.shape.requests)
