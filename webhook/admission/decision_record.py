"""The result of a request: the response, and how the decision came about.

The types of its fields can be imported from here too, by code that reads decisions: reports, the journal, the
log.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from webhook.admission.configuration.settings import Mode
from webhook.admission.ledger_steps import LedgerStep
from webhook.admission.modes import ENFORCE, ModeInForce, Outcome, outcome
from webhook.placement.workload_plan import GangPlan, WorkloadPlan
from webhook.policy.engine.exemptions import Exempted
from webhook.policy.engine.mutation.mutate import Effect, Mutated, Skipped
from webhook.policy.engine.validate import Findings
from webhook.wire.review import Response

__all__ = [
    "PLAN",
    "Decision",
    "Effect",
    "Exempted",
    "Findings",
    "GangPlan",
    "Note",
    "Phase",
    "Skipped",
]

Json = Mapping[str, Any]

Phase = Literal["mutate", "validate"]


PLAN = "plan"
"""The name of the plan's own changes among the effects."""


@dataclass(frozen=True, slots=True)
class Note:
    """A notice about an allowed object's pods, for its author; `rule` is a CamelCase token."""

    rule: str
    message: str


@dataclass(frozen=True, slots=True)
class Decision:
    """The answer, the ledger steps that it needs, and how the decision came about.

    `object`: the object after the decision; the original if the decision refuses it or changes nothing.
    `plan`: None if nothing was planned. `effects`: which policy changed what; the plan's own changes have the
    name `plan`. `mutated`, `findings`: the results of the policy engine, None if it did not run. `malformed`:
    the object could not be read. `late`: the deadline passed. `force`: the mode of the namespace. In a mode
    other than `enforce` only the response, the object and the steps differ, and `enforced` is the answer that
    `enforce` would have given.
    """

    response: Response
    object: Json | None = None
    steps: tuple[LedgerStep, ...] = ()
    plan: WorkloadPlan | None = None
    mutated: Mutated | None = None
    effects: tuple[Effect, ...] = ()
    findings: Findings | None = None
    malformed: bool = False
    late: bool = False
    revision: str = ""
    tries: int = 1
    """The number of attempts: each one before the last chose a place that another gang took meanwhile."""
    notes: tuple[Note, ...] = ()
    """Notices about the object's pods, which the response repeats as warnings."""
    force: ModeInForce = ENFORCE
    enforced: Response | None = None
    unless_held: Response | None = None
    """The answer where the ledger refuses the steps."""

    @property
    def mode(self) -> Mode:
        """The mode of the namespace."""
        return self.force.mode

    @property
    def in_enforce(self) -> Response:
        """The answer of `enforce`, whatever the mode is."""
        return self.enforced or self.response

    @property
    def exempted(self) -> tuple[Exempted, ...]:
        """The exemptions that applied, for mutating and for validating policies."""
        of_mutations = self.mutated.exempted if self.mutated is not None else ()
        return (*of_mutations, *(self.findings.exempted if self.findings is not None else ()))

    @property
    def outcome(self) -> Outcome:
        """The outcome for the object in `enforce`."""
        return outcome(self.in_enforce, self.plan)

    def refusing(self) -> Iterator[str]:
        """The policies that refuse or that failed, in the order they ran, then `plan` for the planner."""
        if self.mutated is not None:
            yield from (failure.policy for failure in self.mutated.errors)
        if self.findings is not None:
            yield from (finding.policy for finding in self.findings.denials)
            yield from (failure.policy for failure in self.findings.errors)
        if self.plan is not None and self.plan.decision == "rejected":
            yield PLAN
