"""Which Topologies a LocalQueue of Kueue's leads to: by its ClusterQueue and the flavors of that.

A workload that wishes for a level where the flavor has no topology is never admitted: "Flavor … does not
support TopologyAwareScheduling" (Kueue ff69552e, pkg/scheduler/flavorassigner).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from planner.manifests.fields import mapping, maps, text
from planner.model.errors import Where


@dataclass(slots=True)
class KueueQueues:
    """`queues`: LocalQueues, NAMESPACE/NAME, to their ClusterQueue; `flavors`: ClusterQueues to the names of
    their flavors; `topology_of`: ResourceFlavors to their topologyName, "" for none."""

    queues: dict[str, str] = field(default_factory=dict)
    flavors: dict[str, tuple[str, ...]] = field(default_factory=dict)
    topology_of: dict[str, str] = field(default_factory=dict)

    def add(self, kind: str, key: str, item: Mapping[str, object], where: Where) -> None:
        """An object of Kueue's; any other kind is left aside. Raises `InputError` for a malformed one."""
        spec = mapping(item.get("spec"), where.at_path("spec"))
        name = key.partition("/")[2]
        if kind == "LocalQueue":
            self.queues[key] = text(spec.get("clusterQueue"), where.at_path("spec.clusterQueue"))
        elif kind == "ClusterQueue":
            groups = maps(spec.get("resourceGroups"), where.at_path("spec.resourceGroups"))
            place = where.at_path("spec.resourceGroups.flavors")
            self.flavors[name] = tuple(
                text(flavor.get("name"), place)
                for group in groups
                for flavor in maps(group.get("flavors"), place)
            )
        elif kind == "ResourceFlavor":
            self.topology_of[name] = text(spec.get("topologyName"), where.at_path("spec.topologyName"))

    def topologies(self) -> dict[str, frozenset[str]]:
        """By LocalQueue the Topologies of its flavors; one whose flavors are not all known is left out."""
        by_queue = {
            queue: [self.topology_of[flavor] for flavor in self.flavors[cluster_queue]]
            for queue, cluster_queue in self.queues.items()
            if cluster_queue in self.flavors and self.topology_of.keys() >= set(self.flavors[cluster_queue])
        }
        return {queue: frozenset(filter(None, names)) for queue, names in sorted(by_queue.items())}
