"""Which Topologies and tolerations a Kueue LocalQueue has: those of the ResourceFlavors of its ClusterQueue.

Kueue never admits a workload that requests a level if the flavor has no topology: "Flavor … does not support
TopologyAwareScheduling" (Kueue ff69552e, pkg/scheduler/flavorassigner).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from planner.manifests.fields import mapping, maps, text
from planner.manifests.requirements import tolerations_of
from planner.model.errors import Where
from planner.model.labels import Toleration


@dataclass(slots=True)
class KueueQueues:
    """The Kueue objects that were read so far, as references from one to the next.

    `queues`: the ClusterQueue of each LocalQueue (NAMESPACE/NAME). `flavors`: the flavor names of each
    ClusterQueue. `topology_of`: the topologyName of each ResourceFlavor, "" for none. `tolerations_of`: the
    tolerations that each ResourceFlavor adds to its pods.
    """

    queues: dict[str, str] = field(default_factory=dict)
    flavors: dict[str, tuple[str, ...]] = field(default_factory=dict)
    topology_of: dict[str, str] = field(default_factory=dict)
    tolerations_of: dict[str, tuple[Toleration, ...]] = field(default_factory=dict)

    def add(self, kind: str, key: str, item: Mapping[str, object], where: Where) -> None:
        """Adds a Kueue object; other kinds are ignored. Raises `InputError` for a malformed one."""
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
            self.tolerations_of[name] = tolerations_of(spec, where.at_path("spec"))

    def topologies(self) -> dict[str, frozenset[str]]:
        """Returns by LocalQueue the names of its flavors' Topologies; empty if its flavors have none. Queues
        with an unknown ClusterQueue or flavor are left out.
        """
        by_queue = {
            queue: [self.topology_of[flavor] for flavor in self.flavors[cluster_queue]]
            for queue, cluster_queue in self.queues.items()
            if cluster_queue in self.flavors and self.topology_of.keys() >= set(self.flavors[cluster_queue])
        }
        return {queue: frozenset(filter(None, names)) for queue, names in sorted(by_queue.items())}

    def tolerations(self) -> dict[str, tuple[Toleration, ...]]:
        """Returns by LocalQueue the tolerations of all its known flavors; queues without any are left out."""
        by_queue = {
            queue: tuple(
                dict.fromkeys(
                    toleration
                    for flavor in self.flavors.get(cluster_queue, ())
                    for toleration in self.tolerations_of.get(flavor, ())
                )
            )
            for queue, cluster_queue in sorted(self.queues.items())
        }
        return {queue: tolerations for queue, tolerations in by_queue.items() if tolerations}
