"""What is asked for: a PodGroup of PodSets, each with the shape of its pods and its topology constraint."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from planner.alignment import Alignment
from planner.bundles import Bundle, StandIn
from planner.claims import ClaimUse
from planner.quantity import Resources

ReserveMode = Literal["domain", "nodes", "none"]
OnUnavailable = Literal["queue", "reject", "admit"]
FabricStrategy = Literal["", "consolidated", "distributed", "balanced"]

GPU_RESOURCES = ("nvidia.com/gpu", "amd.com/gpu", "gpu.intel.com/i915", "gpu.intel.com/xe", "habana.ai/gaudi")
MIG_PREFIX = "nvidia.com/mig-"
CLAIMED_GPU = "gpu.nvidia.com"
"""What a whole GPU is called that is asked for by claim (planner.devices)."""


@dataclass(frozen=True, slots=True)
class Toleration:
    """A pod's toleration; an empty key with `Exists` tolerates everything, an empty effect every effect."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""


@dataclass(frozen=True, slots=True)
class Requirement:
    """One `matchExpressions` or `matchFields` entry: In, NotIn, Exists, DoesNotExist, Gt, Lt."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


Term = tuple[Requirement, ...]
"""Requirements that must all hold (ANDed)."""


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
class Bar:
    """Nodes that other pods keep a pod from: those with one of these values of the label, or (`inside`) all
    but those. `now`: because of pods that are there now. A `metadata.name` key looks at the node's name.
    """

    key: str
    values: frozenset[str]
    cause: str
    inside: bool = False
    now: bool = True


@dataclass(frozen=True, slots=True)
class Spread:
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
class Spreading:
    """What a `Spread` comes to in one snapshot for a PodSet that must keep it (`keeps`), or whose pods count
    in another's (`counted`). `there`: by domain the pods that count and are there already, `nodes` by node
    where there are any; `values`: the nodes that it is about with their domains."""

    spread: Spread
    there: Mapping[str, int]
    keeps: bool
    counted: bool
    nodes: Mapping[str, int]
    values: Mapping[str, str] = field(compare=False)


@dataclass(frozen=True, slots=True)
class PodShape:
    """What the scheduler looks at in a pod, and nothing else.

    `requests`: the effective request (init containers, sidecars and overhead counted, facts of the kubelet),
    in base units, with `pods: 1`. `affinity`: the required node affinity as terms that are ORed; `()` is no
    constraint. `preferences`: the preferred terms with their weights (1 to 100). `anti_affinity`: topology
    keys over which pods of the same PodSet must differ (required pod anti-affinity that selects the pod's
    own labels). `priority` as the pod states it. `alignment`: what the kubelet aligns to NUMA zones; None
    where only the sum is known. `labels` and `terms`: the pod's own labels and its required pod affinity and
    anti-affinity; by themselves they tell no two shapes apart.

    What these come to for a gang in one snapshot (planner.neighbours): `barred` nodes; for each key and
    PodSet in `shuns` that no pod of the one is in a domain of the key with one of the other; and for those in
    `together` that all of these PodSets' pods are in one domain of the key.
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
    barred: tuple[Bar, ...] = ()
    shuns: tuple[tuple[str, str], ...] = ()
    together: tuple[tuple[str, tuple[str, ...]], ...] = ()
    spread: tuple[Spread, ...] = field(default=(), compare=False)
    spreading: tuple[Spreading, ...] = ()
    """What `spread` comes to in one snapshot (planner.spread)."""
    claims: tuple[ClaimUse, ...] = ()
    """The device claims that it names; what they ask for is worked out where the cluster is known."""
    bunch: int = 0
    """So many of these pods must lie in one NVLink domain inside the host (planner.inside); 0 for none."""
    bundles: tuple[Bundle, ...] = ()
    """What these claims ask for, each of the devices that slices offer (planner.stock)."""
    stand_ins: tuple[StandIn, ...] = ()
    """Devices that serve its extended resources where no device plugin gives these."""

    @property
    def seat(self) -> dict[str, int]:
        """What a pod takes of its node: its requests, and its claims by name."""
        return {**self.requests, **Counter(bundle.name for bundle in self.bundles)}

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


@dataclass(frozen=True, slots=True)
class Constraint:
    """A topology request: levels are node-label keys (or a Topology's alias), "" where nothing is asked.

    `required` is never relaxed, `preferred` is tried first and then each coarser level up to the required
    one or the root. `slice_size` pods at a time stay within one domain of `slice_level`.
    """

    topology: str = ""
    required: str = ""
    preferred: str = ""
    slice_level: str = ""
    slice_size: int = 0

    def __bool__(self) -> bool:
        return any((self.topology, self.required, self.preferred, self.slice_level))


@dataclass(frozen=True, slots=True)
class FabricWish:
    """What nod-ai's leaf-spine interface asks for; any wish makes its rules hold (planner.leafspine).

    `domain`: a leaf or spine by name, soft. `gbps`: least bandwidth between nodes, gigabits a second, hard.
    `strategy` "" is balanced. `latency`: fewest hops first. `stated`: some key of that interface is there.
    """

    domain: str = ""
    gbps: float = 0.0
    strategy: FabricStrategy = ""
    latency: bool = False
    stated: bool = False

    def __bool__(self) -> bool:
        return bool(self.domain or self.gbps or self.strategy or self.latency or self.stated)


@dataclass(frozen=True, slots=True)
class PodSet:
    """`count` pods of one shape; `constraint` is this set's own, besides the gang's.

    `most`: an elastic set takes as many as fit, up to this number and at least `count`; 0 for a fixed number.
    """

    name: str
    count: int
    shape: PodShape
    constraint: Constraint = Constraint()
    most: int = 0


@dataclass(frozen=True, slots=True)
class PodGroup:
    """A gang: every pod of every PodSet is placed, or none.

    `name` is NAMESPACE/KIND/NAME (and `/INDEX` for one replica of a workload that is a gang per replica).
    `origins` says, for each topology key that the request read, the field it stood in, so that a refusal can
    name it: `((field, key, value), …)`. `warnings`: what reading the request already had to say.
    """

    name: str
    pod_sets: tuple[PodSet, ...]
    constraint: Constraint = Constraint()
    reserve: ReserveMode = "domain"
    on_unavailable: OnUnavailable = "queue"
    origins: tuple[tuple[str, str, str], ...] = ()
    warnings: tuple[str, ...] = ()
    fabric: FabricWish = FabricWish()
    policy: str = ""
    """The name of a policy of KAI's ConfigMap, which gives the gang a level where it states none."""
    balanced: bool = False
    """Over several domains, the same number of pods in each."""
    within: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """For each of these levels and PodSets: all pods of these PodSets are required in one domain of it."""
    presumed: bool = False
    """Nobody said what to reserve: `reserve` is what such a gang holds by default."""

    @property
    def wishes(self) -> bool:
        """Whether the gang asks for more than a constraint says (planner.wishes)."""
        elastic = any(pod_set.most > pod_set.count for pod_set in self.pod_sets)
        return bool(self.fabric or self.policy or self.balanced or elastic)

    @property
    def size(self) -> int:
        """Pods in the gang."""
        return sum(pod_set.count for pod_set in self.pod_sets)

    @property
    def gpus(self) -> int:
        """Whole GPUs that the gang asks for."""
        return sum(pod_set.count * pod_set.shape.gpus for pod_set in self.pod_sets)
