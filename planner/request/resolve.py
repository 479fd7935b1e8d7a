"""`resolve` turns the PodGroup of a request into a problem for the search, in one cluster at one moment.

These are all the steps between reading a request and the search, in order; a name with a dot is the field of
`PlacementProblem` that holds the result so far:

    PodGroup                as read
      created pods          tolerations, RuntimeClass: as the API       created_pods.py
                            server will add them
      priority              warnings for what the API server refuses    priority.py
      device claims         resource amounts and node requirements      device_claims.py
    .asked
      cliques, policies     levels that these add                       device_claims.py, level_policy.py
      volumes               nodes from which volumes can be used        volumes.py
    .gang
      other pods            pod affinity, topology spread               affinity, topology_spread.py
      NUMA                  nodes with large enough NUMA nodes          levels.py
      topologies            the topologies that the request may mean    topology_choice.py
      levels, pod classes   one `TopologyRequest` per topology          topology_request.py
    .requests

To change the nodes, counts or levels of a request, change the problem: `PlacementProblem.changed` runs only
the stages that depend on the change.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from planner.cluster.snapshot import Snapshot
from planner.model.labels import NODE_NAME_FIELD
from planner.model.podgroup import PodGroup, ReserveMode
from planner.model.resolved import (
    FABRIC_CAUSE,
    NodeExclusion,
    ResolvedPodGroup,
    ResolvedPodSet,
    resolved_group,
)
from planner.model.topology import HOSTNAME
from planner.request.affinity.pod_affinity import with_pod_affinity
from planner.request.affinity.within_gang import AffinityForm
from planner.request.created_pods import as_created, runtime_class_notes
from planner.request.device_claims import has_claims, in_one_clique
from planner.request.level_policy import by_policy
from planner.request.levels import with_numa_nodes
from planner.request.priority import priority_notes
from planner.request.shared_claims import with_shared_claims
from planner.request.topology_choice import candidates
from planner.request.topology_request import GpuLimit, TopologyRequest, topology_request
from planner.request.topology_spread import with_topology_spread
from planner.request.validation import Refusal, check
from planner.request.volumes import with_volumes


@dataclass(frozen=True, slots=True)
class PlacementProblem:
    """A gang resolved in a snapshot in which it holds nothing: the input of every search.

    `asked`: the request with its device claims resolved. `gang`: `asked` with the levels that cliques and
    policies add, and the nodes from which its volumes can be used. `requests`: one for each topology that the
    gang may use; empty if there is a `refusal`. `occupied`: True to search the cluster as it is, False to
    search it as if it were empty. `notes`: further warnings, besides those in `gang`.

    `looser`: if pods have affinity to other PodSets of the gang, the same requests in the other forms of this
    affinity (`affinity.within_gang.AffinityForm`), in the order of the attempts; the last is `scattered`.
    """

    snapshot: Snapshot
    asked: ResolvedPodGroup
    gang: ResolvedPodGroup
    requests: tuple[TopologyRequest, ...] = ()
    refusal: Refusal | None = None
    occupied: bool = True
    notes: tuple[str, ...] = ()
    looser: tuple[tuple[TopologyRequest, ...], ...] = ()

    @property
    def name(self) -> str:
        """The gang's name."""
        return self.gang.name

    @property
    def warnings(self) -> tuple[str, ...]:
        """The warnings from reading and resolving the request."""
        return (*self.gang.warnings, *self.notes)

    def when_empty(self) -> PlacementProblem:
        """Returns the same problem in a cluster without other pods and reservations."""
        return replace(self, occupied=False)

    def noting(self, *notes: str) -> PlacementProblem:
        """Returns the same problem with additional warnings."""
        return replace(self, notes=(*self.notes, *notes)) if notes else self

    def refused(self, refusal: Refusal) -> PlacementProblem:
        """Returns the same problem as one that cannot be satisfied, with the reason and without requests."""
        # The traceback refers to the callers' variables, and so back to the problem and its snapshot.
        return replace(self, requests=(), looser=(), refusal=refusal.with_traceback(None))

    def changed(self, asked: ResolvedPodGroup) -> PlacementProblem:
        """Returns the problem of a changed request whose device claims are the same."""
        return replace(_problem(self.snapshot, asked), occupied=self.occupied, notes=self.notes)

    def reserving(self, mode: ReserveMode) -> PlacementProblem:
        """Returns the same problem with another reserve mode, on which no stage depends."""
        asked, gang = replace(self.asked, reserve=mode), replace(self.gang, reserve=mode)
        return replace(self, asked=asked, gang=gang)

    def in_snapshot(self, snapshot: Snapshot) -> PlacementProblem:
        """Returns the same request resolved in another snapshot, for example without the pods of a gang."""
        return replace(_problem(snapshot, self.asked), occupied=self.occupied, notes=self.notes)

    def restricted_to(self, nodes: Sequence[str], *, one_per_node: bool = False) -> PlacementProblem:
        """Returns the problem restricted to these nodes. `one_per_node`: with at most one pod of each PodSet
        on a node.

        The restriction is no node affinity of the pods, so spread constraints still count the pods of all
        nodes, as kube-scheduler does.
        """
        others = NodeExclusion(NODE_NAME_FIELD, frozenset(nodes), FABRIC_CAUSE, inside=True, passing=False)

        def held(pod_set: ResolvedPodSet) -> ResolvedPodSet:
            shape = pod_set.shape
            keys = (
                tuple(dict.fromkeys((*shape.anti_affinity, HOSTNAME)))
                if one_per_node
                else shape.anti_affinity
            )
            exclusions = (*shape.exclusions, others)
            return replace(pod_set, shape=replace(shape, exclusions=exclusions, anti_affinity=keys))

        return self.changed(replace(self.asked, pod_sets=tuple(map(held, self.asked.pod_sets))))

    def limited_to(self, topology: str, limit: GpuLimit) -> PlacementProblem:
        """Returns the problem in this topology alone, with a limit on the gang's GPUs in each domain."""

        def own(requests: Iterable[TopologyRequest]) -> tuple[TopologyRequest, ...]:
            return tuple(
                [replace(each, gpu_limit=limit) for each in requests if each.topology.name == topology]
            )

        return replace(self, requests=own(self.requests), looser=tuple(map(own, self.looser)))

    def resized(self, counts: Mapping[str, int]) -> PlacementProblem:
        """Returns the problem with other pod counts for these PodSets."""
        sets = tuple(
            replace(pod_set, count=counts.get(pod_set.name, pod_set.count)) for pod_set in self.asked.pod_sets
        )
        return self._with_claims_resolved_again(replace(self.asked, pod_sets=sets))

    def with_requests(self, requests: Mapping[str, Mapping[str, int]]) -> PlacementProblem:
        """Returns the problem with other amounts, by PodSet and resource, in the pods' requests; 0 removes a
        resource.
        """

        def changed(pod_set: ResolvedPodSet) -> ResolvedPodSet:
            amounts, shape = requests.get(pod_set.name), pod_set.shape
            if not amounts and all(shape.requests.values()):
                return pod_set
            amounts_by_resource = {**shape.requests, **(amounts or {})}
            left = {name: amount for name, amount in amounts_by_resource.items() if amount}
            return replace(pod_set, shape=replace(shape, requests=left))

        sets = tuple(map(changed, self.asked.pod_sets))
        return self._with_claims_resolved_again(replace(self.asked, pod_sets=sets))

    def _with_claims_resolved_again(self, asked: ResolvedPodGroup) -> PlacementProblem:
        """Returns the problem of a changed request with the device claims resolved again, because they depend
        on the pods' requests and on how many pods share a claim.
        """
        if not has_claims(asked):
            return self.changed(asked)
        return replace(resolve(self.snapshot, asked), occupied=self.occupied, notes=self.notes)


