"""Describes every node of the cluster: how many take a pod, and how many do not, by cause. For example:

of 32 nodes, 20 have at most 8 of 16 nvidia.com/gpu, 8 carry the taint dedicated=infra:NoSchedule and
4 lack nvidia.com/gpu.product=H200 (there are A100 on 20, T4 on 4)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from planner.cluster.infrastructure import Infrastructure
from planner.explain.label_values import values_words
from planner.explain.numa_messages import NUMA
from planner.explain.obstacles import CLAIMS, LACKS, RESERVED, NodeCounts, Shortage
from planner.model.host_ports import port_of
from planner.model.labels import Requirement
from planner.model.pod import selected
from planner.model.pod_class import PodClass
from planner.model.quantity import show
from planner.model.topology import HOSTNAME
from planner.model.words import counted
from planner.node.eligibility import AFFINITY, SELECTOR, TAINT, affinity_cause

_MAX_CAUSES = 8
"""Maximum number of causes in a message; the answer's `obstacles` list all."""

_VERBS: tuple[tuple[str, str, str], ...] = (
    (SELECTOR, "lacks ", "lack "),
    (f"{AFFINITY}none of ", "meets none of the node affinity's ", "meet none of the node affinity's "),
    (AFFINITY, "fails the node affinity ", "fail the node affinity "),
    (TAINT, "carries the taint ", "carry the taint "),
    (f"{LACKS}{CLAIMS}", f"lacks {CLAIMS}", f"lack {CLAIMS}"),
    (f"{LACKS}gpu-", "has no room for gpu-", "have no room for gpu-"),
    (LACKS, "has too little ", "have too little "),
    (f"{NUMA}: no ", "has no NUMA ", "have no NUMA "),
    ("no label ", "has no label ", "have no label "),
    ("with host port ", "has host port ", "have host port "),
    ("GPU", "has GPU", "have GPU"),
    ("NVLink", "has an NVLink", "have an NVLink"),
    ("no NUMA", "has no NUMA", "have no NUMA"),
    ("pod ", "is excluded by pod ", "are excluded by pod "),
    ("topology spread", "is excluded by topology spread", "are excluded by topology spread"),
    ("", "is ", "are "),
)
"""The prefix of a cause, and what replaces it after one node and after several nodes. The first entry that
matches is used: longer prefixes come before shorter ones, and the last entry matches every cause.
"""


