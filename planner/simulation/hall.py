"""A simulated GPU hall: equal racks of equal nodes, and the free GPUs of each."""

from __future__ import annotations

from collections.abc import Sequence

Taken = list[tuple[int, int]]
"""Nodes by number, each with the GPUs taken on it."""


class Hall:
    """Free GPUs by node, with the sums that a simulation reads, updated as GPUs are taken and given back.

    `free[n]`: free GPUs of node n. `whole[r]`: nodes of rack r with all GPUs free. `busy`: GPUs taken.
    `partly`: nodes with both taken and free GPUs. `pristine`: racks with no GPU taken.
    """

    def __init__(self, racks: int, per_rack: int, per_node: int) -> None:
        """A floor with nothing taken. Raises `ValueError` for a number below one."""
        if min(racks, per_rack, per_node) < 1:
            raise ValueError("a floor has at least one rack, one node a rack and one GPU a node")
        self.racks, self.per_rack, self.per_node = racks, per_rack, per_node
        self.free = [per_node] * (racks * per_rack)
        self.whole = [per_rack] * racks
        self.idle = [per_rack * per_node] * racks
        self.busy = self.partly = 0
        self.pristine = racks

    @property
    def gpus(self) -> int:
        """The total of GPUs."""
        return len(self.free) * self.per_node

    def rack(self, node: int) -> int:
        """The rack of a node."""
        return node // self.per_rack

    def nodes(self, rack: int) -> range:
        """The nodes of a rack."""
        return range(rack * self.per_rack, (rack + 1) * self.per_rack)

    def take(self, taken: Taken) -> None:
        """Takes GPUs. Raises `ValueError` where a node has fewer free."""
        for node, gpus in taken:
            if gpus > self.free[node]:
                raise ValueError(f"node {node} has {self.free[node]} free GPUs, not {gpus}")
            self._change(node, -gpus)

    def give(self, taken: Taken) -> None:
        """Gives GPUs back. Raises `ValueError` where a node would have more than its total."""
        for node, gpus in taken:
            if self.free[node] + gpus > self.per_node:
                raise ValueError(f"node {node} never had {gpus} GPUs taken")
            self._change(node, gpus)

    def _change(self, node: int, gpus: int) -> None:
        rack, before = node // self.per_rack, self.free[node]
        after = self.free[node] = before + gpus
        self.busy -= gpus
        self.partly += (0 < after < self.per_node) - (0 < before < self.per_node)
        self.whole[rack] += (after == self.per_node) - (before == self.per_node)
        full = self.per_rack * self.per_node
        self.pristine += (self.idle[rack] + gpus == full) - (self.idle[rack] == full)
        self.idle[rack] += gpus

    def spread(self, taken: Taken) -> Sequence[int]:
        """The number of these GPUs in each rack that has any."""
        rack_gpus: dict[int, int] = {}
        for node, gpus in taken:
            rack = self.rack(node)
            rack_gpus[rack] = rack_gpus.get(rack, 0) + gpus
        return list(rack_gpus.values())
