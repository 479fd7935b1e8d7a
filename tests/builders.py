"""Builders of clusters and gangs from short text drawings, shared by all tests.

Each line of a drawing is one domain: the label values from coarse to fine, separated by slashes, then a
colon and the names of the nodes:

    cluster('''
        z1/r1: a b c
        z1/r2: d e   gpu=4 cpu=32
    ''', levels=("zone", "rack"))

Amounts after the nodes (`gpu`, `cpu` in cores, `memory` in Gi, `pods`, or any full resource name) hold for
every node of the line. `used=N` binds a pod with N GPUs to each node. `cordoned`, `notready` and `taint=KEY`
make the nodes unschedulable, not ready, or tainted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from planner.cluster.build import snapshot
from planner.cluster.snapshot import Snapshot
from planner.model.labels import Taint, Term, Toleration
from planner.model.node import Node
from planner.model.pod import BoundPod, PodShape
from planner.model.podgroup import Constraint, PodGroup, PodSet, ReserveMode
from planner.model.priority import PriorityClass, PriorityClasses
from planner.model.reservation import Reservation
from planner.model.topology import HOSTNAME, Topology

GPU = "nvidia.com/gpu"
_UNITS = {"gpu": (GPU, 1), "cpu": ("cpu", 1000), "memory": ("memory", 2**30), "pods": ("pods", 1)}


def amounts(**words: int) -> dict[str, int]:
    """Amounts in base units from short keywords: `gpu`, `cpu` (cores), `memory` (Gi), `pods`."""
    return {_UNITS[word][0]: count * _UNITS[word][1] for word, count in words.items()}


def node(name: str, *, labels: Mapping[str, str] | None = None, **words: int) -> Node:
    """A node with its hostname label. Defaults: 8 GPUs, 64 cores, 512Gi and 110 pods."""
    offers = amounts(**({"gpu": 8, "cpu": 64, "memory": 512, "pods": 110} | words))
    return Node(name, {HOSTNAME: name, **(labels or {})}, {k: v for k, v in offers.items() if v})


def topology(*levels: str, name: str = "topo", reservable: str = "") -> Topology:
    """A topology of these levels and, as the lowest one, the hostname."""
    return Topology(name, (*levels, HOSTNAME), reservable=reservable)


def cluster(
    drawing: str,
    levels: Sequence[str] = ("rack",),
    *,
    pods: Iterable[BoundPod] = (),
    reservations: Iterable[Reservation] = (),
    reservable: str = "",
    topologies: Iterable[Topology] = (),
) -> Snapshot:
    """The snapshot for a drawing; the module's docstring describes the format."""
    nodes: list[Node] = []
    bound = list(pods)
    for line in filter(None, map(str.strip, drawing.splitlines())):
        path, _, rest = line.partition(":")
        names = [word for word in rest.split() if "=" not in word and word not in ("cordoned", "notready")]
        fields = dict(word.split("=", 1) for word in rest.split() if "=" in word)
        values = [value.strip() for value in path.split("/")]
        labels = {level: value for level, value in zip(levels, values, strict=False) if value}
        used = int(fields.pop("used", 0))
        taint = fields.pop("taint", "")
        words = {"gpu": 8, "cpu": 64, "memory": 512, "pods": 110}
        words |= {word: int(count) for word, count in fields.items() if word in _UNITS}
        other = {name: int(count) for name, count in fields.items() if name not in _UNITS}
        for name in names:
            offers = {k: v for k, v in (amounts(**words) | other).items() if v}
            nodes.append(
                Node(
                    name,
                    {HOSTNAME: name, **labels},
                    offers,
                    taints=(Taint(taint),) if taint else (),
                    cordoned="cordoned" in rest.split(),
                    ready="notready" not in rest.split(),
                )
            )
            if used:
                bound.append(BoundPod(f"default/on-{name}", name, amounts(gpu=used, pods=1)))
    return snapshot(
        nodes, tuple(topologies) or (topology(*levels, reservable=reservable),), bound, reservations
    )


def racks(count: int, hosts: int, *, gpu: int = 8, block: int = 0) -> Snapshot:
    """`count` equal racks r1, r2, … with nodes r1-n1, r1-n2, …; with `block`, the racks are in that block."""
    lines = []
    for rack in range(1, count + 1):
        names = " ".join(f"r{rack}-n{host}" for host in range(1, hosts + 1))
        where = f"b{(rack - 1) // block + 1}/r{rack}" if block else f"r{rack}"
        lines.append(f"{where}: {names} gpu={gpu}")
    return cluster("\n".join(lines), ("block", "rack") if block else ("rack",))


def shape(
    *,
    selector: Mapping[str, str] | None = None,
    affinity: tuple[Term, ...] = (),
    tolerations: tuple[Toleration, ...] = (),
    apart: tuple[str, ...] = (),
    preferences: tuple[tuple[int, Term], ...] = (),
    **words: int,
) -> PodShape:
    """A pod shape: `gpu`, `cpu` (cores), `memory` (Gi). The default is one GPU and nothing else."""
    requests = amounts(**(words or {"gpu": 1})) | {"pods": 1}
    return PodShape(
        {name: amount for name, amount in requests.items() if amount},
        selector or {},
        affinity,
        preferences,
        tolerations,
        apart,
    )


def pod_set(
    count: int, pod: PodShape | None = None, *, name: str = "worker", constraint: Constraint | None = None
) -> PodSet:
    """A PodSet of `count` pods of one shape."""
    return PodSet(name, count, pod or shape(), Constraint() if constraint is None else constraint)


def gang(
    *pod_sets: PodSet | int,
    name: str = "default/Job/gang",
    gpu: int = 8,
    reserve: ReserveMode = "domain",
    required: str = "",
    preferred: str = "",
    **constraint: str,
) -> PodGroup:
    """A gang of these PodSets. A number stands for a PodSet of that many workers with `gpu` GPUs each."""
    sets = tuple(
        pod_set(count_or_set, shape(gpu=gpu), name="worker" if not place else f"worker-{place}")
        if isinstance(count_or_set, int)
        else count_or_set
        for place, count_or_set in enumerate(pod_sets)
    )
    wanted = Constraint(required=required, preferred=preferred, topology=constraint.pop("topology", ""))
    return PodGroup(name, sets, wanted, reserve)


def with_classes(snapshot: Snapshot, **values: int) -> Snapshot:
    """The same cluster with PriorityClasses of these names and values, none of them the default."""
    classes = PriorityClasses({name: PriorityClass(name, value) for name, value in values.items()})
    return snapshot.evolve(base=replace(snapshot.base, priorities=classes), changed_nodes=frozenset())


def of_class(group: PodGroup, name: str, *, stating: int | None = None) -> PodGroup:
    """The gang with pods of this PriorityClass ("" for none), optionally with a numeric priority in the
    pods.
    """
    sets = tuple(
        replace(part, shape=replace(part.shape, priority_class=name, stated_priority=stating))
        for part in group.pod_sets
    )
    return replace(group, pod_sets=sets)
