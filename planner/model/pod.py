"""The parts of a pod that the planner reads: requests, NUMA alignment, node constraints, pod affinity, claims
of devices and volumes; and the pods that are bound to a node.

Sources: core/v1 PodAffinityTerm and kube-scheduler's InterPodAffinity. A term matches the pods that its
labelSelector selects (none without a selector) in its namespaces: the pod's own where neither `namespaces`
nor `namespaceSelector` is set. A namespace with unknown labels matches every selector, unless that only reads
`kubernetes.io/metadata.name`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from planner.model.labels import Term, Toleration, holds
from planner.model.resources import MIG_PREFIX, PART_PREFIXES, WHOLE_GPUS, Resources


@dataclass(frozen=True, slots=True)
class ClaimUse:
    """A claim that a pod names: a template's name, or a ResourceClaim's (`template` False).

    `resource_claim`: the one that was made from the template for this very pod, "" where none is known.
    """

    source: str
    template: bool
    resource_claim: str = ""


@dataclass(frozen=True, slots=True)
class VolumeClaim:
    """A PersistentVolumeClaim, or what a template asks for (`name` "").

    `name`: NAMESPACE/NAME. `storage_class`: None for the cluster's default. `volume`: the PersistentVolume
    that it names; `bound`: the two are bound. `selector`: labels that its volume must have. `node`: where a
    volume is being made for it, "" for nowhere yet.
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
    """A claim that a pod mounts: `claim` by name, or, with `own`, one that is made for each pod.

    `stateful_set`: the pods of this StatefulSet have claims CLAIM-STATEFULSET-ORDINAL, from `first` on, each
    made as `own` says where it does not exist yet.
    """

    claim: str
    own: VolumeClaim | None = None
    stateful_set: str = ""
    first: int = 0


@dataclass(frozen=True, slots=True)
class AlignedRequest:
    """Amounts that are aligned together: a container's request, or the pod's.

    `stays`: held for the pod's lifetime.
    """

    name: str = field(compare=False)
    requests: Resources = field(hash=False)
    stays: bool = True


@dataclass(frozen=True, slots=True)
class Alignment:
    """A pod's requests as the Topology Manager sees them, under either scope; empty requests are left out.

    `key` identifies the content in cache keys.
    """

    containers: tuple[AlignedRequest, ...] = ()
    pod: tuple[AlignedRequest, ...] = ()

    def asks(self, scope: str) -> tuple[AlignedRequest, ...]:
        """The requests that are aligned one after the other under the scope "container" or "pod"."""
        return self.pod if scope == "pod" else self.containers

    @property
    def key(self) -> tuple[tuple[bool, tuple[tuple[str, int], ...]], ...]:
        """Hashable; equal for equal alignments."""
        return tuple(
            (ask.stays, tuple(sorted(ask.requests.items()))) for ask in (*self.containers, *self.pod)
        )

    def __bool__(self) -> bool:
        return bool(self.containers or self.pod)


NOTHING = Alignment()


def assumed(requests: Resources) -> Alignment:
    """The alignment of a pod of which only the sum is known: its devices, as one container."""
    devices = {name: amount for name, amount in requests.items() if "/" in name and amount > 0}
    asks = (AlignedRequest("", devices),) if devices else ()
    return Alignment(asks, asks)


@dataclass(frozen=True, slots=True)
class PodTerm:
    """A required term of pod affinity (`attracts`) or anti-affinity over a node label's values.

    It matches pods that meet all requirements of `selector`, in the namespaces `spaces` (none: the pod's
    own). With `every`, pods in all namespaces with labels that meet `among` match too.
    """

    key: str
    selector: Term = ()
    spaces: tuple[str, ...] = ()
    every: bool = False
    attracts: bool = False
    among: Term = ()


@dataclass(frozen=True, slots=True)
class SpreadConstraint:
    """A hard entry of `topologySpreadConstraints` (`DoNotSchedule`), as in core/v1.

    In no domain of the label `key` may the number of pods that match `selector` (in the pod's own namespace)
    exceed that of the emptiest domain by more than `skew`. With fewer domains than `min_domains` the emptiest
    counts as zero. Domains are those of nodes that the pod's selectors allow (`by_affinity`) and that have
    only taints it tolerates (`by_taints`).
    """

    key: str
    skew: int
    selector: Term = ()
    min_domains: int = 1
    by_affinity: bool = True
    by_taints: bool = False


