"""Topologies: ordered node-label keys, coarse to fine, and the domains that label values form.

Label values repeat across parents ("rack-1" in every block), so a domain is the path of values from the
coarsest level down, never a single value.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from planner.model.resources import CLIQUE_LABEL

HOSTNAME = "kubernetes.io/hostname"


REGION, ZONE = "topology.kubernetes.io/region", "topology.kubernetes.io/zone"

FAILURE_DOMAINS = (ZONE, REGION)
"""Levels that are as wide as a site. In the reserve mode `auto`, a gang that requires no level never holds
such a domain whole. This matters if one of them is directly above the host: no rack labels are known then."""


NVLINK_KEYS = (
    CLIQUE_LABEL,
    "nvlink-domain",
    "nvlink.domain",
    "accelerator",
    "accelerator.topograph.run/domain",
)
"""Suffixes of the label keys whose values name an NVLink domain, within one host or across hosts."""


NODE_LABELS = "node labels"
"""The `source` of a topology that is derived from the labels of nodes to which no Topology object applies."""


ROOT = -1
"""The index of the level that is the whole topology, coarser than every label."""


Domain = tuple[str, ...]
"""A path of level values, coarse to fine. `()` is the whole topology. A missing label is `""`: a node without
a rack label is in no rack, but still in its zone, and is still a host."""


@dataclass(frozen=True, slots=True)
class Topology:
    """An ordered list of levels.

    `name`: the name of the Topology object; "" if the levels are derived from node labels. `levels`:
    node-label keys, coarse to fine; the last is always `kubernetes.io/hostname` (added when an object is read
    that leaves it out). `node_selector`: the labels of the nodes to which the topology applies; if empty, it
    applies to every node that has the level labels. `reservable`: the coarsest level whose domains a gang
    holds whole if its placement spans several of them (annotation `bayplan.dev/reservable-level`; by default
    the level just above the host). `source`: the API group of the object, `NODE_LABELS`, or "none" if nodes
    have no level but the host.
    """

    name: str
    levels: tuple[str, ...]
    node_selector: Mapping[str, str] = field(default_factory=dict)
    reservable: str = ""
    source: str = "bayplan.dev"
    aliases: Mapping[str, str] = field(default_factory=dict)
    """Label keys of levels by alias (KAI's `alias`)."""
    hostless: bool = False
    """Whether the Topology object leaves the hostname out: schedulers that read it have no host level."""
    oversubscription: Mapping[str, float] = field(default_factory=dict)
    """By level: the bandwidth of the nodes in a domain, divided by that of the domain's links to others."""
    adapter_gbps: float = 0.0
    """The bandwidth of each GPU's network adapter in Gb/s; 0 if the Topology object does not state it."""

    @property
    def title(self) -> str:
        """The name for messages: that of the object, or "the nodes' labels"."""
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
        """Returns the index of a level, 0 for the coarsest. Raises `ValueError` if the key is no level."""
        return self.levels.index(level)

    def path(self, node_name: str, labels: Mapping[str, str]) -> Domain:
        """Returns the domain path of a node, with `""` for each missing label; the host level is its hostname
        label or, without one, its name.
        """
        return (*(labels.get(key, "") for key in self.levels[:-1]), labels.get(HOSTNAME) or node_name)


def topology_named(topologies: Iterable[Topology], name: str) -> Topology | None:
    """Returns the first topology of this name, None if there is none."""
    return next((topology for topology in topologies if topology.name == name), None)


def contains(outer: Domain, inner: Domain) -> bool:
    """Reports whether the outer domain equals or contains the inner one: the inner path begins with it."""
    return inner[: len(outer)] == outer


def common_domain(paths: Sequence[Domain]) -> Domain:
    """Returns the finest domain that contains all of these paths, of which there must be at least one.

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
    """Returns the level of the domains that a gang holds whole if its placement is in `domain`.

    The result is the index of the finest of the level of `domain`, the reservable level and `coarsest`. If it
    is finer than the level of `domain`, the gang holds each domain of that finer level in which it has pods.
    A node without the level's label is held on its own.
    """
    return max(topology.reservable_index, coarsest, len(domain) - 1)


def short(level: str) -> str:
    """Returns a level as messages show it: "node", "NVLink domain", or the label key without its prefix."""
    if level == HOSTNAME:
        return "node"
    if level.endswith(NVLINK_KEYS):
        return "NVLink domain"
    return level.rsplit("/", 1)[-1].removeprefix("gce-").removeprefix("topology-")


@dataclass(frozen=True, slots=True)
class Link:
    """A link between two switches or nodes, with its bandwidth in Gb/s."""

    end_a: str
    end_b: str
    gbps: float
