"""Parts of GPUs: what pods ask of one with `gpu-fraction` or `gpu-memory`, and which fit side by side.

Source: KAI Scheduler's GPU sharing. A part lies on one physical GPU, so parts are packed GPU by GPU and never
summed over a node: 0.5 + 0.5 share one, 0.6 + 0.6 never do. A part is counted in MiB of the node's GPU memory
(the label `nvidia.com/gpu.memory`, rounded down to hundreds; a node without it has hundredths, and takes no
`gpu-memory`). KAI marks each shared GPU with a pod of its own, which asks for that GPU whole and carries the
label `runai-gpu-group`, as the pods do that share it.

A part travels through the planner as a resource of its own name (`gpu-fraction/0.5`), so that what is
reserved and what is used add up by name; `Gpus` tells what these names come to on a node.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from itertools import groupby

from planner.model.node import BoundPod, Node
from planner.model.quantity import Resources
from planner.model.resources import GPU, MEMORY_LABEL, MIG_PREFIX
from planner.node.eligibility import divided

FRACTION, MEMORY, DEVICES = "gpu-fraction", "gpu-memory", "gpu-fraction-num-devices"
"""KAI's annotations on pods."""


MARKER = "gpu-group/marker"
"""What such a pod asks for here, in the place of its whole GPU."""


SHARED = "gpu-"
"""How the name of every part begins."""


_HUNDREDTHS = 100


_MEBIBYTES = 2**20


_MOST_STATES = 50_000
"""Ways to fill GPUs that are looked at for one node; past them the parts count as not fitting."""


Part = tuple[int, int]
"""A size and the number of GPUs on each of which the pod wants so much."""


@dataclass(frozen=True, slots=True)
class Share:
    """A part of a GPU: a fraction of it ("0.5") or MiB of its memory, on each of `devices` different GPUs."""

    fraction: str = ""
    memory: int = 0
    devices: int = 1

    @property
    def name(self) -> str:
        """The resource that stands for it."""
        size = f"{FRACTION}/{self.fraction}" if self.fraction else f"{MEMORY}/{self.memory}"
        return size if self.devices == 1 else f"{size}x{self.devices}"

    @property
    def label(self) -> str:
        """As it stands in a list of causes: "gpu-fraction 0.5", "gpu-memory 20000 on each of 2 GPUs"."""
        size = f"{FRACTION} {self.fraction}" if self.fraction else f"{MEMORY} {self.memory}"
        return size if self.devices == 1 else f"{size} on each of {self.devices} GPUs"

    def words(self) -> str:
        """As a person says it: "0.5 of a GPU", "20000 MiB of a GPU's memory, on each of 2 GPUs"."""
        size = f"{self.fraction} of a GPU" if self.fraction else f"{self.memory} MiB of a GPU's memory"
        return size if self.devices == 1 else f"{size}, on each of {self.devices} GPUs"

    def size(self, gpus: Gpus) -> int:
        """What it takes of one of these GPUs; more than there is where it can have none."""
        if self.fraction:
            return max(1, int(Decimal(self.fraction) * gpus.each))
        return self.memory if gpus.known else gpus.each + 1


@lru_cache(maxsize=4096)
def share_named(name: str) -> Share | None:
    """The part that a resource's name stands for, None for every other resource."""
    if not name.startswith((FRACTION + "/", MEMORY + "/")):
        return None
    what, _, said = name.partition("/")
    size, _, devices = said.partition("x")
    count = int(devices or 1)
    return Share(size, 0, count) if what == FRACTION else Share("", int(size), count)


def share_in(requests: Resources) -> Share | None:
    """The part among a pod's requests; a pod has one at most."""
    for name in requests:
        if name.startswith(SHARED) and (found := share_named(name)) is not None:
            return found
    return None


