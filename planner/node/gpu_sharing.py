"""GPU shares: what pods request with `gpu-fraction` or `gpu-memory`, and which shares fit on the GPUs of a
node.

Example: a node has 4 GPUs. One is shared and has 0.3 left (`free` = 30 of 100), one is used whole, two are
empty. A share of 0.5 is reserved but has no GPU yet (`pending`). It does not fit into 0.3, so it will take
one of the empty GPUs (`newly_used` = 1), which counts as used for pods that request whole GPUs. A pod with a
share of 0.5 fits beside it; one of 0.6 goes to the last empty GPU.

Source: KAI Scheduler's GPU sharing. A share is on one physical GPU, so shares are packed GPU by GPU and never
summed over a node: 0.5 + 0.5 fit on one GPU, 0.6 + 0.6 do not. Sizes are in MiB of the node's GPU memory (the
label `nvidia.com/gpu.memory`, rounded down to hundreds). On a node without the label they are in hundredths
of a GPU, and `gpu-memory` does not fit. KAI marks each shared GPU with a pod of its own, which requests that
GPU whole and has the label `runai-gpu-group`, like the pods that share it.

The planner counts shares as amounts of resources that are named after them (`gpu-fraction/0.5`), so that
reserved and used shares can be added up by name. `SharedGpus` computes how they fit on the GPUs of a node.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from itertools import groupby

from planner.model.node import Node, divided
from planner.model.pod import BoundPod
from planner.model.resources import GPU, MEMORY_LABEL, MIG_PREFIX, SHARE_PREFIX, Resources

FRACTION, MEMORY, DEVICES = "gpu-fraction", "gpu-memory", "gpu-fraction-num-devices"
"""KAI's annotations on pods."""


MARKER = "gpu-group/marker"
"""The resource that replaces the whole GPU in the request of KAI's own pod on a shared GPU."""


_HUNDREDTHS = 100


_MEBIBYTES = 2**20


_MAX_STATES = 50_000
"""Maximum number of states (next share to place, free amount of each GPU) of one search, about a second;
beyond it the shares count as not fitting. Eight GPUs with six different share sizes need far fewer.
"""


Part = tuple[int, int]
"""The share of one pod: its size on one GPU, and the number of different GPUs on which it takes that size."""


@dataclass(frozen=True, slots=True)
class Share:
    """A GPU share: a fraction ("0.5") or MiB of memory, on each of `devices` different GPUs."""

    fraction: str = ""
    memory: int = 0
    devices: int = 1

    @property
    def name(self) -> str:
        """The name of the resource that represents the share."""
        size = f"{FRACTION}/{self.fraction}" if self.fraction else f"{MEMORY}/{self.memory}"
        return size if self.devices == 1 else f"{size}x{self.devices}"

    @property
    def label(self) -> str:
        """The share as obstacles name it: "gpu-fraction 0.5", "gpu-memory 20000 on each of 2 GPUs"."""
        size = f"{FRACTION} {self.fraction}" if self.fraction else f"{MEMORY} {self.memory}"
        return size if self.devices == 1 else f"{size} on each of {self.devices} GPUs"

    def words(self) -> str:
        """Returns the share as text: "0.5 of a GPU", "20000 MiB of a GPU's memory, on each of 2 GPUs"."""
        size = f"{self.fraction} of a GPU" if self.fraction else f"{self.memory} MiB of a GPU's memory"
        return size if self.devices == 1 else f"{size}, on each of {self.devices} GPUs"

    def size(self, gpus: SharedGpus) -> int:
        """Returns the size of the share on one of these GPUs; larger than a GPU if the share cannot fit."""
        if self.fraction:
            return max(1, int(Decimal(self.fraction) * gpus.gpu_size))
        return self.memory if gpus.size_known else gpus.gpu_size + 1


@lru_cache(maxsize=4096)  # an entry for each size of share that is asked for
def share_named(name: str) -> Share | None:
    """Returns the share that a resource name stands for, None for any other resource."""
    if not name.startswith((FRACTION + "/", MEMORY + "/")):
        return None
    kind, _, text = name.partition("/")
    size, _, devices = text.partition("x")
    count = int(devices or 1)
    return Share(size, 0, count) if kind == FRACTION else Share("", int(size), count)


def share_in(requests: Resources) -> Share | None:
    """Returns the share in a pod's requests, None if there is none; a pod has at most one."""
    for name in requests:
        if name.startswith(SHARE_PREFIX) and (share := share_named(name)) is not None:
            return share
    return None


