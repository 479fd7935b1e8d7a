"""What a placement costs, as one number whose order is the order of choice.

From the most to the least significant digit: the domains used, level by level from the coarsest down to the
hosts; the pristine domains opened, in the same order; how far the hosts fall short of the preferred node
affinity; what is free in the domains used (so that the fullest that serve are taken), in the same order.
Each digit is wide enough never to carry, and costs of disjoint parts add up.
"""

from __future__ import annotations

from dataclasses import dataclass

from planner.view import View


@dataclass(frozen=True, slots=True)
class Weights:
    """The value of one unit of each digit, by level where a digit has levels."""

    domains: tuple[int, ...]
    opened: tuple[int, ...]
    penalty: int
    free: tuple[int, ...]


def weights(view: View, worst_penalty: int) -> Weights:
    """Weights for a view in which one host's penalty is at most `worst_penalty`."""
    levels = len(view.tree.topology.levels)
    hosts = len(view.tree.nodes)
    count_bits = (hosts + 1).bit_length()
    free_bits = (view.worth[-1] + 1).bit_length()
    penalty_bits = (worst_penalty * hosts + 1).bit_length()
    shift = 0
    steps: list[int] = []
    for bits in [free_bits] * levels + [penalty_bits] + [count_bits] * (2 * levels):
        steps.append(1 << shift)
        shift += bits
    free, rest = steps[:levels], steps[levels:]
    return Weights(
        domains=tuple(reversed(rest[1 + levels :])),
        opened=tuple(reversed(rest[1 : 1 + levels])),
        penalty=rest[0],
        free=tuple(reversed(free)),
    )
