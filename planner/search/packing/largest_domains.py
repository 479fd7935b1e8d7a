"""What the largest domain of each level holds, and the bounds that follow if every domain holds as much.

    free nodes of racks: b1 18, 18, 12   b2 19, 12, 12     one block holds at most 19, 36, 48 in 1, 2, 3 racks

90 pods of a whole node each need two blocks. By the largest rack alone they need five racks (5 * 19 = 95), so
a sum with 14 pods in one rack would be kept: the other 76 may be in four racks. But in two blocks, four racks
hold at most 36 + 36 = 72, so it is dropped at once.

These are the bounds of `joint_bounds` with the surplus of the largest domain for each domain. They are
weaker, but cost microseconds after a change, and most changes leave the largest domains as they are, so what
is cached under a limit stays valid. For 144 whole nodes on 100,000, half of the racks in use, the first plan
took 90 ms by the largest rack alone, and 58 with these bounds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate, zip_longest

from planner.search.packing.capacity_classes import CapacityClass, CapacityClasses

Held = tuple[int, ...]
"""The maximum number of pods that one, two, … domains of a level hold inside one domain of the next coarser
level."""


class LargestDomains:
    """What the largest domains inside those of each class hold, for a single pod class."""

    def __init__(self, classes: CapacityClasses) -> None:
        self._classes = classes
        self._held: dict[int, tuple[Held, ...]] = {}

    def __len__(self) -> int:
        return len(self._held)

    def held(self, class_id: int) -> tuple[Held, ...]:
        """Returns, for each level inside a domain of the class but the hosts, what domains of the next finer
        level hold inside one domain of the level.

        Of a domain of hosts only the largest host is listed, for any number of hosts: most hold equally many.
        """
        held = self._held.get(class_id)
        if held is None:
            domain_class = self._classes.domain_classes[class_id]
            children = domain_class.children if domain_class else ()
            rows = [self._row(child) for child in dict.fromkeys(children)]
            held = self._held[class_id] = tuple(map(_highest, zip(*rows, strict=True)))
        return held

    def _row(self, class_id: int) -> tuple[Held, ...]:
        """Returns what a child's own children hold, then `held` of the child; a chunk is no own domain."""
        domain_class = self._classes.domain_classes[class_id]
        if domain_class is None:
            return ()
        if domain_class.is_chunk:
            return self.held(class_id)
        _, *inner_peaks = self._classes.peaks[class_id]
        if len(inner_peaks) == 1:  # those of hosts
            return tuple(inner_peaks)
        reach = [self._classes.reach[child] for child in self._children(domain_class)]
        return (tuple(accumulate(sorted(reach, reverse=True))), *self.held(class_id))

    def _children(self, domain_class: CapacityClass) -> Iterator[int]:
        """Yields the classes of a domain's children, with those of a chunk in its place."""
        for child in domain_class.children:
            chunk = self._classes.domain_classes[child]
            if chunk and chunk.is_chunk:
                yield from self._children(chunk)
            else:
                yield child


def _highest(column: Sequence[Held]) -> Held:
    """Returns the maximum of each place; a domain without further children holds no more with them."""
    return tuple(accumulate(map(max, zip_longest(*column, fillvalue=0)), max))