@dataclass(frozen=True, slots=True)
class PodShape:
    """All fields of a pod that the scheduler reads.

    `requests`: the effective request (with init containers, sidecars and overhead, by the kubelet's rule), in
    base units, with `pods: 1`. `affinity`: the required node affinity as terms that are ORed; `()` is no
    constraint. `preferences`: the preferred terms with their weights (1 to 100). `anti_affinity`: topology
    keys over which pods of the same PodSet must differ (required pod anti-affinity that selects the pod's own
    labels). `alignment`: what the kubelet aligns to NUMA zones; None where only the sum is known.
    `labels` and `terms`: the pod's labels and its required pod affinity and anti-affinity; `spread`: its
    hard spread constraints; `priority_class`: the PriorityClass that it names, "" for none;
    `stated_priority`: the number that it states itself, which counts for nothing. `gates`: the
    scheduling gates that it has from the start. These six do not make two shapes different.
    `claims`: the device claims that it names. `volumes`: the volume claims that it mounts.

    All of it is as read; `ResolvedShape` (planner.model.resolved) adds its meaning in a cluster.
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
    stated: Resources | None = field(default=None, compare=False)
    """What the pod's author asked for, where policies have raised some of `requests` since; for messages."""

    @property
    def own_requests(self) -> Resources:
        """The requests as the pod's author stated them, as far as policies raised them."""
        return {name: amount for name, amount in {**self.requests, **self.raised}.items() if amount}

    @property
    def raised(self) -> dict[str, int]:
        """By resource that policies have raised: what the pod's author asked for."""
        stated = self.requests if self.stated is None else self.stated
        return {
            name: stated.get(name, 0) for name, need in self.requests.items() if need > stated.get(name, 0)
        }

    @property
    def gpus(self) -> int:
        """Whole GPUs of all vendors that one pod requests; claimed GPUs too, once resolved."""
        return sum(count for name, count in self.requests.items() if name in WHOLE_GPUS)

    @property
    def mig_slices(self) -> dict[str, int]:
        """MIG slices that one pod asks for, by profile ("1g.10gb")."""
        return {
            name.removeprefix(MIG_PREFIX): count
            for name, count in self.requests.items()
            if name.startswith(MIG_PREFIX) and count > 0
        }

    @property
    def takes_parts(self) -> bool:
        """Whether one pod asks for a part of a GPU: a MIG slice, a time slice or a fraction."""
        return any(name.startswith(PART_PREFIXES) for name, count in self.requests.items() if count > 0)


NAMESPACE_NAME_LABEL = "kubernetes.io/metadata.name"
"""Every Namespace carries its own name under this label; the API server sees to it."""


Spaces = Mapping[str, Mapping[str, str]]
"""By name the labels of namespaces, of those that are known."""


def means(term: PodTerm, pod_space: str, space: str, labels: Mapping[str, str], spaces: Spaces) -> bool:
    """Whether a term of a pod in namespace `pod_space` matches a pod with these labels in `space`."""
    if space not in (term.spaces or (() if term.every else (pod_space,))):
        if not term.every:
            return False
        if space in spaces and not selected(term.among, {NAMESPACE_NAME_LABEL: space, **spaces[space]}):
            return False
    return selected(term.selector, labels)


def selected(selector: Term, labels: Mapping[str, str]) -> bool:
    """Whether every requirement of a selector holds for these labels."""
    return all(holds(requirement, labels.get(requirement.key)) for requirement in selector)


@dataclass(frozen=True, slots=True)
class NodeSelection:
    """Which nodes a stored pod may be on, besides its affinity. Kueue adds the labels and tolerations of the
    flavor in which it admits a pod to the pod alone; the template never tells them."""

    node_selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: tuple[Toleration, ...] = ()


DEFAULT_SCHEDULER = "default-scheduler"
"""The scheduler of a pod that names none."""


@dataclass(frozen=True, slots=True)
class BoundPod:
    """A pod that uses capacity on a node: NAMESPACE/NAME, its node, its effective request.

    `reservation` is the id (annotation `bayplan.dev/reservation`) of the gang's reservation that already
    accounts for it, "" for a pod of somebody else. `daemon`: a DaemonSet's pod, which every node has and
    which therefore opens no pristine domain. `alignment`: what the kubelet aligned for it; None where only
    the sum is known. `terms`: its required anti-affinity, which keeps others away too.
    """

    name: str
    node: str
    requests: Resources
    reservation: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    daemon: bool = False
    alignment: Alignment | None = None
    terms: tuple[PodTerm, ...] = ()
    gpu_groups: tuple[str, ...] = ()
    """The GPUs that the pod shares with others, by KAI's names (`planner.manifests.pods.gpu_sharing`)."""
    claims: tuple[ClaimUse, ...] = ()
    """The device claims that it names, whose devices are not among its requests."""
    extended_claim: str = ""
    """The claim that the scheduler made for its extended resources, "" for none."""
    scheduling_group: str = ""
    """The PodGroup of Kubernetes' own that it belongs to (`spec.schedulingGroup`), "" for none."""
    scheduler: str = ""
    """Its scheduler, where it belongs to such a group."""
    shows: tuple[str, ...] = ()
    """Schedulers that are in the cluster by its witness: the one that bound it, the one that it runs."""
    selection: NodeSelection | None = None
    """Which nodes it may be on, where Kueue gates it; None for all other pods."""
