"""The interface through which the caller provides parameter objects, the authorizer, and the variables about
gangs.

The engine knows neither workloads nor a cluster; it asks `PolicyInputs`. `webhook.admission` implements it
with its `Evaluation`; `BareInputs` is for a request without a gang.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from planner.model.effort.deadline import poll
from webhook.cel import CostBudget
from webhook.cel.libraries.authorizer import Authorizer
from webhook.jsontools.path import Path
from webhook.policy.engine.forms.equal_objects import EqualObjects
from webhook.policy.model.policy import ParamKind
from webhook.workloads import Template

Object = Mapping[str, Any]


class Params(Protocol):
    """The source of parameter objects: files beside the policies, or the API server."""

    def objects(self, kind: ParamKind) -> Sequence[Object]:
        """Returns every object of a kind, in a fixed order."""


@dataclass(frozen=True, slots=True)
class FileParams:
    """Parameter objects from files."""

    items: Sequence[Object]

    def objects(self, kind: ParamKind) -> Sequence[Object]:
        """Returns the objects of a kind, in the files' order."""
        return [
            item
            for item in self.items
            if item.get("apiVersion") == kind.api_version and item.get("kind") == kind.kind
        ]


class PolicyInputs(Protocol):
    """The inputs of the policies for one request, in addition to the request itself."""

    @property
    def variable_names(self) -> frozenset[str]:
        """The names among `gang`, `plan` and `cluster` that have values; a policy that reads another name
        of the three is left out.
        """

    @property
    def params(self) -> Params | None:
        """The source of parameter objects; None for the files beside the policies."""

    @property
    def authorizer(self) -> Any:
        """The CEL variable `authorizer`."""

    @property
    def now(self) -> float:
        """Seconds since the epoch, for the end of exemptions; infinite without a clock."""

    def variables(self, obj: Object, pod_set: str) -> Mapping[str, Any]:
        """Returns the values of `gang`, `plan` and `cluster` for the current object, by name.

        `obj` is the whole object, even if the policy is shown a template: `pod_set` names the PodSet of that
        template; "" means the object itself. The mapping may be lazy. If it raises a ValueError, the
        expression that reads the variable ends in an error.
        """

    def templates(self, obj: Object) -> Sequence[tuple[Path, str]]:
        """Returns the path and the PodSet's name of each PodTemplateSpec that policies may change; the path
        is `()` for a Pod.
        """

    def inlined(self, obj: Object) -> Sequence[Template]:
        """Returns the pod templates that are not written as a PodTemplateSpec (the cliques of Grove)."""

    @property
    def equal_objects(self) -> EqualObjects | None:
        """The outcomes of policies on objects of former requests; None if they are not reused."""

    @property
    def limits_of_equal_objects(self) -> object:
        """What `variables_of_equal_objects` shows of the limits of the object's namespace, as JSON. The owner
        of `equal_objects` does not keep it constant.
        """

    def variables_of_equal_objects(self, obj: Object, pod_set: str) -> Mapping[str, Any]:
        """Returns the values of `gang` and `cluster` as `variables` does, with stand-ins
        (`webhook.cel.values.stand_in`) for what differs between equal objects, and for what the owner of
        `equal_objects` does not keep constant.
        """

    def new_budget(self) -> CostBudget:
        """Returns the cost budget of a pass over the policies, whose units each run has anew."""


@dataclass(frozen=True, slots=True)
class BareInputs:
    """The inputs of a request without a gang: a deletion, a subresource, an object of any other kind.

    The default authorizer answers that authorization is not available.
    """

    params: Params | None = None
    authorizer: Any = field(default_factory=Authorizer)
    variable_names: frozenset[str] = frozenset()
    now: float = math.inf
    equal_objects: None = None
    limits_of_equal_objects: None = None

    def variables(self, obj: Object, pod_set: str) -> Mapping[str, Any]:
        """Returns no variables."""
        return {}

    def templates(self, obj: Object) -> Sequence[tuple[Path, str]]:
        """Returns no templates: a policy runs on the object itself."""
        return ()

    def inlined(self, obj: Object) -> Sequence[Template]:
        """Returns no pods."""
        return ()

    def variables_of_equal_objects(self, obj: Object, pod_set: str) -> Mapping[str, Any]:
        """Returns no variables."""
        return {}

    def new_budget(self) -> CostBudget:
        """Returns a budget with upstream's limits."""
        return CostBudget(poll=poll_policies)


def poll_policies() -> None:
    """Raises `DeadlinePassed` if the time of the decision is over."""
    poll("policies")