@dataclass(frozen=True, slots=True)
class SharedGpus:
    """The GPUs of a node, for pods that share a GPU. Sizes are in MiB, or (`size_known` False) in hundredths
    of a GPU.

    `gpu_size`: the size of one GPU. `free`: the free size of each shared GPU, ascending. `pending`: the
    shares of reserved and bound pods to which KAI has assigned no GPU yet. `newly_used`: the fewest empty
    GPUs that the pending shares need; the node's free amount of GPUs does not contain them.
    """

    gpu_size: int
    size_known: bool
    free: tuple[int, ...] = ()
    pending: tuple[Part, ...] = ()
    newly_used: int = 0

    def fits(self, empty_gpus: int, parts: Iterable[Part]) -> bool:
        """Reports whether the shares `parts` and the pending ones fit on the shared GPUs, the `newly_used`
        GPUs and `empty_gpus` further GPUs (the node's free amount).
        """
        if empty_gpus < 0:
            return False
        return packs(
            self.free, empty_gpus + self.newly_used, self.gpu_size, _ordered((*self.pending, *parts))
        )

    def max_pods(self, share: Share, empty_gpus: int, limit: int, whole: int = 0) -> int:
        """Returns how many pods with this share fit together, at most `limit`. `whole`: the whole GPUs that
        each pod takes beside its share, by a claim.

        Uses a binary search: if a number of pods fits, every smaller number fits too.
        """
        part = (share.size(self), share.devices)
        if part[0] > self.gpu_size or empty_gpus < 0:
            return 0
        free_sizes = (*self.free, *(self.gpu_size,) * (empty_gpus + self.newly_used))
        low, high = 0, min(limit, sum(size // part[0] for size in free_sizes) // part[1])
        while low < high:
            middle = (low + high + 1) // 2
            if self.fits(empty_gpus - whole * middle, (part,) * middle):
                low = middle
            else:
                high = middle - 1
        return low


def why_share_never_fits(share: Share, hosts: Sequence[tuple[SharedGpus | None, int]]) -> str:
    """Returns why the share fits on none of these empty nodes, "" if it fits on one.

    `hosts`: for each node, its `SharedGpus` (None if its GPUs cannot be shared) and its number of GPUs.
    """
    sharing = [(gpus, count) for gpus, count in hosts if gpus is not None and count > 0]
    if any(gpus.max_pods(share, count, 1) for gpus, count in sharing):
        return ""
    if not sharing:
        return "no node that it may use has GPUs to share; those that MIG or time slicing divides are not."
    sizes = [gpus.gpu_size for gpus, _ in sharing if gpus.size_known]
    if share.memory and not sizes:
        why = f"no node that it may use says how much its GPUs have (label {MEMORY_LABEL})."
        return f"{why} Would work: {FRACTION}, or that label, which GPU feature discovery writes."
    if share.memory > max(sizes, default=share.memory):
        largest = f"{max(sizes)} MiB"
        return f"the largest GPU of a node that it may use has {largest}. Would work: {largest} or less."
    count = max(count for gpus, count in sharing if gpus.size_known or not share.memory)
    return (
        f"no node that it may use has more than {count} such GPUs. Would work: {DEVICES} of {count} or less."
    )


@lru_cache(maxsize=256)  # an entry for each size of a GPU
def _untouched(gpu_size: int, size_known: bool) -> SharedGpus:
    return SharedGpus(gpu_size, size_known)


def shared_gpus_of(node: Node) -> SharedGpus | None:
    """Returns the `SharedGpus` of a node without any share in use; None if none of its GPUs can be shared.

    KAI places no share on a node with MIG instances, and a time slice cannot be divided again.
    """
    if not node.allocatable.get(GPU) or divided(node.labels):
        return None
    for name, count in node.allocatable.items():  # not `any`: a generator for each node costs more than this
        if count > 0 and name.startswith(MIG_PREFIX):
            return None
    text = node.labels.get(MEMORY_LABEL, "")
    size = int(text) if text.isascii() and text.isdecimal() and len(text) < 19 else 0
    if size >= _MEBIBYTES:  # some versions of GPU feature discovery write bytes
        size //= _MEBIBYTES
    size -= size % 100
    return _untouched(size or _HUNDREDTHS, size > 0)


def shares_gpus(taken: Resources) -> bool:
    """Reports whether the amounts taken on a node include GPU shares."""
    return any(name.startswith(SHARE_PREFIX) for name in taken)


def shares_as_gpus(
    taken: Resources, pods: Iterable[BoundPod], gpus: SharedGpus | None, count: int
) -> tuple[dict[str, int], SharedGpus | None]:
    """Returns the amounts taken on a node, with shares replaced by the whole GPUs that they need; and the
    node's `SharedGpus` with these shares in use.

    A bound pod's share is on the GPUs that KAI assigned. Shares that are reserved, or whose bound pod has no
    GPU group, are assumed to use as few further GPUs as possible. `gpus` None: no GPUs can be shared.
    `count`: the node's GPUs. Shares use no more than these, whatever annotations and labels of bound pods
    say, which anybody may write: the packing takes exponential time in the number of GPUs.
    """
    amounts = {name: amount for name, amount in taken.items() if not name.startswith(SHARE_PREFIX)}
    if gpus is None:
        return amounts, None
    free_by_group: dict[str, int] = {}
    pending = {name: amount for name, amount in taken.items() if share_named(name)}
    for pod in pods:
        share = share_in(pod.requests)
        for group in pod.gpu_groups:
            size_left = free_by_group.get(group, gpus.gpu_size)
            free_by_group[group] = size_left - share.size(gpus) if share else size_left
        if share and pod.gpu_groups:
            pending[share.name] = pending.get(share.name, 0) - 1
    free = tuple(sorted(max(0, size_left) for size_left in free_by_group.values())[:count])
    parts = _ordered(_parts(pending, gpus, count))
    newly_used = _fewest(free, gpus.gpu_size, parts, count - len(free))
    amounts[GPU] = amounts.get(GPU, 0) + len(free) + newly_used
    return amounts, SharedGpus(gpus.gpu_size, gpus.size_known, free, parts, newly_used)


def _parts(pending: Resources, gpus: SharedGpus, node_gpus: int) -> Iterator[Part]:
    for name, count in pending.items():
        share = share_named(name)
        if share is not None and count > 0:
            # A share that is larger than a GPU (the pod was bound nevertheless) counts as a whole GPU, and
            # one on more GPUs than the node has as one on all.
            yield from ((min(share.size(gpus), gpus.gpu_size), min(share.devices, node_gpus)),) * count


def _ordered(parts: Iterable[Part]) -> tuple[Part, ...]:
    return tuple(sorted(parts, key=lambda part: (-part[1], -part[0])))


@lru_cache(maxsize=65_536)  # an entry for each state of the GPUs of a node, and shares to place
def _fewest(free: tuple[int, ...], gpu_size: int, parts: tuple[Part, ...], node_gpus: int) -> int:
    """Returns the fewest empty GPUs that the shares `parts` need in addition to shared GPUs with these `free`
    sizes, at most `node_gpus`. One GPU for each share and device is always enough.
    """
    upper = min(sum(devices for _, devices in parts), node_gpus)
    return next((count for count in range(upper) if packs(free, count, gpu_size, parts)), upper)


@lru_cache(maxsize=65_536)  # as above, for each number of empty GPUs that is tried
def packs(free: tuple[int, ...], empty: int, gpu_size: int, parts: tuple[Part, ...]) -> bool:
    """Reports whether the shares fit on GPUs with these `free` sizes and on `empty` further GPUs.

    Exact within `_MAX_STATES`. `parts`: those on the most GPUs first, then the largest. This is a depth-first
    search over states. GPUs with equal free sizes are interchangeable, so a state has the sorted free sizes.
    """
    wanted = sum(devices for _, devices in parts)
    all_free = tuple(sorted((*free, *(gpu_size,) * min(empty, wanted))))  # no share uses more than `wanted`
    if sum(size * devices for size, devices in parts) > sum(all_free):
        return False
    tail_start = _tail(parts)  # equal shares at the end need no search: counting decides
    stack, seen = [(0, all_free)], {(0, all_free)}
    while stack and len(seen) < _MAX_STATES:
        place, left = stack.pop()
        if place >= tail_start:
            if _equal_shares_fit(left, parts[place:]):
                return True
            continue
        size, devices = parts[place]
        states = [(place + 1, after) for after in _ways(left, size, devices)]
        unseen = [state for state in states if state not in seen]
        seen.update(unseen)
        stack.extend(reversed(unseen))
    return False


def _tail(parts: tuple[Part, ...]) -> int:
    """Returns the index at which the last run of equal shares begins."""
    runs = [len(list(run)) for _, run in groupby(parts)]
    return len(parts) - (runs[-1] if runs else 0)


def _equal_shares_fit(free: tuple[int, ...], parts: tuple[Part, ...]) -> bool:
    """Reports whether the shares of several pods, all equal, fit: each GPU takes as many as have room, but at
    most one of each pod.
    """
    if not parts:
        return True
    size, devices = parts[0]
    return sum(min(size_left // size, len(parts)) for size_left in free) >= devices * len(parts)


def _ways(free: tuple[int, ...], size: int, devices: int) -> Iterator[tuple[int, ...]]:
    """Yields each possible result, the sorted free sizes, of placing one pod's share on `devices` different
    GPUs.
    """
    if devices == 0:
        yield free
        return
    counts = {size_left: free.count(size_left) for size_left in sorted(set(free)) if size_left >= size}

    def choose(sizes_left: list[int], left: int, chosen: dict[int, int]) -> Iterator[dict[int, int]]:
        if not left:
            yield chosen
        elif sizes_left:
            for count in range(min(left, counts[sizes_left[0]]), -1, -1):
                yield from choose(sizes_left[1:], left - count, {**chosen, sizes_left[0]: count})

    for chosen in choose(list(counts), devices, {}):
        after = list(free)
        for size_left, count in chosen.items():
            for _ in range(count):
                after.remove(size_left)
                after.append(size_left - size)
        yield tuple(sorted(after))
