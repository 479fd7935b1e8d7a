"""The request: a PodGroup (a gang) of PodSets, each with the shape of its pods and a topology constraint."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from planner.model.names import dotted
from planner.model.pod import PodShape

HoldMode = Literal["domain", "nodes", "none"]
"""What a gang holds: whole domains, only the capacity that it uses (`nodes`), or nothing."""


ReserveMode = Literal["auto", HoldMode]
"""What a gang requests to hold. `auto`: planner.extensions.holding chooses between `domain` and `nodes`."""


WHOLE_FROM = 0.5
"""Under `auto`, a gang holds a domain whole if it takes at least this share of the domain's GPUs."""


OnUnavailable = Literal["queue", "reject", "admit"]
"""What happens to a gang that does not fit now (annotation `bayplan.dev/on-unavailable`)."""


FabricStrategy = Literal["", "consolidated", "distributed", "balanced"]
"""How nod-ai's leaf-spine scheduler spreads a gang over leaves; "" means balanced."""


@dataclass(frozen=True, slots=True)
class Constraint:
    """A topology request: levels are node-label keys (or aliases that a Topology defines), "" for none.

    `required` is never relaxed. `preferred` is tried first, then each coarser level up to the required one or
    the root. Groups of `slice_size` pods each stay within one domain of `slice_level`. `segments`: the groups
    are KAI's segments: the last one may be shorter, and the leader's pod may count in the first one.
    """

    topology: str = ""
    required: str = ""
    preferred: str = ""
    slice_level: str = ""
    slice_size: int = 0
    segments: bool = False

    def __bool__(self) -> bool:
        return any((self.topology, self.required, self.preferred, self.slice_level))


@dataclass(frozen=True, slots=True)
class FabricWish:
    """A request with the keys of nod-ai's leaf-spine scheduler; any of them activates planner.leafspine.

    `domain`: the preferred leaf or spine, by name. `gbps`: the required bandwidth between nodes, in Gb/s.
    `strategy`: "" means balanced. `latency`: prefer the fewest hops. `stated`: some key of that scheduler is
    present.
    """

    domain: str = ""
    gbps: float = 0.0
    strategy: FabricStrategy = ""
    latency: bool = False
    stated: bool = False

    def __bool__(self) -> bool:
        return bool(self.domain or self.gbps or self.strategy or self.latency or self.stated)


@dataclass(frozen=True, slots=True)
class CountField:
    """The field of an object that states how many pods a PodSet has: messages name it, because its number is
    often not that of the pods.

    `path`: its map keys and list indexes; () if no single field states it. `pods`: the number of pods for
    each unit of the field. `whole_gang`: the field counts all pods of the gang.
    """

    path: tuple[str | int, ...] = ()
    pods: int = 1
    whole_gang: bool = False

    @property
    def name(self) -> str:
        """The path in messages, as `spec.leaderWorkerTemplate.size`."""
        return dotted(self.path)


@dataclass(frozen=True, slots=True)
class PodSet:
    """`count` pods of one shape; `constraint` is the PodSet's own, in addition to the gang's.

    `max_count`: the maximum of an elastic PodSet, which gets as many pods as fit and at least `count`; 0 for
    a fixed count. `count_field`, `title`: for messages only: the field that states `count`, and the name of
    the PodSet if `name` is none that the user wrote; "" for `name`.
    """

    name: str
    count: int
    shape: PodShape
    constraint: Constraint = Constraint()
    max_count: int = 0
    count_field: CountField = field(default=CountField(), compare=False)
    title: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class PodGroup:
    """A gang: either every pod of every PodSet is placed, or none.

    `name`: NAMESPACE/KIND/NAME, with `/INDEX` appended if each replica of the workload is a gang.
    `origins`: the keys from which the topology request was read, for refusal messages: (field, meaning,
    value), for example with meaning "required". `warnings`: warnings from reading the request.
    """

    name: str
    pod_sets: tuple[PodSet, ...]
    constraint: Constraint = Constraint()
    reserve: ReserveMode = "auto"
    on_unavailable: OnUnavailable = "queue"
    origins: tuple[tuple[str, str, str], ...] = ()
    warnings: tuple[str, ...] = ()
    fabric: FabricWish = FabricWish()
    policy: str = ""
    """The name of a policy in KAI's ConfigMap, which gives a gang a level if it states none; "" for none."""
    balanced: bool = False
    """Whether each domain gets the same number of pods if the gang spans several domains."""
    within: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Pairs (level, PodSets): all pods of these PodSets must be in one domain of the level."""
    reserve_is_default: bool = False
    """Whether `reserve` is the configured default, because the workload does not state what to reserve."""
    whole_from: float = WHOLE_FROM
    """Under `auto`, the gang holds a domain whole if it takes at least this share (0 to 1) of its GPUs."""
    follows: str = ""
    """The API group whose Topology objects the gang's scheduler reads; "" if not known."""
    scheduler_class: str = ""
    """The PriorityClass by which the gang's scheduler ranks the gang; "" for that scheduler's default."""
    joint: str = ""
    """Gangs with the same value start together, each in its own domain: if one has no place, all wait. "" for
    a gang that starts on its own."""

    @property
    def has_special_requests(self) -> bool:
        """Whether the gang requests more than topology constraints: keys of the leaf-spine scheduler, a KAI
        policy, the same number of pods in each domain, or elastic PodSets."""
        elastic = any(pod_set.max_count > pod_set.count for pod_set in self.pod_sets)
        return bool(self.fabric or self.policy or self.balanced or elastic)

    @property
    def size(self) -> int:
        """The number of pods in the gang."""
        return sum(pod_set.count for pod_set in self.pod_sets)

    @property
    def titles(self) -> dict[str, str]:
        """The names of the PodSets in messages, by name: their titles, unless two have the same."""
        titles = {pod_set.name: pod_set.title or pod_set.name for pod_set in self.pod_sets}
        return titles if len({*titles.values()}) == len(titles) else {name: name for name in titles}

    @property
    def gpus(self) -> int:
        """The number of whole GPUs that the gang requests."""
        return sum(pod_set.count * pod_set.shape.gpus for pod_set in self.pod_sets)


@dataclass(frozen=True, slots=True)
class Assignment:
    """`count` pods of `pod_set` on `node`."""

    pod_set: str
    node: str
    count: int
