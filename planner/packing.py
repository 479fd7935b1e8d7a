"""How many pods one node holds: exact, for one kind of pods or for several at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from planner.podgroup import PodShape
from planner.quantity import Resources
from planner.request import Kind


def most(free: Resources, shape: PodShape) -> int:
    """Pods of this shape that the free amounts hold."""
    return max(0, min((free.get(name, 0) // need for name, need in shape.requests.items()), default=0))


class HostFit:
    """What one node could hold of several kinds at a time: the counts that no other exceed."""

    def __init__(self, kinds: Sequence[Kind], host_level: int) -> None:
        self._requests = [kind.shape.requests for kind in kinds]
        self._caps = [1 if host_level in kind.apart else kind.count for kind in kinds]
        self._resources = sorted({name for request in self._requests for name in request})
        self._memo: dict[tuple[tuple[int, ...], tuple[bool, ...]], tuple[tuple[int, ...], ...]] = {}

    def best(self, free: Resources, allowed: tuple[bool, ...]) -> tuple[tuple[int, ...], ...]:
        """The largest possible counts, in descending order; empty where not one pod fits."""
        key = (tuple(free.get(name, 0) for name in self._resources), allowed)
        found = self._memo.get(key)
        if found is None:
            found = self._memo[key] = self._search(dict(zip(self._resources, key[0], strict=True)), allowed)
        return found

    def _search(self, free: Mapping[str, int], allowed: tuple[bool, ...]) -> tuple[tuple[int, ...], ...]:
        found: list[tuple[int, ...]] = []
        last = len(self._requests) - 1

        def extend(kind: int, left: Mapping[str, int], counts: tuple[int, ...]) -> None:
            request = self._requests[kind]
            room = self._caps[kind] if allowed[kind] else 0
            room = max(0, min([room, *(left.get(name, 0) // need for name, need in request.items())]))
            if kind == last:
                whole = (*counts, room)
                if not any(all(map(int.__ge__, other, whole)) for other in found):
                    found.append(whole)
                return
            for count in range(room, -1, -1):
                rest = {name: amount - request.get(name, 0) * count for name, amount in left.items()}
                extend(kind + 1, rest, (*counts, count))

        extend(0, free, ())
        return tuple(counts for counts in found if any(counts))
