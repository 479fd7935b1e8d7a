"""Small clusters with movable pods and gangs, and a brute-force check whether they fit elsewhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import combinations
from random import Random

from planner.cluster.census.domains import gpus_of
from planner.cluster.snapshot import Snapshot
from planner.model.pod import BoundPod
from planner.planning.defragmentation.movable import Movable
from tests.builders import amounts, cluster, gang

NODES = {f"r{rack}-n{node}": f"r{rack}" for rack in range(1, 5) for node in (1, 2)}
DRAWING = "\n".join(f"r{rack}: r{rack}-n1 r{rack}-n2 gpu=4" for rack in range(1, 5))


def drawn(seed: int) -> tuple[Snapshot, list[Movable]]:
    """Four racks of two nodes of 4 GPUs with random single pods, pairs, and pods that must stay."""
    random = Random(seed)
    left = dict.fromkeys(NODES, 4)
    movables = []
    for index in range(random.randint(2, 8)):
        gpu = random.choice((1, 1, 2, 2, 3, 4))
        words = {
            "priority": random.choice((0, 0, 100)),
            "age": float(random.choice((60, 600))),
            "kept_because": random.choice(("", "", "", "stays")),
        }
        free = [node for node in NODES if left[node] >= gpu]
        required = random.choice(("", "rack"))
        pairs = [pair for pair in combinations(free, 2) if not required or NODES[pair[0]] == NODES[pair[1]]]
        if random.random() < 0.3 and pairs:
            nodes = random.choice(pairs)
            movables.append(together(f"g{index}", " ".join(nodes), gpu, required, **words))
        elif free:
            nodes = (random.choice(free),)
            movables.append(lone(f"p{index}", nodes[0], gpu, **words))
        else:
            continue
        for node in nodes:
            left[node] -= gpu
    return occupied(DRAWING, *movables), movables


def every_place(movable: Movable, free: Counter[str]) -> Iterator[tuple[str, ...]]:
    """Every node or pair of nodes with room for the movable."""
    gpu = gpus_of(movable.pods[0].requests)
    size, required = len(movable.pods), movable.group.constraint.required
    if size == 2:
        yield from ((node, node) for node in free if free[node] >= 2 * gpu)
    for nodes in combinations([node for node in free if free[node] >= gpu], size):
        if not required or len({NODES[node] for node in nodes}) == 1:
            yield nodes


def all_fit(movables: list[Movable], free: Counter[str]) -> bool:
    """Returns whether all have a place at the same time, by trying all combinations."""
    if not movables:
        return True
    first, rest = movables[0], movables[1:]
    gpu = gpus_of(first.pods[0].requests)
    return any(
        all_fit(rest, Counter({node: free[node] - gpu * place.count(node) for node in free}))
        for place in every_place(first, free)
    )


def lone(name: str, node: str, gpu: int = 1, **words) -> Movable:
    """A single pod on a node."""
    pod = BoundPod(f"team/{name}", node, amounts(gpu=gpu) | {"pods": 1})
    return Movable(gang(1, gpu=gpu, name=f"team/Pod/{name}", reserve="nodes"), (pod,), **words)


def together(name: str, nodes: str, gpu: int = 8, required: str = "", **words) -> Movable:
    """A gang with one pod on each of these nodes and without a reservation."""
    size = len(nodes.split())
    pods = tuple(
        BoundPod(f"team/{name}-{index}", node, amounts(gpu=gpu) | {"pods": 1})
        for index, node in enumerate(nodes.split())
    )
    group = gang(size, gpu=gpu, name=f"team/Job/{name}", required=required, reserve="nodes")
    return Movable(group, pods, **words)


def occupied(drawing: str, *movables: Movable, levels: tuple[str, ...] = ("rack",)) -> Snapshot:
    """The drawn cluster with these pods."""
    return cluster(drawing, levels, pods=[pod for movable in movables for pod in movable.pods])
