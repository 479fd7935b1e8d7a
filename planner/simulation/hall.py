"""A simulated GPU hall: equal racks of equal nodes."""

from __future__ import annotations

from planner.simulation.rack_use import RackUse


class Hall(RackUse):
    """A hall of `racks` racks, with `per_rack` nodes each, with `per_node` GPUs each."""

    def __init__(self, racks: int, per_rack: int, per_node: int) -> None:
        """Creates a hall with all GPUs free. Raises `ValueError` for a number below one."""
        if min(racks, per_rack, per_node) < 1:
            raise ValueError("a floor has at least one rack, one node a rack and one GPU a node")
        super().__init__([[per_node] * per_rack] * racks)
        self.per_rack, self.per_node = per_rack, per_node

    def nodes(self, rack: int) -> range:
        """Returns the numbers of the nodes in a rack."""
        return range(rack * self.per_rack, (rack + 1) * self.per_rack)
