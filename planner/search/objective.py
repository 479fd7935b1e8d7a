"""The cost of a placement as one whole number: the placement with the smallest cost is chosen.

    two pods of a node each          racks  nodes  opened racks  ...
    in one rack that is in use         1      2         0               cheapest
    in one pristine rack               1      2         1
    in two racks that are in use       2      2         0               dearest: the first digit decides

The digits, from the most to the least significant:

1. the domains used, level by level from the coarsest down to the hosts
2. the pristine domains opened, from the coarsest down to the reservable level
3. the reservable domains in which no gang holds anything yet: a hold inside one keeps away every gang that
   wants the whole domain
4. the pristine domains opened below the reservable level
5. by how much the hosts miss the preferred node affinity
6. the free capacity in the domains used, in the order of the first digit, so that the fullest ones win

Each digit is wide enough never to carry, and the costs of disjoint parts add up.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from planner.cluster.capacity import DomainCapacity
from planner.model.topology import Topology


@dataclass(frozen=True, slots=True)
class Weights:
    """The weight of one unit of each digit, by level where a digit has levels."""

    domains: tuple[int, ...]
    opened: tuple[int, ...]
    unheld: int
    reservable: int
    penalty: int
    free: tuple[int, ...]

    def breaks(self, capacity: DomainCapacity) -> int:
        """What touching the domain breaks: a pristine one, or one of the reservable level without holder."""
        opened = 0 if capacity.opened else self.opened[capacity.level]
        return opened + (self.unheld if capacity.level == self.reservable and not capacity.gang else 0)

    def own(self, capacity: DomainCapacity) -> int:
        """What touching the domain costs, what is inside it aside."""
        level = capacity.level
        return self.domains[level] + self.breaks(capacity) + self.free[level] * capacity.worth


def weights(topology: Topology, empty: DomainCapacity, worst_penalty: int) -> Weights:
    """Weights for a topology with this capacity when empty, where a host's penalty is `worst_penalty` at
    most.

    They do not depend on the running pods: free capacity is never more than in the empty cluster.
    """
    levels, reservable = len(topology.levels), topology.reservable_index
    count_bits = (empty.size + 1).bit_length()
    free_bits = (empty.worth + 1).bit_length()
    penalty_bits = (worst_penalty * empty.size + 1).bit_length()
    shift = 0

    def digits(bits: int, count: int) -> list[int]:
        """So many digits of these bits, the most significant first."""
        nonlocal shift
        steps = [1 << (shift + bits * place) for place in range(count)]
        shift += bits * count
        return steps[::-1]

    free = digits(free_bits, levels)
    (penalty,) = digits(penalty_bits, 1)
    below = digits(count_bits, levels - 1 - reservable)
    (unheld,) = digits(count_bits, 1)
    above = digits(count_bits, reservable + 1)
    domains = digits(count_bits, levels)
    return Weights(tuple(domains), (*above, *below), unheld, reservable, penalty, tuple(free))


def without(weights: Weights, levels: Collection[int]) -> Weights:
    """The same where domains of these levels cost nothing, whatever is in them."""

    def bare(digits: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(0 if level in levels else digit for level, digit in enumerate(digits))

    return replace(
        weights, domains=bare(weights.domains), opened=bare(weights.opened), free=bare(weights.free)
    )
