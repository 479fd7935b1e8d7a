"""The planner's answer for a gang: admitted, queued or rejected, with details for people and for JSON."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from planner.model.podgroup import Assignment, HoldMode
from planner.model.resolved import ResolvedPodGroup
from planner.model.topology import Domain

Verdict = Literal["admitted", "queued", "rejected"]
"""A gang has a place, waits for one, or is refused."""


@dataclass(frozen=True, slots=True)
class LevelAttempt:
    """One searched level: its best domain, and how many of the `wanted` pods fit there. For `--explain`.

    `note`: why no domain was found; "" if one was.
    """

    level: str
    domain: Domain
    fits: int
    wanted: int
    note: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """The planner's answer for one gang.

    `level` and `domain`: the finest domain that contains the whole placement; "" and `()` if that is the
    whole topology, or if there is no placement. `holds`: whether the gang will hold whole domains, what it
    uses, or nothing; `reserves`: the domains that it will hold whole. Only admitted gangs have assignments
    and reserves. `reason` is a CamelCase token; `message` is one or two sentences with the numbers and what
    would work. `obstacles`: counts of excluded nodes by cause ("taint gpu=yes:NoSchedule", "reserved by
    default/Job/a", "insufficient nvidia.com/gpu", "cordoned"). `attempts`: the searched levels, coarse to
    fine.
    """

    gang: str
    decision: Verdict
    topology: str = ""
    level: str = ""
    domain: Domain = ()
    holds: HoldMode = "none"
    reserves: tuple[Domain, ...] = ()
    assignments: tuple[Assignment, ...] = ()
    reason: str = ""
    message: str = ""
    warnings: tuple[str, ...] = ()
    obstacles: dict[str, int] = field(default_factory=dict)
    attempts: tuple[LevelAttempt, ...] = ()
    waits_for_nodes: bool = False
    """Whether the gang waits for nodes of an autoscaler, which adds none for pods with a scheduling gate."""
    waits_for_eviction: bool = False
    """Whether the gang waits until its scheduler preempts other pods, which it does only for ungated pods."""
    replayed: bool = False
    """Whether this answer repeats the placement of a reservation that the gang already holds."""
    culprits: tuple[str, ...] = ()
    """The PodSets that do not fit even the empty cluster, if the gang is rejected because of them."""
    request: ResolvedPodGroup | None = field(default=None, compare=False, repr=False)
    """The resolved request that was planned, from which the reservation is made; None if none was planned."""

    @property
    def waits_ungated(self) -> bool:
        """Whether the gang waits for something that happens only for pods without a scheduling gate."""
        return self.waits_for_nodes or self.waits_for_eviction

    def to_json(self) -> dict[str, object]:
        """Returns the gang's entry in the output of `bayplan plan -o json`, whose format is a contract."""
        return {
            "name": self.gang,
            "decision": self.decision,
            "topology": self.topology,
            "level": self.level or None,
            "domain": list(self.domain),
            "reserves": [list(domain) for domain in self.reserves],
            "assignments": [
                {"podSet": a.pod_set, "node": a.node, "count": a.count} for a in self.assignments
            ],
            "reason": self.reason,
            "message": self.message,
            "warnings": list(self.warnings),
        }
