"""What of a pod matters to the planner: requests, NUMA alignment, where it may go, and beside which pods; and
the pods that are bound to a node.

Sources: core/v1 PodAffinityTerm and kube-scheduler's InterPodAffinity. A term means the pods that its
labelSelector selects (none where it has no selector) in its namespaces: the pod's own where neither
`namespaces` nor `namespaceSelector` says otherwise. A namespace whose labels are not known is meant by every
selector, unless that is over `kubernetes.io/metadata.name` alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from planner.model.labels import Term, Toleration, holds
from planner.model.resources import CLAIMED_GPU, GPU_RESOURCES, MIG_PREFIX, Resources


@dataclass(frozen=True, slots=True)
class ClaimUse:
    """A claim that a pod names: a template's name, or a ResourceClaim's (`template` False).

    `made`: the ResourceClaim that was made from the template for this very pod, "" where none is known.
    """

    source: str
    template: bool
    made: str = ""


@dataclass(frozen=True, slots=True)
class AlignedRequest:
    """What is aligned in one go: a container's request, or the pod's. `stays`: it keeps what it gets."""

    name: str = field(compare=False)
    requests: Resources = field(hash=False)
    stays: bool = True


@dataclass(frozen=True, slots=True)
class Alignment:
    """A pod as the Topology Manager sees it, under either of its scopes; who asks for nothing is left out.

    `key` stands for all of it in keys of what is remembered.
    """

    containers: tuple[AlignedRequest, ...] = ()
    pod: tuple[AlignedRequest, ...] = ()

    def asks(self, scope: str) -> tuple[AlignedRequest, ...]:
        """What is aligned one after the other under the scope "container" or "pod"."""
        return self.pod if scope == "pod" else self.containers

    @property
    def key(self) -> tuple[tuple[bool, tuple[tuple[str, int], ...]], ...]:
        """All that tells two alignments apart, hashable."""
        return tuple(
            (ask.stays, tuple(sorted(ask.requests.items()))) for ask in (*self.containers, *self.pod)
        )

    def __bool__(self) -> bool:
        return bool(self.containers or self.pod)


NOTHING = Alignment()


def assumed(requests: Resources) -> Alignment:
    """The alignment of a pod of which only the sum is known: its devices, in one container."""
    devices = {name: amount for name, amount in requests.items() if "/" in name and amount > 0}
    asks = (AlignedRequest("", devices),) if devices else ()
    return Alignment(asks, asks)


@dataclass(frozen=True, slots=True)
class PodTerm:
    """A required term of pod affinity (`attracts`) or anti-affinity over a node label's values.

    It means the pods for which every requirement of `selector` holds, in the namespaces `spaces` (none of
    them: in the pod's own), or in `every` one besides, whose labels meet `among`.
    """

    key: str
    selector: Term = ()
    spaces: tuple[str, ...] = ()
    every: bool = False
    attracts: bool = False
    among: Term = ()


@dataclass(frozen=True, slots=True)
class SpreadConstraint:
    """An entry of `topologySpreadConstraints` that is hard (`DoNotSchedule`), as core/v1 has it.

    No domain of the label `key` has more than `skew` of the pods that `selector` means (in the pod's own
    namespace) above the domain with the fewest; that counts as zero where there are fewer domains than
    `least`. Domains are those of nodes that the pod's selectors let it be on (`by_affinity`), and whose
    taints it tolerates (`by_taints`).
    """

    key: str
    skew: int
    selector: Term = ()
    least: int = 1
    by_affinity: bool = True
    by_taints: bool = False


@dataclass(frozen=True, slots=True)
class PodShape:
    """What the scheduler looks at in a pod, and nothing else.

    `requests`: the effective request (init containers, sidecars and overhead counted, facts of the kubelet),
    in base units, with `pods: 1`. `affinity`: the required node affinity as terms that are ORed; `()` is no
    constraint. `preferences`: the preferred terms with their weights (1 to 100). `anti_affinity`: topology
    keys over which pods of the same PodSet must differ (required pod anti-affinity that selects the pod's
    own labels). `priority` as the pod states it. `alignment`: what the kubelet aligns to NUMA zones; None
    where only the sum is known. `labels` and `terms`: the pod's own labels and its required pod affinity and
    anti-affinity, and `spread` its hard spread constraints; by themselves they tell no two shapes apart.
    `claims`: the device claims that it names.

    All of it is as read; what it comes to in a cluster is a `ResolvedShape` (planner.model.resolved).
    """

    requests: Resources = field(default_factory=dict)
    node_selector: Mapping[str, str] = field(default_factory=dict)
    affinity: tuple[Term, ...] = ()
    preferences: tuple[tuple[int, Term], ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    anti_affinity: tuple[str, ...] = ()
    priority: int = 0
    alignment: Alignment | None = None
    labels: Mapping[str, str] = field(default_factory=dict, compare=False)
    terms: tuple[PodTerm, ...] = field(default=(), compare=False)
    spread: tuple[SpreadConstraint, ...] = field(default=(), compare=False)
    claims: tuple[ClaimUse, ...] = ()

    @property
    def gpus(self) -> int:
        """Whole GPUs that one pod asks for, whatever the maker; claimed ones too, once they are known."""
        return sum(self.requests.get(name, 0) for name in (*GPU_RESOURCES, CLAIMED_GPU))

    @property
    def mig_slices(self) -> dict[str, int]:
        """MIG slices that one pod asks for, by profile ("1g.10gb")."""
        return {
            name.removeprefix(MIG_PREFIX): count
            for name, count in self.requests.items()
            if name.startswith(MIG_PREFIX) and count > 0
        }


NAMESPACE_NAME_LABEL = "kubernetes.io/metadata.name"


Spaces = Mapping[str, Mapping[str, str]]
"""By name the labels of namespaces, of those that are known."""


def means(term: PodTerm, own: str, space: str, labels: Mapping[str, str], known: Spaces) -> bool:
    """Whether a term of a pod in namespace `own` means a pod with these labels in namespace `space`."""
    if space not in (term.spaces or (() if term.every else (own,))):
        if not term.every:
            return False
        if space in known and not selected(term.among, {NAMESPACE_NAME_LABEL: space, **known[space]}):
            return False
    return selected(term.selector, labels)


def selected(selector: Term, labels: Mapping[str, str]) -> bool:
    """Whether every requirement of a selector holds for these labels."""
    return all(holds(requirement, labels.get(requirement.key)) for requirement in selector)


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
    """The GPUs that it shares with other pods, by KAI's names for them (planner.sharing)."""
    claims: tuple[ClaimUse, ...] = ()
    """The device claims that it names, whose devices are not among its requests."""
    extended_claim: str = ""
    """The claim that the scheduler made for its extended resources, "" for none."""
    scheduling_group: str = ""
    """The PodGroup of Kubernetes' own that it belongs to (`spec.schedulingGroup`), "" for none."""
    scheduler: str = ""
    """Its scheduler, where it belongs to such a group."""