def resolve(snapshot: Snapshot, group: PodGroup) -> PlacementProblem:
    """Returns the problem of a gang in a snapshot in which it holds nothing.

    If the request cannot be satisfied as stated, the problem has a `refusal`; nothing is raised.
    """
    try:
        asked = as_created(snapshot, group)
    except Refusal as refusal:
        asked = resolved_group(group)
        return PlacementProblem(snapshot, asked, asked).refused(refusal)
    notes = (*priority_notes(snapshot, group), *runtime_class_notes(snapshot, group))
    return _problem(snapshot, asked).noting(*notes)


def _problem(snapshot: Snapshot, asked: ResolvedPodGroup) -> PlacementProblem:
    """Returns the problem after the stages that follow the device claims."""
    gang = asked
    if has_claims(asked):
        gang = in_one_clique(snapshot.base.devices, snapshot.topologies, asked)
    gang = by_policy(snapshot, gang)
    try:
        gang = with_shared_claims(snapshot, with_volumes(snapshot, gang))
        requests = _requests(snapshot, gang)
        return PlacementProblem(snapshot, asked, gang, requests, looser=_looser(snapshot, gang, requests))
    except Refusal as refusal:
        return PlacementProblem(snapshot, asked, gang).refused(refusal)


def _looser(
    snapshot: Snapshot, gang: ResolvedPodGroup, requests: tuple[TopologyRequest, ...]
) -> tuple[tuple[TopologyRequest, ...], ...]:
    """Returns the requests in other forms of affinity, without those that are the same as `requests`."""
    if not any(term.attracts for pod_set in gang.pod_sets for term in pod_set.shape.terms):
        return ()
    forms: tuple[AffinityForm, ...] = ("gang first", "scattered")
    looser = (_requests(snapshot, gang, form) for form in forms)
    return tuple([other for other in looser if other != requests])


def _requests(
    snapshot: Snapshot, gang: ResolvedPodGroup, form: AffinityForm = "bound first"
) -> tuple[TopologyRequest, ...]:
    """Returns the request in each topology that the gang may use. Raises `Refusal`."""
    settled = _with_cluster_constraints(snapshot, gang, form)
    check(gang)
    rules = {
        key
        for pod_set in settled.pod_sets
        for key in (*pod_set.shape.anti_affinity, *dict(pod_set.shape.anti_affinity_with))
    }
    base = snapshot.base
    # A gang without levels may also be placed on nodes of several topologies (`search.place`).
    trees = base.wide_trees if rules and not gang.constraint else base.trees
    return tuple(
        [
            topology_request(settled, topology, [key for key in rules if trees[topology.name].repeats(key)])
            for topology in candidates(snapshot, gang)
        ]
    )


def _with_cluster_constraints(
    snapshot: Snapshot, gang: ResolvedPodGroup, form: AffinityForm
) -> ResolvedPodGroup:
    """Returns the gang with the constraints that follow from other pods and NUMA nodes, and without NUMA
    alignment if no kubelet in the cluster enforces it.

    PodSets that differ only in their alignment then become one pod class, which makes the search smaller.
    """
    gang = with_topology_spread(snapshot, with_pod_affinity(snapshot, gang, form))
    gang = with_numa_nodes(gang, snapshot.nodes, snapshot.base.numa)
    if snapshot.base.aligns or not any(pod_set.shape.alignment for pod_set in gang.pod_sets):
        return gang
    return replace(gang, pod_sets=tuple(_unaligned(pod_set) for pod_set in gang.pod_sets))


def _unaligned(pod_set: ResolvedPodSet) -> ResolvedPodSet:
    return replace(pod_set, shape=replace(pod_set.shape, alignment=None))
