"""The fields of a pod that the planner reads: requests, NUMA alignment, node constraints, pod affinity,
device claims and volume claims; and the pods that are bound to a node.

Sources: core/v1 PodAffinityTerm and kube-scheduler's InterPodAffinity. A term matches the pods that its
labelSelector selects (none without a selector) in its namespaces: the pod's own if neither `namespaces` nor
`namespaceSelector` is set. A namespace with unknown labels matches every namespaceSelector, unless the
selector only reads `kubernetes.io/metadata.name`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

from planner.model.labels import Term, Toleration, holds
from planner.model.resources import MIG_PREFIX, PART_PREFIXES, WHOLE_GPUS, Resources


@dataclass(frozen=True, slots=True)
class ClaimUse:
    """A device claim of a pod. `source`: the name of a ResourceClaimTemplate, or (`template` False) of a
    ResourceClaim.

    `resource_claim`: the ResourceClaim that was created from the template for this pod, "" if not known.
    """

    source: str
    template: bool
    resource_claim: str = ""


@dataclass(frozen=True, slots=True)
class VolumeClaim:
    """A PersistentVolumeClaim, or a template for one (`name` "").

    `name`: NAMESPACE/NAME. `storage_class`: None for the cluster's default. `volume`: the PersistentVolume
    that the claim names; `bound`: whether the two are bound. `size`: bytes. `modes`: the access modes;
    `mode`: the volume mode. `selector`: labels that the volume must have. `node`: the node for which a volume
    is being provisioned (the annotation `volume.kubernetes.io/selected-node`), "" for none.
    """

    name: str = ""
    storage_class: str | None = None
    volume: str = ""
    bound: bool = False
    size: int = 0
    modes: frozenset[str] = frozenset()
    mode: str = "Filesystem"
    selector: Term = ()
    node: str = ""


@dataclass(frozen=True, slots=True)
class VolumeUse:
    """A volume claim that a pod mounts: the one named `claim`, or one that is created for each pod (`own`).

    `stateful_set`: the pods of this StatefulSet mount the claims CLAIM-STATEFULSET-ORDINAL, with ordinals
    from `first` on; a claim that does not exist yet is created from `own`.
    """

    claim: str
    own: VolumeClaim | None = None
    stateful_set: str = ""
    first: int = 0


@dataclass(frozen=True, slots=True)
class ContainerRequest:
    """What a container, or the pod as a whole, requests, in base units.

    `stays`: the amounts are held for the pod's lifetime. False for an init container that is no sidecar: the
    containers after it use the same amounts again.
    """

    name: str = field(compare=False)
    requests: Resources = field(hash=False)
    stays: bool = True


@dataclass(frozen=True, slots=True)
class Alignment:
    """The requests that the Topology Manager aligns with scope `container` or `pod`, without empty ones."""

    containers: tuple[ContainerRequest, ...] = ()
    pod: tuple[ContainerRequest, ...] = ()

    def asks(self, scope: str) -> tuple[ContainerRequest, ...]:
        """Returns the requests that are aligned one after the other under the scope "container" or "pod"."""
        return self.pod if scope == "pod" else self.containers

    def limited(self, limits: Resources, scope: str) -> Alignment:
        """Returns the alignment with at most these amounts in each container; under the scope "pod", also in
        the whole pod.
        """
        containers = tuple(_limited(ask, limits) for ask in self.containers)
        pod = tuple(_limited(ask, limits) for ask in self.pod) if scope == "pod" else as_one(containers)
        return Alignment(containers, pod)

    @property
    def key(self) -> tuple[tuple[bool, tuple[tuple[str, int], ...]], ...]:
        """A hashable value for cache keys; equal alignments have equal keys."""
        return tuple(
            (ask.stays, tuple(sorted(ask.requests.items()))) for ask in (*self.containers, *self.pod)
        )

    def __bool__(self) -> bool:
        return bool(self.containers or self.pod)


NOTHING = Alignment()
"""The alignment of a pod for which the kubelet aligns nothing."""


def as_one(containers: Sequence[ContainerRequest]) -> tuple[ContainerRequest, ...]:
    """Returns what is aligned for the containers of a pod under the scope `pod`: one request, or none.

    `containers`: in the order in which they start.
    """
    return (ContainerRequest("", peak_request(containers)),) if containers else ()


def peak_request(containers: Iterable[ContainerRequest]) -> dict[str, int]:
    """Returns what a pod requests by the kubelet's rule: of each resource the most that its containers use at
    once. An init container uses what later ones use again; while it runs, the sidecars before it run too.

    `containers`: in the order in which they start.
    """
    lasting: dict[str, int] = {}
    peak: dict[str, int] = {}
    for ask in containers:
        for name, amount in ask.requests.items():
            together = lasting.get(name, 0) + amount
            peak[name] = max(peak.get(name, 0), together)
            if ask.stays:
                lasting[name] = together
    return peak


def _limited(ask: ContainerRequest, limits: Resources) -> ContainerRequest:
    return replace(ask, requests={name: min(n, limits.get(name, n)) for name, n in ask.requests.items()})


def assumed(requests: Resources) -> Alignment:
    """Returns the alignment of a pod whose containers are not known: its devices, as if of one container."""
    devices = {name: amount for name, amount in requests.items() if "/" in name and amount > 0}
    asks = (ContainerRequest("", devices),) if devices else ()
    return Alignment(asks, asks)


@dataclass(frozen=True, slots=True)
class PodTerm:
    """A required term of pod affinity (`attracts`) or anti-affinity; `key` is the term's topologyKey.

    The term matches pods that meet all requirements of `selector`, in the namespaces `spaces`; if these are
    empty and `every` is False, in the namespace of the pod that has the term. With `every`, it also matches
    pods in each namespace whose labels meet `among` (`namespaceSelector`).
    """

    key: str
    selector: Term = ()
    spaces: tuple[str, ...] = ()
    every: bool = False
    attracts: bool = False
    among: Term = ()


@dataclass(frozen=True, slots=True)
class SpreadConstraint:
    """An entry of `topologySpreadConstraints` with `whenUnsatisfiable: DoNotSchedule`, as in core/v1.

    The number of pods that match `selector` (in the pod's own namespace) may be at most `skew` larger in a
    domain of the label `key` than in the domain with the fewest. If there are fewer than `min_domains`
    domains, the fewest counts as zero. A node belongs to a domain only if the pod's node selector and
    affinity allow it (`by_affinity`) and the pod tolerates its taints (`by_taints`).
    """

    key: str
    skew: int
    selector: Term = ()
    min_domains: int = 1
    by_affinity: bool = True
    by_taints: bool = False


@dataclass(frozen=True, slots=True)
class PodShape:
    """The fields of a pod that affect where it can be placed, and a few for messages.

    `requests`: the effective request (with init containers, sidecars and overhead, by the kubelet's rule), in
    base units, with `pods: 1`. `affinity`: the required node affinity as terms that are ORed; `()` is no
    constraint. `preferences`: the preferred terms with their weights (1 to 100). `anti_affinity`: topology
    keys whose domains may hold only one pod of the PodSet each (required pod anti-affinity that selects the
    pod's own labels). `alignment`: what the kubelet aligns to NUMA zones; None if only `requests` is known.
    `labels` and `terms`: the pod's labels and its required pod affinity and anti-affinity; `spread`: its
    hard spread constraints; `priority_class`: the PriorityClass that it names, "" for none;
    `stated_priority`: its `spec.priority`, which is only used for a warning. `gates`: the scheduling gates
    in its spec. `claims`: the device claims that it names. `volumes`: the volume claims that it mounts.
    `runtime_class`: the RuntimeClass that it names, "" for none; `overhead`: the class's part of `requests`.
    `containers`: what each requests, since a LimitRange may add to it; empty if the pod level states amounts.

    The fields are as read from the manifest; `ResolvedShape` (planner.model.resolved) adds what they mean in
    one cluster. Fields with `compare=False` do not make two shapes different: they have no effect on the
    search, or only by the fields that `ResolvedShape` adds.
    """

    requests: Resources = field(default_factory=dict)
    node_selector: Mapping[str, str] = field(default_factory=dict)
    affinity: tuple[Term, ...] = ()
    preferences: tuple[tuple[int, Term], ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    anti_affinity: tuple[str, ...] = ()
    alignment: Alignment | None = None
    labels: Mapping[str, str] = field(default_factory=dict, compare=False)
    terms: tuple[PodTerm, ...] = field(default=(), compare=False)
    spread: tuple[SpreadConstraint, ...] = field(default=(), compare=False)
    priority_class: str = field(default="", compare=False)
    stated_priority: int | None = field(default=None, compare=False)
    gates: tuple[str, ...] = field(default=(), compare=False)
    claims: tuple[ClaimUse, ...] = ()
    volumes: tuple[VolumeUse, ...] = ()
    runtime_class: str = ""
    overhead: Resources = field(default_factory=dict, compare=False)
    containers: tuple[ContainerRequest, ...] = field(default=(), compare=False)
    stated: Resources | None = field(default=None, compare=False)
    """The requests before policies raised some of them, for messages; None if no policy did."""

    def requesting_also(self, added: Resources) -> Self:
        """Returns the shape with these amounts added to its requests, and to those before policies."""

        def complete(amounts: Resources) -> Resources:
            return {**amounts, **{name: amounts.get(name, 0) + amount for name, amount in added.items()}}

        stated = None if self.stated is None else complete(self.stated)
        return replace(self, requests=complete(self.requests), stated=stated)

    @property
    def requests_without_overhead(self) -> Resources:
        """The requests of the containers or of the pod as a whole, which a pod template states too."""
        left = {name: amount - self.overhead.get(name, 0) for name, amount in self.requests.items()}
        return {name: amount for name, amount in left.items() if amount or name not in self.overhead}

    @property
    def own_requests(self) -> Resources:
        """The requests that the author of the manifest stated, before policies raised any, without zeros."""
        return {name: amount for name, amount in {**self.requests, **self.raised}.items() if amount}

    @property
    def raised(self) -> dict[str, int]:
        """The amounts before policies raised them, by resource; only resources whose amount was raised."""
        stated = self.requests if self.stated is None else self.stated
        return {
            name: stated.get(name, 0) for name, need in self.requests.items() if need > stated.get(name, 0)
        }

    @property
    def gpus(self) -> int:
        """Whole GPUs of all vendors that one pod requests; in a resolved shape, claimed GPUs too."""
        return sum(count for name, count in self.requests.items() if name in WHOLE_GPUS)

    @property
    def mig_slices(self) -> dict[str, int]:
        """The number of MIG devices that one pod requests, by profile ("1g.10gb")."""
        return {
            name.removeprefix(MIG_PREFIX): count
            for name, count in self.requests.items()
            if name.startswith(MIG_PREFIX) and count > 0
        }

    @property
    def takes_parts(self) -> bool:
        """Whether the pod requests a part of a GPU: a MIG device, a time slice or a fraction."""
        return any(name.startswith(PART_PREFIXES) for name, count in self.requests.items() if count > 0)


NAMESPACE_NAME_LABEL = "kubernetes.io/metadata.name"
"""The label with the name of the Namespace, which the API server sets on every Namespace."""


Spaces = Mapping[str, Mapping[str, str]]
"""The labels of each known namespace, by the namespace's name."""


def term_matches(
    term: PodTerm, pod_space: str, space: str, labels: Mapping[str, str], spaces: Spaces
) -> bool:
    """Reports whether a term of a pod in namespace `pod_space` matches a pod in `space` with these labels."""
    if space not in (term.spaces or (() if term.every else (pod_space,))):
        if not term.every:
            return False
        if space in spaces and not selected(term.among, {NAMESPACE_NAME_LABEL: space, **spaces[space]}):
            return False
    return selected(term.selector, labels)


def selected(selector: Term, labels: Mapping[str, str]) -> bool:
    """Reports whether these labels meet every requirement of a selector."""
    return all(holds(requirement, labels.get(requirement.key)) for requirement in selector)


@dataclass(frozen=True, slots=True)
class NodeSelection:
    """The node selector and tolerations of a stored pod that Kueue manages. When Kueue admits the pod, it
    adds those of the ResourceFlavor to the pod only, so they cannot be read from the pod template."""

    node_selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: tuple[Toleration, ...] = ()


DEFAULT_SCHEDULER = "default-scheduler"
"""The scheduler of a pod without `schedulerName`."""


@dataclass(frozen=True, slots=True)
class BoundPod:
    """A pod that uses capacity on a node: NAMESPACE/NAME, its node, its effective request.

    `reservation`: the id (annotation `bayplan.dev/reservation`) of the reservation that already accounts for
    the pod, several separated by commas, "" for none. `daemon`: a DaemonSet's pod; a domain with no other
    pods still counts as empty. `alignment`: what the kubelet aligned for the pod; None if only `requests` is
    known. `terms`: its required anti-affinity, which also keeps new pods away from it.
    """

    name: str
    node: str
    requests: Resources
    reservation: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    daemon: bool = False
    alignment: Alignment | None = None
    terms: tuple[PodTerm, ...] = ()
    terminating: bool = False
    """Whether the pod is being deleted. Until it has ended, it uses its node and keeps its pod affinity and
    anti-affinity, but kube-scheduler no longer counts it for topology spread."""
    gpu_groups: tuple[str, ...] = ()
    """The GPUs of which the pod has a share, by KAI's names for them (planner.manifests.pods.gpu_sharing)."""
    claims: tuple[ClaimUse, ...] = ()
    """The device claims that the pod names; `requests` does not contain their devices."""
    extended_claim: str = ""
    """The ResourceClaim that the scheduler created for the pod's extended resources, "" for none."""
    scheduling_group: str = ""
    """The Kubernetes PodGroup that the pod belongs to (`spec.schedulingGroup`), "" for none."""
    scheduler: str = ""
    """The pod's scheduler if the pod has a `scheduling_group`, else ""."""
    shows: tuple[str, ...] = ()
    """Schedulers that must be in the cluster because of this pod: the one that bound it, unless it is the
    default scheduler, and those that the pod runs."""
    selection: NodeSelection | None = None
    """The pod's node selector and tolerations if Kueue manages the pod, else None."""
    volume_claims: tuple[str, ...] = ()
    """The PersistentVolumeClaims of its namespace that the pod mounts, by name."""
