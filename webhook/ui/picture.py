"""The content of the live page at one moment. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from webhook.kube.gang_standing import ClusterStanding

Health = Literal["ok", "warning", "problem"]


@dataclass(frozen=True, slots=True)
class DecisionEntry:
    """A decision in the page's list.

    `id`: stays the same if the decision is read again. `time`: seconds since the epoch. `name`: the gang
    or object, NAMESPACE/KIND/NAME. `kind`: the CamelCase reason of the plan or the controller, such as
    Queued; for a policy, its rule, or the outcome if it has none. `policy`: the policy that decided, "" for
    the plan and the controller.
    """

    id: str
    time: float
    name: str
    kind: str
    message: str
    warning: bool = False
    policy: str = ""


@dataclass(frozen=True, slots=True)
class HealthLine:
    """The state of one component, such as the controller or the watches, with a message."""

    name: str
    state: Health
    message: str


@dataclass(frozen=True, slots=True)
class PolicyCounts:
    """The number of a policy's results by namespace and outcome, for example {"research": {"fail": 2}}."""

    name: str
    namespaces: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Picture:
    """The state of a cluster at one moment.

    `standing`: the cluster, and its gangs that hold a place or wait. `source`: the cluster's address, or
    the files. `decisions`: the newest decisions, in no order. `policies`: the counts of policies' results.
    `revisions`: the revisions of the policies that decided.
    """

    standing: ClusterStanding
    source: str
    decisions: tuple[DecisionEntry, ...] = ()
    policies: tuple[PolicyCounts, ...] = ()
    revisions: tuple[str, ...] = ()
    health: tuple[HealthLine, ...] = ()
