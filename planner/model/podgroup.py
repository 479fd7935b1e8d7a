"""The request: a PodGroup of PodSets, each with the shape of its pods and its topology constraint."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from planner.model.pod import PodShape

HoldMode = Literal["domain", "nodes", "none"]
"""What a gang holds: whole domains, what it uses, or nothing."""


ReserveMode = Literal["auto", HoldMode]
"""What a gang may ask to hold. `auto`: whole domains where that suits it (planner.extensions.holding)."""


WHOLE_FROM = 0.5
"""The share of a domain's GPUs from which on a gang holds it whole under `auto`."""


OnUnavailable = Literal["queue", "reject", "admit"]


FabricStrategy = Literal["", "consolidated", "distributed", "balanced"]


@dataclass(frozen=True, slots=True)
class Constraint:
    """A topology request: levels are node-label keys (or a Topology's alias), "" for none.

    `required` is never relaxed. `preferred` is tried first, then each coarser level up to the required one or
    the root. Groups of `slice_size` pods each stay within one domain of `slice_level`; `segments`: as KAI
    cuts them, so that the last may be short and a leader counts.
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
    """The request of nod-ai's leaf-spine interface; any field activates its rules (planner.leafspine).

    `domain`: a leaf or spine by name, soft. `gbps`: minimum bandwidth between nodes, Gb/s, hard. `strategy`:
    "" is balanced. `latency`: fewest hops first. `stated`: some key of that interface is present.
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
    """`count` pods of one shape; `constraint` is this set's own, in addition to the gang's.

    `max_count`: the maximum of an elastic set, which takes as many as fit and at least `count`; 0 for a fixed
    count.
    """

    name: str
    count: int
    shape: PodShape
    constraint: Constraint = Constraint()
    max_count: int = 0


@dataclass(frozen=True, slots=True)
class PodGroup:
    """A gang: every pod of every PodSet is placed, or none.

    `name` is NAMESPACE/KIND/NAME (and `/INDEX` for one replica of a workload that is a gang per replica).
    `origins`: for each topology key in the request, the field that contained it, for refusal messages:
    `((field, key, value), …)`. `warnings`: warnings from reading the request.
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
    """The name of a policy of KAI's ConfigMap, which gives the gang a level where it states none."""
    balanced: bool = False
    """Over several domains, the same number of pods in each."""
    within: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """For each of these levels and PodSets: all pods of these PodSets are required in one domain of it."""
    presumed: bool = False
    """Nobody said what to reserve: `reserve` is the default that is in force."""
    whole_from: float = WHOLE_FROM
    """The share of a domain's GPUs, 0 to 1, from which on the gang holds it whole under `auto`."""
    follows: str = ""
    """The API group whose Topology objects the gang's scheduler reads; "" where nothing says so."""
    scheduler_class: str = ""
    """The PriorityClass that the scheduler goes by whose Topologies it follows; "" for its default."""
    joint: str = ""
    """Gangs of one such name start together or wait together, each in a domain of its own; "" for none."""

    @property
    def wishes(self) -> bool:
        """Whether the gang asks for more than constraints: leaf-spine, a policy, equal parts, or elastic."""
        elastic = any(pod_set.max_count > pod_set.count for pod_set in self.pod_sets)
        return bool(self.fabric or self.policy or self.balanced or elastic)

    @property
    def size(self) -> int:
        """The number of pods in the gang."""
        return sum(pod_set.count for pod_set in self.pod_sets)

    @property
    def gpus(self) -> int:
        """Whole GPUs that the gang requests."""
        return sum(pod_set.count * pod_set.shape.gpus for pod_set in self.pod_sets)


@dataclass(frozen=True, slots=True)
class Assignment:
    """`count` pods of `pod_set` on `node`."""

    pod_set: str
    node: str
    count: int
