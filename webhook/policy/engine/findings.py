"""The result of the validating policies: findings, failures and audit annotations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from planner.model.words import joined
from webhook.policy.engine.exemptions import Exempted
from webhook.policy.engine.failures import Failure
from webhook.policy.engine.skipped import Skipped
from webhook.policy.model.policy import Action

MOST_REFUSALS = 10
"""Maximum number of refusals in a message. A request is refused by one or two policies; by many only if a set
of policies is wrong, and then the first tell enough."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A validation that does not hold, or one that failed under a binding without the action Deny.

    `label` names the expression in the policy. `code` is the HTTP status for `reason` (Invalid 422, Forbidden
    403 …).
    """

    policy: str
    binding: str
    label: str
    message: str
    reason: str
    code: int
    actions: tuple[Action, ...]

    def __str__(self) -> str:
        return f"policy {self.policy!r}: {self.message}"


@dataclass(frozen=True, slots=True)
class Findings:
    """The result of the validating policies.

    `denials` refuse the request; the first one gives the reason and the code. `errors` refuse it too: fatal
    failures of validations under a binding with the action Deny, and, under any binding, of the configuration
    and of audit annotations. `ignored`: failures that are not fatal and do not refuse. `warned` are shown to
    the user, `audited` are recorded. `audit_annotations` contains audited findings as `POLICY.failure`, and
    the policies' own annotations as `POLICY.KEY`. `passed`: the policies that ran without a finding or
    failure. `skipped`: those whose variables the caller does not provide. `exempted`: the exemptions that
    applied, and those that would have if they had not ended. `cost`: CEL cost units.
    """

    denials: tuple[Finding, ...] = ()
    warned: tuple[Finding, ...] = ()
    audited: tuple[Finding, ...] = ()
    errors: tuple[Failure, ...] = ()
    ignored: tuple[Failure, ...] = ()
    audit_annotations: Mapping[str, str] | None = None
    passed: tuple[str, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    exempted: tuple[Exempted, ...] = ()
    cost: int = 0

    @property
    def allowed(self) -> bool:
        """Whether the request is allowed."""
        return not self.denials and not self.errors

    @property
    def refusals(self) -> tuple[Finding | Failure, ...]:
        """What refuses the request."""
        return (*self.denials, *self.errors)

    @property
    def message(self) -> str:
        """The messages of the denials and errors, as one text; "" if the request is allowed."""
        return message_of(self.refusals)

    @property
    def reason(self) -> str:
        """The reason of the refusal, as in a Status."""
        return self.denials[0].reason if self.denials else "Invalid" if self.errors else ""

    @property
    def code(self) -> int:
        """The HTTP status of the refusal, 200 if allowed."""
        return self.denials[0].code if self.denials else 422 if self.errors else 200

    @property
    def warnings(self) -> tuple[str, ...]:
        """The warnings for kubectl, one line each."""
        return tuple(dict.fromkeys(map(str, (*self.warned, *self.ignored, *self.exempted))))


def message_of(refusals: Sequence[Finding | Failure]) -> str:
    """Returns the messages of the first refusals as one text, and the number of further ones."""
    messages = [*dict.fromkeys(map(str, refusals))]
    further = len(messages) - MOST_REFUSALS
    return joined(messages[:MOST_REFUSALS] + ([f"and {further} more"] if further > 0 else []))