@dataclass(frozen=True, slots=True)
class Gpus:
    """A node's GPUs as pods see them that share one. Sizes are MiB, or hundredths where `known` is False.

    `each`: the size of one GPU. `rooms`: what is left on each GPU that is shared now, ascending. `waiting`:
    parts that are promised and have no GPU yet. `opened`: the fewest further GPUs that these take.
    """

    each: int
    known: bool
    rooms: tuple[int, ...] = ()
    waiting: tuple[Part, ...] = ()
    opened: int = 0

    def holds(self, whole: int, parts: Iterable[Part]) -> bool:
        """Whether the parts have a place beside what is there, where `whole` GPUs are free besides."""
        if whole < 0:
            return False
        return packs(self.rooms, whole + self.opened, self.each, _ordered((*self.waiting, *parts)))

    def most(self, share: Share, whole: int, limit: int) -> int:
        """Pods that have such a part beside one another, at most `limit`."""
        part = (share.size(self), share.devices)
        if part[0] > self.each or whole < 0:
            return 0
        bins = (*self.rooms, *(self.each,) * (whole + self.opened))
        least, most = 0, min(limit, sum(room // part[0] for room in bins) // part[1])
        while least < most:
            middle = (least + most + 1) // 2
            if self.holds(whole, (part,) * middle):
                least = middle
            else:
                most = middle - 1
        return least


def never(share: Share, hosts: Sequence[tuple[Gpus | None, int]]) -> str:
    """Why none of these empty nodes, each with its GPUs and their number, has such a part; "" if one has."""
    able = [(gpus, count) for gpus, count in hosts if gpus is not None and count > 0]
    if any(gpus.most(share, count, 1) for gpus, count in able):
        return ""
    if not able:
        return "no node that it may use has GPUs to share; those that MIG or time slicing divides are not."
    known = [gpus.each for gpus, _ in able if gpus.known]
    if share.memory and not known:
        why = f"no node that it may use says how much its GPUs have (label {MEMORY_LABEL})."
        return f"{why} Would work: {FRACTION}, or that label, which GPU feature discovery writes."
    if share.memory > max(known, default=share.memory):
        most = f"{max(known)} MiB"
        return f"the largest GPU of a node that it may use has {most}. Would work: {most} or less."
    most = str(max(count for gpus, count in able if gpus.known or not share.memory))
    return f"no node that it may use has more than {most} such GPUs. Would work: {DEVICES} of {most} or less."


@lru_cache(maxsize=256)
def _untouched(each: int, known: bool) -> Gpus:
    return Gpus(each, known)


def gpus_of(node: Node) -> Gpus | None:
    """The GPUs of a node on which no part is used; None where it has none that can be shared.

    KAI puts no part on a node that is split by MIG; time slices are parts already.
    """
    if not node.allocatable.get(GPU) or divided(node.labels):
        return None
    if any(name.startswith(MIG_PREFIX) and count > 0 for name, count in node.allocatable.items()):
        return None
    text = node.labels.get(MEMORY_LABEL, "")
    size = int(text) if text.isascii() and text.isdecimal() and len(text) < 19 else 0
    if size >= _MEBIBYTES:  # GPU feature discovery once wrote bytes
        size //= _MEBIBYTES
    size -= size % 100
    return _untouched(size or _HUNDREDTHS, size > 0)


def shares_gpus(taken: Resources) -> bool:
    """Whether some of what is taken on a node are parts of GPUs."""
    return any(name.startswith(SHARED) for name in taken)


def settled(
    taken: Resources, pods: Iterable[BoundPod], gpus: Gpus | None
) -> tuple[dict[str, int], Gpus | None]:
    """What is taken on a node with the parts of GPUs counted as the GPUs that they keep from others.

    Bound pods lie on the GPUs that KAI gave them; parts that are reserved, or bound without a group, on as
    few more as can be. A node without GPUs has nothing to share.
    """
    amounts = {name: amount for name, amount in taken.items() if not name.startswith(SHARED)}
    if gpus is None:
        return amounts, None
    rooms: dict[str, int] = {}
    waiting = {name: amount for name, amount in taken.items() if share_named(name)}
    for pod in pods:
        share = share_in(pod.requests)
        for group in pod.gpu_groups:
            room = rooms.get(group, gpus.each)
            rooms[group] = room - share.size(gpus) if share else room
        if share and pod.gpu_groups:
            waiting[share.name] = waiting.get(share.name, 0) - 1
    left = tuple(sorted(max(0, room) for room in rooms.values()))
    parts = _ordered(_parts(waiting, gpus))
    opened = _fewest(left, gpus.each, parts)
    amounts[GPU] = amounts.get(GPU, 0) + len(left) + opened
    return amounts, Gpus(gpus.each, gpus.known, left, parts, opened)


def _parts(waiting: Resources, gpus: Gpus) -> Iterator[Part]:
    for name, count in waiting.items():
        share = share_named(name)
        if share is not None and count > 0:
            yield from ((min(share.size(gpus), gpus.each), share.devices),) * count


def _ordered(parts: Iterable[Part]) -> tuple[Part, ...]:
    return tuple(sorted(parts, key=lambda part: (-part[1], -part[0])))


@lru_cache(maxsize=65_536)
def _fewest(rooms: tuple[int, ...], each: int, parts: tuple[Part, ...]) -> int:
    """The fewest empty GPUs that the parts need beside these rooms; one for each part is always enough."""
    most = sum(devices for _, devices in parts)
    return next((count for count in range(most) if packs(rooms, count, each, parts)), most)


@lru_cache(maxsize=65_536)
def packs(rooms: tuple[int, ...], empty: int, each: int, parts: tuple[Part, ...]) -> bool:
    """Whether the parts fit on these GPUs and so many empty ones; exact, the fullest that serves tried first.

    `parts` come with the most GPUs first and then the largest first.
    """
    wanted = sum(devices for _, devices in parts)
    bins = tuple(sorted((*rooms, *(each,) * min(empty, wanted))))
    if sum(size * devices for size, devices in parts) > sum(bins):
        return False
    alike = _tail(parts)
    stack, seen = [(0, bins)], {(0, bins)}
    while stack and len(seen) < _MOST_STATES:
        place, left = stack.pop()
        if place >= alike:
            if _alike_fit(left, parts[place:]):
                return True
            continue
        size, devices = parts[place]
        ways = [(place + 1, after) for after in _ways(left, size, devices)]
        fresh = [way for way in ways if way not in seen]
        seen.update(fresh)
        stack.extend(reversed(fresh))
    return False


def _tail(parts: tuple[Part, ...]) -> int:
    """Where the last run of equal parts begins."""
    runs = [len(list(run)) for _, run in groupby(parts)]
    return len(parts) - (runs[-1] if runs else 0)


def _alike_fit(bins: tuple[int, ...], parts: tuple[Part, ...]) -> bool:
    """Whether equal parts fit: each GPU takes what it can, and one of each pod's at most."""
    if not parts:
        return True
    size, devices = parts[0]
    return sum(min(room // size, len(parts)) for room in bins) >= devices * len(parts)


def _ways(bins: tuple[int, ...], size: int, devices: int) -> Iterator[tuple[int, ...]]:
    """The rooms after one pod's part was put on so many different GPUs, each way once."""
    if devices == 0:
        yield bins
        return
    counts = {room: bins.count(room) for room in sorted(set(bins)) if room >= size}

    def choose(rooms: list[int], left: int, chosen: dict[int, int]) -> Iterator[dict[int, int]]:
        if not left:
            yield chosen
        elif rooms:
            for count in range(min(left, counts[rooms[0]]), -1, -1):
                yield from choose(rooms[1:], left - count, {**chosen, rooms[0]: count})

    for chosen in choose(list(counts), devices, {}):
        rest = list(bins)
        for room, count in chosen.items():
            for _ in range(count):
                rest.remove(room)
                rest.append(room - size)
        yield tuple(sorted(rest))
