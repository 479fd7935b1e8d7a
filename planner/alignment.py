"""What of a pod the kubelet aligns to NUMA zones, in its order: records only (`planner.qos` reads them)."""

from __future__ import annotations

from dataclasses import dataclass, field

from planner.quantity import Resources


@dataclass(frozen=True, slots=True)
class Ask:
    """What is aligned in one go: a container's request, or the pod's. `stays`: it keeps what it gets."""

    name: str = field(compare=False)
    requests: Resources = field(hash=False)
    stays: bool = True


@dataclass(frozen=True, slots=True)
class Alignment:
    """A pod as the Topology Manager sees it, under either of its scopes; who asks for nothing is left out.

    `key` stands for all of it in keys of what is remembered.
    """

    containers: tuple[Ask, ...] = ()
    pod: tuple[Ask, ...] = ()

    def asks(self, scope: str) -> tuple[Ask, ...]:
        """What is aligned one after the other under the scope "container" or "pod"."""
        return self.pod if scope == "pod" else self.containers

    @property
    def key(self) -> tuple[tuple[bool, tuple[tuple[str, int], ...]], ...]:
        """All that tells two alignments apart, hashable."""
        return tuple(
            (ask.stays, tuple(sorted(ask.requests.items()))) for ask in (*self.containers, *self.pod)
        )

    def __bool__(self) -> bool:
        return bool(self.containers or self.pod)


NOTHING = Alignment()


def assumed(requests: Resources) -> Alignment:
    """The alignment of a pod of which only the sum is known: its devices, in one container."""
    devices = {name: amount for name, amount in requests.items() if "/" in name and amount > 0}
    asks = (Ask("", devices),) if devices else ()
    return Alignment(asks, asks)
