"""What of a pod the kubelet aligns to NUMA zones, read from its spec.

Source: the kubelet's CPU, Memory and Device Manager. Devices are always aligned; cpu, memory and huge pages
only for a Guaranteed pod whose resources are stated by container, and a container's CPUs only where they are
whole, for others run on the shared ones. Under the scope of the pod all of it is asked for at once, of the
init containers only what goes beyond.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache

from planner import quantity
from planner.alignment import NOTHING, Alignment, Ask
from planner.errors import Where
from planner.reading import mapping, maps, text

PINNED = ("cpu", "memory")
_Amounts = tuple[tuple[str, int], ...]


def alignment_of(spec: Mapping[str, object], where: Where) -> Alignment:
    """The alignment of a pod with this spec. Raises `InputError` for malformed resources."""
    pinned = is_guaranteed(spec, where) and not spec.get("resources")
    found: list[tuple[str, bool, _Amounts]] = []
    for container, stays in _containers(spec, where):
        amounts = _aligned(_requests(container, where), pinned)
        if amounts:
            name = text(container.get("name"), where)
            found.append((name, stays, tuple(sorted(amounts.items()))))
    return _alignment(tuple(found)) if found else NOTHING


def is_guaranteed(spec: Mapping[str, object], where: Where) -> bool:
    """Whether every container has cpu and memory, above zero, requests equal to limits."""
    found = [container for container, _ in _containers(spec, where)]
    return bool(found) and all(_pinned(container, where) for container in found)


@lru_cache(maxsize=4096)
def _alignment(found: tuple[tuple[str, bool, _Amounts], ...]) -> Alignment:
    """One record for all pods that ask for the same, for there are many of them."""
    asks = tuple(Ask(name, dict(amounts), stays) for name, stays, amounts in found)
    total: dict[str, int] = {}
    for ask in asks:
        for name, amount in ask.requests.items():
            total[name] = total.get(name, 0) + amount if ask.stays else max(total.get(name, 0), amount)
    return Alignment(asks, (Ask("", total),))


def _containers(spec: Mapping[str, object], where: Where) -> Iterator[tuple[Mapping[str, object], bool]]:
    """Init containers, then containers, as the kubelet admits them; whether each keeps what it gets."""
    for container in maps(spec.get("initContainers"), where.at("initContainers")):
        yield container, container.get("restartPolicy") == "Always"
    for container in maps(spec.get("containers"), where.at("containers")):
        yield container, True


def _requests(container: Mapping[str, object], where: Where) -> dict[str, int]:
    resources = mapping(container.get("resources"), where)
    limits = quantity.amounts(resources.get("limits"), where, up=True)
    return {**limits, **quantity.amounts(resources.get("requests"), where, up=True)}


def _pinned(container: Mapping[str, object], where: Where) -> bool:
    limits = quantity.amounts(mapping(container.get("resources"), where).get("limits"), where, up=True)
    requests = _requests(container, where)
    return all(limits.get(name, 0) > 0 and limits[name] == requests[name] for name in PINNED)


def _aligned(requests: Mapping[str, int], pinned: bool) -> dict[str, int]:
    shared_cpus = requests.get("cpu", 0) % 1000 != 0
    return {
        name: amount
        for name, amount in requests.items()
        if amount > 0
        and name not in ("pods", "ephemeral-storage")
        and (pinned or not (name in PINNED or name.startswith("hugepages-")))
        and not (name == "cpu" and shared_cpus)
    }
