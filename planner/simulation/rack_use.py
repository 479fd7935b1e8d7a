"""The GPUs in use in racks of nodes, with counts that each change updates."""

from __future__ import annotations

from collections.abc import Sequence

Taken = list[tuple[int, int]]
"""Pairs: the index of a node, and the number of GPUs taken on it."""


class RackUse:
    """The number of free GPUs of each node, with sums over racks and all nodes.

    Numbers of GPUs: `capacity[n]`, `free[n]`, all and free ones of node n; `idle[r]`, free ones of rack r;
    `busy`, all taken ones. Numbers of nodes: `whole[r]`, those of rack r with all GPUs free; `partly`, those
    with both taken and free GPUs. `pristine`: the number of racks with no GPU taken.
    """

    def __init__(self, racks: Sequence[Sequence[int]]) -> None:
        """Creates racks with all GPUs free. `racks`: for each rack, the number of GPUs of each node."""
        self.capacity = [gpus for rack in racks for gpus in rack]
        self.free = list(self.capacity)
        self.whole = [len(rack) for rack in racks]
        self.idle = [sum(rack) for rack in racks]
        self.busy = self.partly = 0
        self.pristine = self.racks = len(racks)
        self.nodes_by_rack = [len(rack) for rack in racks]
        self._rack_of = [number for number, rack in enumerate(racks) for _ in rack]
        self._full = list(self.idle)

    @property
    def gpus(self) -> int:
        """The total number of GPUs."""
        return sum(self.capacity)

    def rack(self, node: int) -> int:
        """Returns the number of the rack of a node."""
        return self._rack_of[node]

    def take(self, taken: Taken) -> None:
        """Takes GPUs. Raises `ValueError` if a node has fewer free GPUs."""
        for node, gpus in taken:
            if gpus > self.free[node]:
                raise ValueError(f"node {node} has {self.free[node]} free GPUs, not {gpus}")
            self._change(node, -gpus)

    def give(self, taken: Taken) -> None:
        """Returns GPUs to their nodes. Raises `ValueError` if a node would have more than its total."""
        for node, gpus in taken:
            if self.free[node] + gpus > self.capacity[node]:
                raise ValueError(f"node {node} never had {gpus} GPUs taken")
            self._change(node, gpus)

    def _change(self, node: int, gpus: int) -> None:
        rack, before, capacity = self._rack_of[node], self.free[node], self.capacity[node]
        after = self.free[node] = before + gpus
        self.busy -= gpus
        self.partly += (0 < after < capacity) - (0 < before < capacity)
        self.whole[rack] += (after == capacity) - (before == capacity)
        full = self._full[rack]
        self.pristine += (self.idle[rack] + gpus == full) - (self.idle[rack] == full)
        self.idle[rack] += gpus

    def spread(self, taken: Taken) -> Sequence[int]:
        """Returns the number of these GPUs in each rack that has any of them."""
        rack_gpus: dict[int, int] = {}
        for node, gpus in taken:
            rack = self.rack(node)
            rack_gpus[rack] = rack_gpus.get(rack, 0) + gpus
        return list(rack_gpus.values())
