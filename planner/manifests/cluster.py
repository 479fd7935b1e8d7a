"""Builds a snapshot from Kubernetes objects, for example the output of `kubectl get -o yaml`.

It reads Nodes, bound pods, Topologies (of KAI, of Kueue with its ResourceFlavors, of Bayplan), Reservations,
NodeResourceTopologies, ResourceClaims with their templates, ResourceSlices, DeviceClasses, DeviceTaintRules,
ComputeDomains, PersistentVolumes with their claims and StorageClasses, node pools that may grow (of
Karpenter, of Cluster API, from the Cluster Autoscaler's status), schedulers' ConfigMaps, LimitRanges,
ResourceQuotas, PriorityClasses, RuntimeClasses and Namespaces. Queues, CustomResourceDefinitions and other
kinds of scheduling systems show which of these systems are installed. Objects of other kinds are counted and
ignored. Invalid objects raise `InputError` with file, object and field.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from planner.cluster.build import snapshot
from planner.cluster.facts import with_facts
from planner.cluster.snapshot import Snapshot
from planner.devices.claims import NO_CLAIMS
from planner.devices.selectors import SelectorEngine
from planner.devices.slices import Slice, TaintRule, gathered
from planner.manifests.devices import slice_from, taint_rule_from
from planner.manifests.fields import mapping, qualified_name, read_cached, sequence, text, texts
from planner.manifests.growth import STATUS_CONFIG, pool_from, status_groups
from planner.manifests.lists import item_of
from planner.manifests.node import node_from
from planner.manifests.pods.bound_pod import pod_from
from planner.manifests.records import RECORD_KINDS, key_of
from planner.manifests.reservation import reservation_from
from planner.manifests.schedulers.systems import SchedulerSigns, is_sign, scheduler_pods
from planner.manifests.settings import SCHEDULER_CONFIGS, with_config, with_leaf_spine
from planner.manifests.topologies.label_presets import with_inferred_topology
from planner.manifests.topologies.objects import links_of, of_runai, topology_from
from planner.model.errors import InputError, Where
from planner.model.growth import AutoscalerGroup, GrowingPool
from planner.model.node import Node
from planner.model.pod import BoundPod
from planner.model.reservation import Reservation
from planner.model.settings import DEFAULTS, SchedulerSettings
from planner.model.topology import Link, Topology
from planner.node.runtime_class import RuntimeClasses

SOURCES = ("kai.scheduler", "bayplan.dev", "kueue.x-k8s.io")
"""The API groups of the Topology kinds. If Topologies of two kinds have the same name, the kind that comes
first here keeps the name, and requests by this name refer to it.
"""


_MAX_DEPTH = 32
"""Maximum depth of nested Lists: far more than `kubectl` writes, and far below Python's recursion limit."""


@dataclass(slots=True)
class _ClusterObjects:
    """The objects that were read so far: a collection for each kind, by name or NAMESPACE/NAME.

    `records`: by fact, the records of the kinds in `RECORD_KINDS`. `links`: the cables that a Topology
    states. `flavors`: by Topology name, the node labels of the ResourceFlavors that refer to it. `growth`:
    the node pools that may grow. `signs`: the objects that show which scheduling systems are installed.
    `ignored`: the number of objects of each other kind.
    """

    nodes: dict[str, tuple[Node, Where]] = field(default_factory=dict)
    pods: dict[str, BoundPod] = field(default_factory=dict)
    records: dict[str, dict[str, object]] = field(default_factory=dict)
    topologies: list[Topology] = field(default_factory=list)
    links: dict[str, tuple[Link, ...]] = field(default_factory=dict)
    reservations: dict[str, Reservation] = field(default_factory=dict)
    flavors: dict[str, list[dict[str, str]]] = field(default_factory=dict)
    slices: list[Slice] = field(default_factory=list)
    taint_rules: list[TaintRule] = field(default_factory=list)
    growth: list[GrowingPool | AutoscalerGroup] = field(default_factory=list)
    signs: SchedulerSigns = field(default_factory=SchedulerSigns)
    settings: SchedulerSettings = DEFAULTS
    ignored: Counter[str] = field(default_factory=Counter)


