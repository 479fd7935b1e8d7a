"""The free capacity of a domain at one moment, as a value: equal capacities are one object.

A tree says which domains exist; a capacity says what is free in them. Capacities never change. When a node
changes, the capacities on the path from the node to the root are rebuilt, and all others are shared. A result
computed for a capacity is therefore valid for every later plan, and 500 equal racks are computed once.

Example: racks r1 and r2 each have a free node with 4 GPUs and a full node; r3 has two free nodes. There are
two host capacities (free, full), two rack capacities A and B, and one block capacity with the children (A, A,
B), where both A are the same object.

A long list of children is divided into chunks, and a long list of chunks is divided again. Otherwise every
plan would visit each child of a root with 700 blocks. With chunks a plan visits the chunks that changed, and
every other distinct chunk once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from planner.devices.availability import AvailableDevices
from planner.model.labels import Taint
from planner.model.resources import MIG_PREFIX, WHOLE_GPUS, Resources
from planner.node.gpu_sharing import SharedGpus
from planner.node.numa_state import NumaState

MAX_CORES = 4095
"""Maximum number of cores that count toward a host's worth: 12 bits, so one device outweighs all cores."""


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class DomainCapacity:
    """The free capacity of a domain. Equal capacities are one object (`CapacityPool`).

    `level`: the index of the domain's level, -1 for the whole topology. `has_name`: False if its nodes lack
    the label of this level. `size`: the number of nodes. `opened`: a node is in use (not pristine). `gang`: a
    gang that holds or uses a part of the domain, "" for none. `worth`: free devices times 4096, plus free
    cores (`worth_of`); of domains that are equally good otherwise, a plan uses the one with the lowest worth.
    `inner_worths`: the highest worth of one domain of each level inside this one, from its children to the
    hosts; () for a host.

    Only hosts have `free` (the remaining amounts), `held` (the gang that holds the whole host), `taints`,
    `cordoned`, `ready`, and `gpus` (for pods that share a GPU). All other domains have `children`. If there
    are many children, `chunks` are capacities of several neighbouring children each. A chunk has `is_chunk`
    set, and the level of the domain whose children it covers.
    """

    level: int
    has_name: bool
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
    gpus: SharedGpus | None = None
    numa_state: NumaState | None = None
    """The NUMA zones of a host whose kubelet refuses pods that it cannot align to them, else None."""
    available_devices: AvailableDevices | None = None
    """The devices of a host with ResourceSlices, for claims; else None."""
    nvlink_size: int = 0
    """The number of GPUs in each NVLink domain inside a host; 0 if the host is one NVLink domain."""
    chunks: tuple[DomainCapacity, ...] = ()
    is_chunk: bool = False
    span: int = 1
    """For a chunk, the number of the domain's children that it covers; for a capacity that is no chunk, 1."""
    inner_worths: tuple[int, ...] = ()

    @property
    def amounts(self) -> Resources:
        """The free amounts of a host; only hosts have them."""
        assert self.free is not None, "only hosts are packed"
        return self.free

    @property
    def coarsest(self) -> int:
        """The coarsest level whose domains this capacity contains completely.

        A chunk contains only a part of its own domain, but each of that domain's children completely.
        """
        return self.level + self.is_chunk

    def highest_worth(self, level: int) -> int:
        """Returns the highest worth of one domain of the level inside this one, or of this one itself."""
        if level == self.level:
            return self.worth
        return self.inner_worths[level - self.level - 1] if self.inner_worths else 0


def hosts(capacity: DomainCapacity) -> Iterator[DomainCapacity]:
    """Yields the capacities of a domain's hosts, in the order of the nodes."""
    if capacity.free is not None:
        yield capacity
    for child in capacity.children:
        yield from hosts(child)


def worth_of(free: Resources) -> int:
    """Returns a number that orders free amounts by GPUs and MIG devices first, then by cores."""
    return least_worth(free) + max(0, min(MAX_CORES, free.get("cpu", 0) // 1000))


def least_worth(requests: Resources) -> int:
    """Returns the worth of the devices alone: hosts with a lower worth do not have these amounts free."""
    devices = sum(
        amount
        for name, amount in requests.items()
        if amount > 0 and (name in WHOLE_GPUS or name.startswith(MIG_PREFIX))
    )
    return devices * (MAX_CORES + 1)


Item = TypeVar("Item")


WIDE, CHUNK = 24, 12
"""The longest list of children that is not divided, and the length of a chunk. A rack of 18 nodes stays
whole; a root of 700 blocks becomes 59 chunks, and these become 5. A change then visits 12 + 12 + 5 entries,
not 700.
"""


def chunked(row: Sequence[Item], join: Callable[[tuple[Item, ...]], Item]) -> tuple[Item, ...]:
    """Returns the chunks of a row (a domain's children), at most `WIDE`; () if the row itself is that short.

    `join` makes one capacity of several neighbours, which may be chunks. Chunks begin at fixed indexes, so
    rows of equal length are divided in the same way and share their equal chunks.
    """
    if len(row) <= WIDE:
        return ()
    chunks = tuple(row)
    while len(chunks) > WIDE:
        chunks = tuple([join(chunks[start : start + CHUNK]) for start in range(0, len(chunks), CHUNK)])
    return chunks
