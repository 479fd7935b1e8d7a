"""A lower bound of the cost of a gang in a domain, without a search.

    two pods that use a whole node each; free GPUs of a rack's nodes: 4 (pristine), 4 (pristine), 2, 2

Two nodes are needed, and those in use are cheaper, but neither can take a pod: the bound contains two nodes
that are opened. A domain whose bound is above the cost of another domain is not searched. Of 256 used racks
this leaves 30, for a gang of 4 pods that use whole nodes and 8 pods with a GPU each.
"""

from __future__ import annotations

from collections.abc import Sequence

from planner.search.objective import Weights
from planner.search.packing.bounds import Peaks, fewest
from planner.search.packing.capacity_classes import DomainClasses
from planner.search.pod_counts import Measure

_FEW_CLASSES = 6
"""Maximum number of pod classes of which each one is looked at by itself. For more classes this would take
longer than the searches that it saves."""


def least_cost(
    classes: DomainClasses, class_id: int, need: Measure, weights: Weights, peaks: Sequence[Peaks]
) -> int:
    """Returns a lower bound of the cost of the whole gang in a domain of this class, which is not a host.

    `need`: the measure of the gang. `peaks`: what the domains of each level inside the domain hold together.
    """
    domain_class = classes.domain_classes[class_id]
    assert domain_class is not None, "the cost of a host needs no bound"
    prices = weights.domains[domain_class.level + 1 :]
    needed = [fewest(need, level_peaks) for level_peaks in peaks]
    *above, hosts = map(int.__mul__, prices, needed)
    if classes.domain_classes[domain_class.children[0]] is None:
        hosts = _of_hosts(classes, domain_class.children, need, peaks[-1], needed[-1])
    return domain_class.own_cost + sum(above) + hosts


def _of_hosts(classes: DomainClasses, hosts: Sequence[int], need: Measure, peaks: Peaks, needed: int) -> int:
    """Returns a lower bound of the cost of `needed` hosts that hold the gang.

    `hosts`: their capacity classes. All options of a host have the same cost, that of the host itself.
    """
    by_cost = sorted([(classes.options[host][0][1], host) for host in hosts])
    bound = sum([cost for cost, _ in by_cost[:needed]])
    reaches = [classes.counts.each(classes.reach[host]) for _, host in by_cost]
    class_count = len(reaches[0])
    for index in range(class_count if 1 < class_count <= _FEW_CLASSES else 0):
        # As many of the cheapest hosts that take pods of this class as its pods need; the others may be as
        # cheap as the cheapest host of all.
        taking = fewest(need[index : index + 1], peaks[index : index + 1])
        costs = [cost for (cost, _), reach in zip(by_cost, reaches, strict=True) if reach[index]][:taking]
        bound = max(bound, sum(costs) + max(0, needed - taking) * by_cost[0][0])
    return bound
