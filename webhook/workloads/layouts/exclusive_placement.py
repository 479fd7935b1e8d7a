"""Exclusive placement: the label and the pod anti-affinity that JobSet and LeaderWorkerSet give their pods
when they create them, which pod templates do not have yet. Pure.

Each child Job and each replica is a placement group. Where the annotation `exclusive-topology` asks for it,
no other placement group may have a pod in the same domain, and the group may not come to a domain that has
pods of another. The planner finds a domain for each by the same pod anti-affinity.

Sources: JobSet, pkg/webhooks/pod_webhook.go `setExclusiveAffinities`, pkg/controllers/jobset_controller.go
`jobHashKey`; LeaderWorkerSet, pkg/webhooks/pod_webhook.go `SetExclusiveAffinities`, `genGroupUniqueKey`.
Newer releases of JobSet exempt pods of another priority; the planner exempts none, so it never chooses a
domain that any release refuses.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import sha1

from planner.manifests.pods.pod_affinity import JOB_KEY
from planner.model.labels import Requirement, Term
from planner.model.pod import PodShape, PodTerm

GROUP_KEY = "leaderworkerset.sigs.k8s.io/group-key"
"""LeaderWorkerSet's label of pods: a hash of their replica."""

_IN_EVERY_NAMESPACE: Mapping[str, bool] = {JOB_KEY: True, GROUP_KEY: False}
"""Whether the anti-affinity over this label is about the pods of all namespaces, or of the pod's own."""


PLACEMENT_GROUPS = tuple(_IN_EVERY_NAMESPACE)
"""The labels whose value is a hash of the pod's placement group."""


@dataclass(frozen=True, slots=True)
class PlacementGroup:
    """A child Job or a replica. `label`: the label of its pods. `suffix`: of its name, after that of the
    object. `level`: the node label of which it gets a domain for itself, "" without exclusive placement.
    """

    label: str
    suffix: str
    level: str = ""

    def pod(self, shape: PodShape, owner: str) -> PodShape:
        """Returns a pod of the group with label and anti-affinity. `owner`: NAMESPACE/NAME of the object."""
        value = sha1(f"{owner}{self.suffix}".encode(), usedforsecurity=False).hexdigest()
        terms = tuple(replace(term, selector=self._selector(term.selector, value)) for term in shape.terms)
        spread = tuple(replace(rule, selector=self._selector(rule.selector, value)) for rule in shape.spread)
        if self.level:
            others = (Requirement(self.label, "Exists"), Requirement(self.label, "NotIn", (value,)))
            terms = (*terms, PodTerm(self.level, others, every=_IN_EVERY_NAMESPACE[self.label]))
        return replace(shape, labels={**shape.labels, self.label: value}, terms=terms, spread=spread)

    def _selector(self, selector: Term, value: str) -> Term:
        """Returns a selector of the pod template; `matchLabelKeys` with the group's label was read as "the
        pods without it", because the template lacks the label."""
        lacking, own = Requirement(self.label, "DoesNotExist", ()), Requirement(self.label, "In", (value,))
        return tuple(own if requirement == lacking else requirement for requirement in selector)


def is_exclusive(term: PodTerm) -> bool:
    """Returns whether the term is the anti-affinity of exclusive placement."""
    keys = {requirement.key for requirement in term.selector}
    operators = [requirement.operator for requirement in term.selector]
    return len(keys) == 1 and keys <= _IN_EVERY_NAMESPACE.keys() and operators == ["Exists", "NotIn"]
