"""What a domain holds at one moment, as a value: equal contents are one object, wherever they lie.

A tree says where domains are, its contents what is free in them. Contents never change. When a node does,
the contents on the way from it up to the root are made anew and all others shared; so what a plan worked out
about a content serves every later plan, and 500 equal racks are looked at once.

Long rows in parts: what was worked out about a part is still good when another part has changed.

A root with 700 blocks would be walked from end to end for every plan. In parts, and these in parts again
while there are many, only the part with the change is looked at anew, and beside it each other part once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from planner.devices.availability import AvailableDevices
from planner.model.labels import Taint
from planner.model.quantity import Resources
from planner.model.resources import CLAIMED_GPU, GPU_RESOURCES, MIG_PREFIX
from planner.node.gpu_sharing import Gpus
from planner.node.numa_state import NumaState

T = TypeVar("T")


MOST_CORES = 4095


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class DomainCapacity:
    """A domain's content. `size`: its nodes. `opened`: not pristine. `gang`: one that touches it, "" none.

    `worth`: free devices in 4096ths, the rest being free cores. Of a host `free` is what is left of it,
    `held` the gang that holds it whole, `taints`, `cordoned` and `ready` whom it takes, `gpus` its GPUs as
    pods see them that share one; others have children. Where these are many, `parts` are contents of several
    neighbours each, which are `part` of the same domain and of its level.
    """

    level: int
    named: bool
    size: int
    opened: bool
    gang: str
    worth: int
    children: tuple[DomainCapacity, ...] = ()
    free: Resources | None = None
    held: str = ""
    taints: tuple[Taint, ...] = ()
    cordoned: bool = False
    ready: bool = True
    gpus: Gpus | None = None
    zones: NumaState | None = None
    """NUMA zones, of a host whose kubelet refuses what does not fit them."""
    stock: AvailableDevices | None = None
    """Its devices as claims see them, where ResourceSlices tell them."""
    inner: int = 0
    """GPUs of each NVLink domain inside a host; 0 where it is one domain."""
    parts: tuple[DomainCapacity, ...] = ()
    part: bool = False
    span: int = 1
    """How many of the domain's children a part has; 1 of what is no part."""

    @property
    def coarsest(self) -> int:
        """The level of the coarsest domains that lie whole in here."""
        return self.level + self.part


def hosts(content: DomainCapacity) -> Iterator[DomainCapacity]:
    """The contents of a domain's hosts, in the order of the nodes."""
    if content.free is not None:
        yield content
    for child in content.children:
        yield from hosts(child)


def worth(free: Resources) -> int:
    """What free amounts are worth: devices first, then cores."""
    devices = sum(
        amount
        for name, amount in free.items()
        if amount > 0 and (name in GPU_RESOURCES or name == CLAIMED_GPU or name.startswith(MIG_PREFIX))
    )
    return devices * (MOST_CORES + 1) + max(0, min(MOST_CORES, free.get("cpu", 0) // 1000))


Item = TypeVar("Item")


WIDE, PART = 24, 12
"""The longest row that is left whole, and the length of a part."""


def chunked(row: Sequence[Item], join: Callable[[tuple[Item, ...]], Item]) -> tuple[Item, ...]:
    """The row's parts, few enough to be looked at one by one; () where the row itself is.

    `join` makes one of several neighbours, of parts too. The parts hang on the row alone, so two rows of one
    length are divided alike.
    """
    if len(row) <= WIDE:
        return ()
    parts = tuple(row)
    while len(parts) > WIDE:
        parts = tuple([join(parts[start : start + PART]) for start in range(0, len(parts), PART)])
    return parts
