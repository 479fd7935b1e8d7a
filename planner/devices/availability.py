"""A node's devices at one moment, as a value: which claims they still serve, together with those that wait.

A number of claims fits where each can be given devices of its own: a real assignment of requests to devices,
whatever the order in which the scheduler comes to them. Source: `resource.k8s.io` as its allocator reads it
(alternatives, `All`, match and distinct attributes, counters, taints). Kubernetes gives devices pod by pod,
the first that serve; so it may come to worse than what is possible, as it may with parts of GPUs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from planner.devices.allocator import Wanted, fits, free_to_share
from planner.devices.node_devices import NodeDevices, bits
from planner.model.claim_spec import UNKNOWN, ClaimSpec, DeviceRequest


@dataclass(frozen=True, slots=True)
class AvailableDevices:
    """`busy`: the devices that claims have been given. `waiting`: claims that are promised and have none yet.

    `shared`: the device plugin gives the same GPUs, of which `plugged` are in use by it.
    """

    layout: NodeDevices
    busy: int = 0
    waiting: Wanted = ()
    shared: bool = False
    plugged: int = 0

    def holds(self, more: Iterable[tuple[ClaimSpec, int]], plugged: int = 0) -> bool:
        """Whether these claims have devices beside what waits, with so many GPUs more for the plugin."""
        wanted: Counter[ClaimSpec] = Counter(dict(self.waiting))
        for bundle, count in more:
            wanted[bundle] += count
        gpus = self.plugged + plugged if self.shared else 0
        return fits(self.layout, self.busy, _ordered(wanted), gpus)

    def most(self, bundles: Sequence[ClaimSpec], limit: int, plugged: int = 0) -> int:
        """Pods that have such claims each beside one another, at most `limit`."""
        least, most = 0, min(limit, self._bound(bundles))
        while least < most:
            middle = (least + most + 1) // 2
            if self.holds([(bundle, middle) for bundle in bundles], plugged * middle):
                least = middle
            else:
                most = middle - 1
        return least

    def _bound(self, bundles: Sequence[ClaimSpec]) -> int:
        """No more pods can have devices: each takes so many at least. Who takes none has no bound here."""
        each = sum(
            min((_taken(want, self.layout) for want in choice), default=0)
            for bundle in bundles
            for choice in bundle.choices
        )
        free = self.layout.open(self.busy).bit_count()
        if each:
            return free // each
        return 2**63 if self.holds([(bundle, 1) for bundle in bundles]) else 0

    def beside(self, bundles: Sequence[ClaimSpec], count: int = 1) -> AvailableDevices:
        """The stock with so many pods more that wait for such claims."""
        wanted = Counter(dict(self.waiting))
        for bundle in bundles:
            wanted[bundle] += count
        return AvailableDevices(self.layout, self.busy, _ordered(wanted), self.shared, self.plugged)

    def lacking(self, bundles: Sequence[ClaimSpec]) -> str:
        """Which claims of a pod have no devices here, in words after "insufficient"; "" where all have."""
        if not bundles or self.holds([(bundle, 1) for bundle in bundles]):
            return ""
        for bundle in bundles:
            if not self.holds([(bundle, 1)]):
                return f"devices for a claim (it needs {bundle.words}; {self._has(bundle)})"
        return f"devices for its claims together (they need {'; '.join(one.words for one in bundles)})"

    def _has(self, bundle: ClaimSpec) -> str:
        """What there is of what a claim wants: of the want that has the fewest, with the most alike."""
        free = self.layout.open(self.busy)
        short: list[tuple[int, str]] = []
        for request, choice in enumerate(bundle.choices):
            if len(choice) != 1 or choice[0].watching:
                continue
            _, allowed = self.layout.meeting(choice[0])
            rules = [rule for rule in bundle.rules if rule.means(request, 0)]
            there = min(
                (alike(self.layout, allowed & free, rule.attribute, rule.distinct) for rule in rules),
                default=(allowed & free).bit_count(),
            )
            if there < self.layout.count(choice[0]):
                words = " and ".join(rule.words for rule in rules)
                short.append((there, f" with {words}" if words else ""))
        there, words = min(short, default=(-1, ""))
        if there < 0:
            return "the node has too few left together"
        return f"the node has {there}{words}" if there else "the node has none left"


def alike(layout: NodeDevices, mask: int, attribute: str, distinct: bool) -> int:
    """The most of these devices with one value of the attribute; if distinct, how many values there are."""
    values = Counter(value for unit in bits(mask) if (value := layout.units[unit].value(attribute)))
    return len(values) if distinct else max(values.values(), default=0)


def _taken(want: DeviceRequest, layout: NodeDevices) -> int:
    if want.watching or free_to_share(layout, layout.meeting(want)[1]):
        return 0
    return 1 if want.count == UNKNOWN else want.count


def _ordered(wanted: Mapping[ClaimSpec, int]) -> Wanted:
    return tuple(sorted(((b, n) for b, n in wanted.items() if n > 0), key=lambda pair: pair[0].name))
