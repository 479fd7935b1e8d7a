"""Topologies: ordered node-label keys, coarse to fine, and the domains that label values form.

Label values repeat across parents ("rack-1" in every block), so a domain is the path of values from the
coarsest level down, never a single value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from planner.model.resources import CLIQUE_LABEL

HOSTNAME = "kubernetes.io/hostname"


REGION, ZONE = "topology.kubernetes.io/region", "topology.kubernetes.io/zone"

FAILURE_DOMAINS = (ZONE, REGION)
"""Levels as wide as a site: they are next to the host only where no rack labels are known."""


NVLINK_KEYS = (
    CLIQUE_LABEL,
    "nvlink-domain",
    "nvlink.domain",
    "accelerator",
    "accelerator.topograph.run/domain",
)
"""Suffixes of the label keys that stand for an NVLink domain, within one host or across hosts."""


NODE_LABELS = "node labels"
"""The source of a topology whose levels come from the labels of nodes that no object is for."""


ROOT = -1
"""The level of the whole topology, coarser than every label."""


Domain = tuple[str, ...]
"""A path of level values, coarse to fine. `()` is the whole topology. An absent label is `""`: a node
without a rack label is in no rack but still in its zone and still a host."""


@dataclass(frozen=True, slots=True)
class Topology:
    """An ordered list of levels.

    `name`: that of its object; "" where it has none and its levels come from the nodes' labels. `levels`:
    node-label keys, coarse to fine; the last is always `kubernetes.io/hostname` (added on reading where the
    object leaves it out). `node_selector`: the labels of the node pool that it belongs to; empty means every
    node that carries its level labels. `reservable`: the coarsest level that one gang holds whole when its
    placement spans several (annotation `bayplan.dev/reservable-level`; by default the level just above the
    host). `source`: the kind that it was read from.
    """

    name: str
    levels: tuple[str, ...]
    node_selector: Mapping[str, str] = field(default_factory=dict)
    reservable: str = ""
    source: str = "bayplan.dev"
    aliases: Mapping[str, str] = field(default_factory=dict)
    """Other names of levels (KAI's `alias`), each with its label key."""
    hostless: bool = False
    """The object leaves the hostname out, so a scheduler that reads it knows no such level."""
    oversubscription: Mapping[str, float] = field(default_factory=dict)
    """By level: how many times more its domains' nodes can send than the links between domains carry."""
    adapter_gbps: float = 0.0
    """The network adapter of each GPU, gigabits a second; 0 where the object does not say."""

    @property
    def title(self) -> str:
        """What people are told: the name, or where the levels come from."""
        return self.name or "the nodes' labels"

    @property
    def host_index(self) -> int:
        """The index of the host level, the last."""
        return len(self.levels) - 1

    @property
    def reservable_index(self) -> int:
        """The index of the reservable level."""
        return self.levels.index(self.reservable) if self.reservable else max(0, self.host_index - 1)

    def index(self, level: str) -> int:
        """The index of a level's key, 0 the coarsest. Raises `ValueError` for a key that is no level."""
        return self.levels.index(level)

    def path(self, node_name: str, labels: Mapping[str, str]) -> Domain:
        """The node's domain path; `""` where it lacks a label (an empty value counts as missing)."""
        return (*(labels.get(key, "") for key in self.levels[:-1]), labels.get(HOSTNAME) or node_name)


def contains(outer: Domain, inner: Domain) -> bool:
    """Whether the outer domain equals or contains the inner one, which then begins with its path."""
    return inner[: len(outer)] == outer


def common_domain(paths: Sequence[Domain]) -> Domain:
    """The finest domain that contains all of these paths (at least one).

    Trailing missing labels are removed: `("zone-a", "")` is the same domain as `("zone-a",)`.
    """
    first, last = min(paths), max(paths)  # a prefix of both is a prefix of every path sorted between them
    shared = 0
    while shared < min(len(first), len(last)) and first[shared] == last[shared]:
        shared += 1
    common = first[:shared]
    while common and not common[-1]:
        common = common[:-1]
    return common


def held_level(topology: Topology, domain: Domain, coarsest: int = ROOT) -> int:
    """The level of the domains that a gang in `domain` holds where it holds whole domains.

    That of its own domain, if that is no coarser than the reservable level and `coarsest`, else the finer of
    these two: it holds each domain of the level that it touches. A node without the level's label is held by
    itself.
    """
    return max(topology.reservable_index, coarsest, len(domain) - 1)


def short(level: str) -> str:
    """A level's label key as shown to people: "node", "NVLink domain", else its last word."""
    if level == HOSTNAME:
        return "node"
    if level.endswith(NVLINK_KEYS):
        return "NVLink domain"
    return level.rsplit("/", 1)[-1].removeprefix("gce-").removeprefix("topology-")


@dataclass(frozen=True, slots=True)
class Link:
    """A cable between two switches or nodes, `gbps` gigabits a second."""

    end_a: str
    end_b: str
    gbps: float
