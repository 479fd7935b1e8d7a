"""The content of the live page at one moment. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from webhook.kube.standing import ClusterStanding

Health = Literal["ok", "warning", "problem"]


@dataclass(frozen=True, slots=True)
class DecisionEntry:
    """A decision. `time`: seconds since the epoch. `name`: of its gang or object, NAMESPACE/KIND/NAME.

    `id`: the same each time the decision is read. `kind`: its CamelCase reason, such as Queued. `policy`: the
    policy that decided, "" for the plan.
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
    """The state of one component, with a message."""

    name: str
    state: Health
    message: str


@dataclass(frozen=True, slots=True)
class PolicyCounts:
    """The number of results of a policy by namespace: {"research": {"fail": 2}}."""

    name: str
    namespaces: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Picture:
    """`standing`: the cluster with holding and waiting gangs. `source`: the cluster's address, or the files.

    `revisions`: those of the policies that decided. `decisions`: the newest, unordered.
    """

    standing: ClusterStanding
    source: str
    decisions: tuple[DecisionEntry, ...] = ()
    policies: tuple[PolicyCounts, ...] = ()
    revisions: tuple[str, ...] = ()
    health: tuple[HealthLine, ...] = ()
