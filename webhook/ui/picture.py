"""What the live page tells, at one moment. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from webhook.kube.standing import ClusterStanding

Health = Literal["ok", "warning", "problem"]


@dataclass(frozen=True, slots=True)
class DecisionEntry:
    """A decision that was told: `time` in seconds since the epoch, `name` of what it is about.

    `id` is the same each time that it is told. `kind`: its CamelCase token, such as Queued; `warning`: it was
    told as one. `policy`: which decided it, "" for the plan.
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
    """One thing that is well or not, in words."""

    name: str
    state: Health
    message: str


@dataclass(frozen=True, slots=True)
class PolicyCounts:
    """How often a policy came to each result, by namespace: {"research": {"fail": 2}}."""

    name: str
    namespaces: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Picture:
    """`standing`: the cluster with who holds and who waits. `source`: its address, or the files.

    `revisions`: of the policy sets that decided. `decisions`: the newest, in no order.
    """

    standing: ClusterStanding
    source: str
    decisions: tuple[DecisionEntry, ...] = ()
    policies: tuple[PolicyCounts, ...] = ()
    revisions: tuple[str, ...] = ()
    health: tuple[HealthLine, ...] = ()
