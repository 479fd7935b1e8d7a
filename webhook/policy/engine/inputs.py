"""What the policy engine asks of its caller: parameter objects, the authorizer, and what is known of gangs.

`PolicyInputs` is the seam: the engine knows neither workloads nor a cluster. `webhook.admission` implements
it with its `Evaluation`; `BareInputs` serves a request that concerns no gang.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from planner.model.deadline import poll
from webhook.cel import CostBudget
from webhook.cel.libraries.authorizer import Authorizer
from webhook.jsontools.path import Path
from webhook.policy.model.policy import ParamKind
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


class PolicyInputs(Protocol):
    """What one request brings to its policies, beside the request itself."""

    @property
    def variable_names(self) -> frozenset[str]:
        """Which of `gang`, `plan` and `cluster` there are; a policy that reads another one is left out."""

    @property
    def params(self) -> Params | None:
        """Where parameter objects come from; None: from the files beside the policies."""

    @property
    def authorizer(self) -> Any:
        """The CEL variable `authorizer`."""

    @property
    def now(self) -> float:
        """Seconds since the epoch, by which exemptions end; infinite where there is no clock."""

    def variables(self, obj: Object, pod_set: str) -> Mapping[str, Any]:
        """The known ones of `gang`, `plan` and `cluster`, for the object as it is now.

        `obj` is the whole object, also where the policy is shown a template: `pod_set` names the PodSet of
        that template, "" stands for the object itself. The mapping may be lazy. A ValueError that it raises
        is an error of the expression that reads it.
        """

    def templates(self, obj: Object) -> Sequence[tuple[Path, str]]:
        """The path of each pod template that a policy may change (`()` for a Pod), and its PodSet."""

    def inlined(self, obj: Object) -> Sequence[Template]:
        """The pods that are written in another form than a PodTemplateSpec (the cliques of Grove)."""

    def new_budget(self) -> CostBudget:
        """What the expressions of one pass over the policies may cost."""


@dataclass(frozen=True, slots=True)
class BareInputs:
    """The inputs of a request that concerns no gang: a deletion, a subresource, an object of any other kind.

    The default authorizer answers that authorization is not available.
    """

    params: Params | None = None
    authorizer: Any = field(default_factory=Authorizer)
    variable_names: frozenset[str] = frozenset()
    now: float = math.inf

    def variables(self, obj: Object, pod_set: str) -> Mapping[str, Any]:
        """None."""
        return {}

    def templates(self, obj: Object) -> Sequence[tuple[Path, str]]:
        """None: a policy runs on the object itself."""
        return ()

    def inlined(self, obj: Object) -> Sequence[Template]:
        """None."""
        return ()

    def new_budget(self) -> CostBudget:
        """Upstream's limits."""
        return CostBudget(poll=poll_policies)


def poll_policies() -> None:
    """Raise `DeadlinePassed` where the time of the decision is over."""
    poll("policies")