def read(documents: Iterable[tuple[str, object]], engine: SelectorEngine | None = None) -> Snapshot:
    """Returns the cluster that the documents describe. `documents`: pairs of a file name and a parsed
    document.

    `engine` evaluates the selectors of device claims. Without one every selector counts as matching, and the
    plan warns about it. Nodes outside all Topology objects get an unnamed topology, derived from their
    labels. Raises `InputError` with file, object and field for malformed or contradictory input.
    """
    result = _ClusterObjects()
    for file, document in documents:
        for item, where in _objects(document, Where(file), 0):
            _read_object(result, item, where)
    nodes = [node for node, _ in result.nodes.values()]
    topologies = with_inferred_topology(_with_unique_names(_with_flavor_labels(result)), nodes)
    topologies = [aliased(topology, result.settings) for topology in topologies]
    cluster = snapshot(
        nodes,
        topologies,
        result.pods.values(),
        result.reservations.values(),
        links=result.links,
        ignored=dict(result.ignored),
        settings=result.settings,
        claims=replace(NO_CLAIMS, slices=gathered(result.slices, result.taint_rules), engine=engine),
        runtime_classes=RuntimeClasses(complete="runtime_classes.by_name" in result.records),
        growth=result.growth,
        schedulers=result.signs.seen(scheduler_pods(result.pods.values()), result.topologies),
    )
    return replace(cluster, base=with_facts(cluster.base, result.records))


def _objects(document: object, where: Where, depth: int) -> Iterator[tuple[Mapping[str, object], Where]]:
    """Yields the objects in a document; Lists and nested Lists are expanded."""
    if document is None:
        return
    if depth > _MAX_DEPTH:
        raise InputError("lists are nested too deeply", where)
    if isinstance(document, (list, tuple)):
        for item in document:
            yield from _objects(item, where, depth + 1)
        return
    if not isinstance(document, Mapping):
        raise InputError("expected a Kubernetes object with apiVersion and kind", where)
    document = of_runai(document) or document
    kind = document.get("kind")
    if not isinstance(kind, str) or not kind:
        raise InputError("the object has no kind", where.at_path("kind"))
    if kind.endswith("List") and "items" in document:
        for item in sequence(document.get("items"), where.at_path("items")):
            yield from _objects(item_of(document, item), where, depth + 1)
        return
    yield document, _name(document, kind, where)


def _name(document: Mapping[str, object], kind: str, where: Where) -> Where:
    """Returns the location of the object for error messages: its file, kind, namespace and name."""
    metadata = mapping(document.get("metadata"), Where(where.file, kind, "metadata"))
    place = Where(where.file, kind, "metadata.name")
    name, namespace = text(metadata.get("name"), place), text(metadata.get("namespace"), place)
    return Where(where.file, f"{kind} {namespace + '/' if namespace else ''}{name}".rstrip())


def _read_object(objects: _ClusterObjects, item: Mapping[str, object], where: Where) -> None:
    """Adds an object to `objects`, or counts it as ignored if no reader knows its kind."""
    kind = str(item["kind"])
    group, _, version = text(item.get("apiVersion"), where.at_path("apiVersion")).rpartition("/")
    reader, record_kind = _READERS.get((group, kind)), RECORD_KINDS.get((group, kind))
    known_sign = is_sign(group, kind)
    if not (reader or record_kind or known_sign) or not version:
        objects.ignored[kind] += 1
        return
    metadata = mapping(item.get("metadata"), where.at_path("metadata"))
    if not text(metadata.get("name"), where.at_path("metadata.name")):
        raise InputError("the object has no name", where.at_path("metadata.name"))
    if known_sign:
        objects.signs.add(group, kind, _key(item, where))
        if group == "kueue.x-k8s.io":
            objects.signs.kueue.add(kind, _key(item, where), item, where)
        elif (group, kind) == ("scheduling.run.ai", "Queue"):
            objects.signs.kai.add(_key(item, where).partition("/")[2], item, where)
    if record_kind and (record := read_cached(item, where, record_kind.read)) is not None:
        objects.records.setdefault(record_kind.fact, {})[key_of(record_kind, item, where)] = record
    if reader:
        reader(objects, item, where)


def _read_node(objects: _ClusterObjects, item: Mapping[str, object], where: Where) -> None:
    node = node_from(item, where)
    if node.name in objects.nodes:
        first = objects.nodes[node.name][1]
        raise InputError(
            f"two nodes have this name (the other is in {first.file})", where.at_path("metadata.name")
        )
    objects.nodes[node.name] = (node, where)


def _read_pod(objects: _ClusterObjects, item: Mapping[str, object], where: Where) -> None:
    pod = pod_from(item, where)
    if pod is None:
        return
    if pod.name in objects.pods:
        raise InputError("two pods have this name", where.at_path("metadata.name"))
    objects.pods[pod.name] = pod


def _read_topology(objects: _ClusterObjects, item: Mapping[str, object], where: Where) -> None:
    topology = topology_from(item, where)
    for earlier in objects.topologies:
        if earlier.name == topology.name and earlier.source == topology.source:
            raise InputError("two Topologies of one kind have this name", where.at_path("metadata.name"))
    objects.topologies.append(topology)
    if links := links_of(item, where):
        objects.links[topology.name] = links


