"""The cost of a placement as one integer: the placement with the lowest cost is chosen.

    two pods of a whole node each    racks  nodes  opened racks  ...
    in one rack that is in use         1      2         0               cheapest
    in one pristine rack               1      2         1
    in two racks that are in use       2      2         0               highest cost: the first digit decides

The digits of the integer, from the most to the least significant:

1. the number of domains used, level by level from the coarsest to the hosts
2. the number of pristine (unused) domains that are opened, from the coarsest to the reservable level, the
   level of the domains that a gang can hold whole
3. the number of domains of the reservable level that are used and in which no other gang is: no other gang
   could then hold such a domain whole
4. the number of pristine domains that are opened below the reservable level
5. the penalty of the hosts: how much of the weight of preferred node affinity they miss
6. the free capacity (`DomainCapacity.worth`) of the used domains, in the order of the first digit, so that
   full domains are preferred

Each digit is wide enough never to overflow into the next, and the costs of disjoint parts of a placement can
be added.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from planner.cluster.capacity import DomainCapacity, least_worth
from planner.model.resolved import ResolvedShape
from planner.model.topology import Topology
from planner.node.packing import takes_amounts_only


@dataclass(frozen=True, slots=True)
class Weights:
    """The weight of one unit of each digit; by level, coarse to fine, if the digit counts by level.

    `domains`: digit 1 of the module's list; `opened`: 2 and 4; `unheld`: 3; `penalty`: 5; `free`: 6.
    `reservable` is not a weight but the index of the reservable level.
    """

    domains: tuple[int, ...]
    opened: tuple[int, ...]
    unheld: int
    reservable: int
    penalty: int
    free: tuple[int, ...]

    def breaks(self, capacity: DomainCapacity) -> int:
        """Returns the cost of opening the domain if it is pristine, and of using it if it is a domain of the
        reservable level in which no gang is; else 0.
        """
        opened = 0 if capacity.opened else self.opened[capacity.level]
        return opened + (self.unheld if capacity.level == self.reservable and not capacity.gang else 0)

    def own(self, capacity: DomainCapacity) -> int:
        """Returns the cost of using the domain itself, without the domains inside it."""
        level = capacity.level
        return self.domains[level] + self.breaks(capacity) + self.free[level] * capacity.worth


def weights(topology: Topology, empty: DomainCapacity, worst_penalty: int) -> Weights:
    """Returns the weights for a topology. `empty`: its capacity in the empty cluster, from which the width of
    the digits follows, so the weights do not depend on running pods. `worst_penalty`: the maximum penalty of
    one host.
    """
    levels, reservable = len(topology.levels), topology.reservable_index
    count_bits = (empty.size + 1).bit_length()
    free_bits = (empty.worth + 1).bit_length()
    penalty_bits = (worst_penalty * empty.size + 1).bit_length()
    shift = 0

    def digits(bits: int, count: int) -> list[int]:
        """Returns the weights of `count` digits of `bits` bits each, the most significant first, above all
        digits that were made before.
        """
        nonlocal shift
        steps = [1 << (shift + bits * index) for index in range(count)]
        shift += bits * count
        return steps[::-1]

    # From the least significant digit to the most significant: the list in the module, backwards.
    free = digits(free_bits, levels)
    (penalty,) = digits(penalty_bits, 1)
    below = digits(count_bits, levels - 1 - reservable)
    (unheld,) = digits(count_bits, 1)
    above = digits(count_bits, reservable + 1)
    domains = digits(count_bits, levels)
    return Weights(tuple(domains), (*above, *below), unheld, reservable, penalty, tuple(free))


def without(weights: Weights, levels: Collection[int]) -> Weights:
    """Returns the weights with those of these levels set to 0: using domains of them then costs nothing."""

    def bare(digits: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(0 if level in levels else digit for level, digit in enumerate(digits))

    return replace(
        weights, domains=bare(weights.domains), opened=bare(weights.opened), free=bare(weights.free)
    )


def device_worth(shape: ResolvedShape) -> int:
    """Returns the worth of the devices that a pod takes, as far as the worth of a node's free amounts has
    them: claimed devices and parts of GPUs may be others. A node of lower worth has no room for the pod.
    """
    return least_worth(shape.requests) if takes_amounts_only(shape) else 0
