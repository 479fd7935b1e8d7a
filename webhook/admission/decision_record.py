"""The result of deciding a request: the response, and how the decision was made.

Code that reads decisions (reports, the journal, the log) can import the types of the fields from here too.
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
from webhook.policy.engine.findings import Findings
from webhook.policy.engine.mutation.mutate import Effect, Mutated
from webhook.policy.engine.skipped import Skipped
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
"""Which webhook is called: the mutating or the validating one."""


PLAN = "plan"
"""The name of the effect that contains the plan's changes; all other effects have the name of a policy."""


@dataclass(frozen=True, slots=True)
class Note:
    """A notice for the author of an allowed object about its pods. `rule`: a CamelCase token for its kind."""

    rule: str
    message: str


@dataclass(frozen=True, slots=True)
class Decision:
    """The response to a request, the ledger steps to carry out, and how the decision was made.

    `object`: the object after the decision; the original if it is refused or unchanged. `plan`: None if
    nothing was planned. `effects`: which policy changed what; the plan's changes have the name `plan`.
    `mutated`, `findings`: the results of mutating and validating policies, None if they did not run.
    `malformed`: the object could not be read. `late`: the deadline passed. `revision`: of the policies.
    `force`: the mode of the namespace. In modes other than `enforce`, only response, object and steps differ
    from those of `enforce`; `enforced` is the response that `enforce` would give, in every mode.
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
    """The number of attempts to decide. All but the last chose a place that another gang took at the same
    time; if the call was refused for this reason (`Conflict`), the last did too."""
    notes: tuple[Note, ...] = ()
    """Notices about the object's pods, which the response repeats as warnings."""
    force: ModeInForce = ENFORCE
    enforced: Response | None = None
    unless_held: Response | None = None
    """The response if the ledger refuses a step; None if the request is then decided again."""

    @property
    def mode(self) -> Mode:
        """The mode of the namespace."""
        return self.force.mode

    @property
    def in_enforce(self) -> Response:
        """The response that mode `enforce` gives, even if the namespace has another mode."""
        return self.enforced or self.response

    @property
    def exempted(self) -> tuple[Exempted, ...]:
        """The exemptions that applied: from mutating policies, then from validating policies."""
        of_mutations = self.mutated.exempted if self.mutated is not None else ()
        return (*of_mutations, *(self.findings.exempted if self.findings is not None else ()))

    @property
    def outcome(self) -> Outcome:
        """The outcome for the object in mode `enforce`."""
        return outcome(self.in_enforce, self.plan)

    def refusing(self) -> Iterator[str]:
        """Yields the policies that refuse or that failed, in the order they ran, then `plan` if the planner
        rejects the object."""
        if self.mutated is not None:
            yield from (failure.policy for failure in self.mutated.errors)
        if self.findings is not None:
            yield from (finding.policy for finding in self.findings.denials)
            yield from (failure.policy for failure in self.findings.errors)
        if self.plan is not None and self.plan.decision == "rejected":
            yield PLAN
