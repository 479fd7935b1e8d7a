"""What the caller of the engine brings along: facts, templates, parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from webhook.cel import CostBudget
from webhook.cel.libraries.authorizer import Authorizer
from webhook.jsontools.path import Path
from webhook.policy.engine.model import CLUSTER_FACTS, FACTS, ParamKind, Policy
from webhook.workloads import Template

Object = Mapping[str, Any]


class Params(Protocol):
    """Where parameter objects come from: files beside the policies, or the API server."""

    def objects(self, kind: ParamKind) -> Sequence[Object]:
        """Every object of a kind, in a fixed order."""


@dataclass(frozen=True, slots=True)
class FileParams:
    """Parameter objects that were read from files."""

    items: Sequence[Object]

    def objects(self, kind: ParamKind) -> Sequence[Object]:
        """Those of a kind, in the files' order."""
        return [
            item
            for item in self.items
            if item.get("apiVersion") == kind.api_version and item.get("kind") == kind.kind
        ]


def no_facts(obj: Object, pod_set: str) -> Mapping[str, Any]:
    """For a caller that knows of no gangs."""
    return {}


def no_inlined(obj: Object) -> Sequence[Template]:
    """For a caller that knows of no kind with pods in another form."""
    return []


def no_templates(obj: Object) -> Sequence[tuple[Path, str]]:
    """For a caller that looks into no workloads: a policy runs only on the object itself."""
    return []


@dataclass(frozen=True, slots=True)
class EvaluationContext:
    """The caller's part in a run; every field has a default that needs nothing.

    `facts_for(object, pod_set)` gives `gang`, `plan` and `cluster` of an object as it is now; the mapping may
    be lazy, it is asked only for the names that an expression reads. `known` says which of the three there
    are: a policy that reads another is left out. `templates(object)` gives the path of each pod template
    (`()` for a Pod itself) and the name of its PodSet, `inlined(object)` the pods in another form than a
    template. `params` None means the set's own objects.
    `authorizer` says, unless a cluster gives another, that authorization is not available.
    """

    facts_for: Callable[[Object, str], Mapping[str, Any]] = no_facts
    known: frozenset[str] = frozenset()
    templates: Callable[[Object], Sequence[tuple[Path, str]]] = no_templates
    inlined: Callable[[Object], Sequence[Template]] = no_inlined
    params: Params | None = None
    authorizer: Any = field(default_factory=Authorizer)
    new_budget: Callable[[], CostBudget] = field(default=CostBudget)

    def lacks(self, policy: Policy) -> frozenset[str]:
        """The facts that a policy reads and the caller does not have."""
        return (policy.uses & FACTS) - self.known

    @classmethod
    def offline(cls, **changes: Any) -> EvaluationContext:
        """A caller without a cluster: `gang` is known, `plan` and `cluster` are not."""
        return cls(known=FACTS - CLUSTER_FACTS, **changes)