class NodeWords:
    """Turns counts of nodes into text.

    `pod_classes`: the classes of the pods for which the nodes were counted. `occupied`: the amounts in the
    counts are what is free now. `base`: the cluster; without it, the text does not list existing label
    values.
    """

    def __init__(
        self, pod_classes: Sequence[PodClass], *, occupied: bool = False, base: Infrastructure | None = None
    ) -> None:
        raised = (pod_class.shape.raised for pod_class in pod_classes)
        self._raised = {name: was for amounts in raised for name, was in amounts.items()}
        self._overhead = {
            name: (amount, f"{show(name, amount)} overhead of RuntimeClass {pod_class.shape.runtime_class}")
            for pod_class in pod_classes
            for name, amount in pod_class.shape.overhead.items()
        }
        self._pod_classes = pod_classes
        self._occupied, self._base = occupied, base

    def of(self, counts: NodeCounts) -> str:
        """Returns the text for all nodes, each counted once. Causes beyond `_MAX_CAUSES` are summed."""
        causes = list(counts.causes.items())
        if len(causes) == 1 and not counts.serving:
            return f"{_all(counts.total)} {self._clause(causes[0][0], counts.total, counts.shortages)}"
        clauses = [
            f"{count} {self._clause(cause, count, counts.shortages)}" for cause, count in causes[:_MAX_CAUSES]
        ]
        clauses += _omitted(causes[_MAX_CAUSES:])
        if counts.serving:
            has = "has" if counts.serving == 1 else "have"
            clauses.append(f"{counts.serving} {has} room for a pod{self._for_no_second()}")
        return (
            f"of {counted(counts.total, 'node')}, {_enumerated(clauses)}"
            if clauses
            else "the cluster has no nodes"
        )

    def why_few(self, counts: NodeCounts) -> str:
        """Returns the text if some node takes no pod, or no node takes a second pod.

        Otherwise returns "": every node takes pods, so the message explains itself by the number that fit.
        """
        return self.of(counts) if counts.causes or self._for_no_second() else ""

    def _for_no_second(self) -> str:
        """Returns text that says why a node with room takes only one pod of the class: a host port or pod
        anti-affinity. Returns "" without such a rule, or if there are several classes.
        """
        if len(self._pod_classes) != 1:
            return ""
        shape = self._pod_classes[0].shape
        own = [
            term
            for term in shape.terms
            if term.key == HOSTNAME and not term.attracts and selected(term.selector, shape.labels)
        ]
        causes = dict.fromkeys(port_of(term) or "pod anti-affinity" for term in own)
        return f" and none for a second ({', '.join(causes)})" if causes else ""

    def _clause(self, cause: str, count: int, shortages: Mapping[str, Shortage]) -> str:
        """Returns the text for `count` nodes that share a cause."""
        if cause in shortages:
            return self._shortage(cause.removeprefix(LACKS), count, *shortages[cause])
        prefix, singular, plural = next(verb for verb in _VERBS if cause.startswith(verb[0]))
        words = f"{singular if count == 1 else plural}{cause.removeprefix(prefix)}"
        values = self._values(cause)
        return f"{words} ({values})" if values else words

    def _shortage(self, resource: str, count: int, largest: int, need: int) -> str:
        has, free = "has" if count == 1 else "have", " free" if self._occupied else ""
        bound = "" if count == 1 else "at most "
        overhead, words = self._overhead.get(resource, (0, ""))
        if resource in self._raised:
            stated = self._raised[resource] - overhead
            return (
                f"{has} {bound}{show(resource, largest)} {resource}{free} of the {show(resource, need)} that "
                f"policies give a pod (it states {show(resource, stated) if stated else 'none'}"
                f"{f', and has {words}' if words else ''})"
            )
        if largest <= 0:  # below 0 if bound pods and reservations together take more than the node has
            return f"{has} no {resource}{free}"
        extra = f" (of which {words})" if words else ""
        return f"{has} {bound}{show(resource, largest)} of {show(resource, need)} {resource}{free}{extra}"

    def _values(self, cause: str) -> str:
        """Returns the existing values of the label in the cause, if no node has a requested value."""
        if self._base is None:
            return ""
        for pod_class in self._pod_classes:
            for key, value in pod_class.shape.node_selector.items():
                if cause == f"{SELECTOR}{key}={value}":
                    values = values_words(self._base, key, (value,))
                    by_class = self._base.runtime_classes.selects(pod_class.shape, key, value)
                    selected_by = (
                        f"RuntimeClass {pod_class.shape.runtime_class} selects it" if by_class else ""
                    )
                    return "; ".join(filter(None, (selected_by, values)))
            for requirement in _only_term(pod_class):
                if cause == affinity_cause(requirement) and requirement.operator != "NotIn":
                    return values_words(self._base, requirement.key, requirement.values)
        return ""


def _only_term(pod_class: PodClass) -> tuple[Requirement, ...]:
    return pod_class.shape.affinity[0] if len(pod_class.shape.affinity) == 1 else ()


def _omitted(causes: Sequence[tuple[str, int]]) -> Iterator[str]:
    """Yields the clauses that sum up the nodes of further causes: reservations, and all others."""
    reserved = [count for cause, count in causes if cause.startswith(RESERVED)]
    others = [count for cause, count in causes if not cause.startswith(RESERVED)]
    if reserved:
        gangs = "another gang" if len(reserved) == 1 else f"{len(reserved)} other gangs"
        yield f"{sum(reserved)} {'is' if sum(reserved) == 1 else 'are'} {RESERVED}{gangs}"
    if others:
        reasons = "another reason" if len(others) == 1 else f"{len(others)} other reasons"
        yield f"{sum(others)} {'does' if sum(others) == 1 else 'do'} not serve for {reasons}"


def _all(total: int) -> str:
    return {1: "the only node", 2: "both nodes"}.get(total, f"all {total} nodes")


def _enumerated(clauses: Sequence[str]) -> str:
    """Joins clauses with commas, and with "and" before the last."""
    return " and ".join(filter(None, (", ".join(clauses[:-1]), clauses[-1])))