def _read_flavor(objects: _ClusterObjects, item: Mapping[str, object], where: Where) -> None:
    spec = mapping(item.get("spec"), where.at_path("spec"))
    name = text(spec.get("topologyName"), where.at_path("spec.topologyName"))
    labels = texts(spec.get("nodeLabels"), where.at_path("spec.nodeLabels"))
    objects.signs.flavored = objects.signs.flavored or set()  # None means that no ResourceFlavor was read
    if name:
        objects.flavors.setdefault(name, []).append(labels)
        objects.signs.flavored.add(name)


def _with_flavor_labels(objects: _ClusterObjects) -> list[Topology]:
    """Returns the topologies. A Kueue Topology gets the node labels of the ResourceFlavor that refers to it,
    if exactly one does.
    """
    return [
        replace(t, node_selector=objects.flavors[t.name][0])
        if t.source == "kueue.x-k8s.io" and not t.node_selector and len(objects.flavors.get(t.name, ())) == 1
        else t
        for t in objects.topologies
    ]


def _with_unique_names(topologies: list[Topology]) -> list[Topology]:
    """Returns the topologies with unique names. Of two with one name, the kind that is later in `SOURCES` is
    left out if its levels and node selector are the same, else renamed to "NAME (API GROUP)".
    """
    kept: dict[str, Topology] = {}
    for topology in sorted(topologies, key=lambda t: (SOURCES.index(t.source), t.name)):
        namesake = kept.get(topology.name)
        if namesake is None:
            kept[topology.name] = topology
        elif (namesake.levels, dict(namesake.node_selector)) != (
            topology.levels,
            dict(topology.node_selector),
        ):
            name = f"{topology.name} ({topology.source})"
            kept[name] = replace(topology, name=name)
    return list(kept.values())


def _read_reservation(objects: _ClusterObjects, item: Mapping[str, object], where: Where) -> None:
    reservation = reservation_from(item, where)
    if reservation.gang in objects.reservations:
        raise InputError(f"two reservations are for {reservation.gang}", where.at_path("spec.gang"))
    objects.reservations[reservation.gang] = reservation


def _read_slice(objects: _ClusterObjects, item: Mapping[str, object], where: Where) -> None:
    objects.slices.append(read_cached(item, where, slice_from))


def _read_taint_rule(objects: _ClusterObjects, item: Mapping[str, object], where: Where) -> None:
    if rule := taint_rule_from(item, where):
        objects.taint_rules.append(rule)


def _read_pool(objects: _ClusterObjects, item: Mapping[str, object], where: Where) -> None:
    if pool := read_cached(item, where, pool_from):
        objects.growth.append(pool)


def _key(item: Mapping[str, object], where: Where) -> str:
    return qualified_name(mapping(item.get("metadata"), where.at_path("metadata")), where)


def _read_leaf_spine(objects: _ClusterObjects, item: Mapping[str, object], where: Where) -> None:
    objects.settings = with_leaf_spine(objects.settings, item, where)


def _read_config(objects: _ClusterObjects, item: Mapping[str, object], where: Where) -> None:
    name = mapping(item.get("metadata"), where.at_path("metadata")).get("name")
    if name in SCHEDULER_CONFIGS:
        objects.settings = with_config(objects.settings, item, where)
    elif name == STATUS_CONFIG:
        objects.growth += read_cached(item, where, status_groups)
    else:
        objects.ignored["ConfigMap"] += 1


def aliased(topology: Topology, settings: SchedulerSettings) -> Topology:
    """Returns the topology with the aliases that KAI's ConfigMap defines for the label keys of its levels."""
    aliases = {name: label for name, label in settings.aliases.items() if label in topology.levels}
    return replace(topology, aliases={**aliases, **topology.aliases}) if aliases else topology


_Reader = Callable[[_ClusterObjects, Mapping[str, object], Where], None]


_READERS: dict[tuple[str, str], _Reader] = {
    ("", "Node"): _read_node,
    ("", "Pod"): _read_pod,
    ("", "ConfigMap"): _read_config,
    ("kai.scheduler", "Topology"): _read_topology,
    ("kueue.x-k8s.io", "Topology"): _read_topology,
    ("kueue.x-k8s.io", "ResourceFlavor"): _read_flavor,
    ("bayplan.dev", "Topology"): _read_topology,
    ("bayplan.dev", "Reservation"): _read_reservation,
    ("topology.scheduler", "TopologySchedulerConfig"): _read_leaf_spine,
    ("karpenter.sh", "NodePool"): _read_pool,
    ("cluster.x-k8s.io", "MachineDeployment"): _read_pool,
    ("resource.k8s.io", "ResourceSlice"): _read_slice,
    ("resource.k8s.io", "DeviceTaintRule"): _read_taint_rule,
}
