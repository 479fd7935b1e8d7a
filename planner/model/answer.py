"""The planner's three answers, with their details for people and for the JSON contract."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from planner.model.podgroup import Assignment, HoldMode
from planner.model.resolved import ResolvedPodGroup
from planner.model.topology import Domain

Verdict = Literal["admitted", "queued", "rejected"]


@dataclass(frozen=True, slots=True)
class LevelAttempt:
    """One searched level: its best domain and the number of pods that fit there. For `--explain`."""

    level: str
    domain: Domain
    fits: int
    wanted: int
    note: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """The planner's answer for one gang.

    `level` and `domain`: the finest domain that holds the whole placement ("" and `()` for the whole topology
    or none). `holds`: whether the gang will hold whole domains, what it uses, or nothing; `reserves`: the
    domains that it will hold whole. A gang that is not admitted has neither
    assignments nor reserves. `reason` is a CamelCase token; `message` is one or two sentences with the
    numbers and what would work. `obstacles`: counts of excluded nodes by cause ("taint gpu=yes:NoSchedule",
    "reserved by default/Job/a", "insufficient nvidia.com/gpu", "cordoned"). `attempts`: the searched levels,
    coarse to fine.
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
    grows: bool = False
    """True where the gang waits for nodes, which an autoscaler adds only for pods that are not held back."""
    evicts: bool = False
    """True where the gang's own scheduler evicts others for it, once it sees its pods."""
    replayed: bool = False
    """True where the gang already holds a reservation and this is that plan again."""
    culprits: tuple[str, ...] = ()
    """The PodSets that do not fit the empty cluster, where the answer is that."""
    request: ResolvedPodGroup | None = field(default=None, compare=False, repr=False)
    """Of a new plan, the request as it was resolved: what a reservation of it is made from."""

    def to_json(self) -> dict[str, object]:
        """The gang's entry in the contract of `bayplan plan -o json`."""
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
