"""Policies that could not be evaluated."""

from __future__ import annotations

from dataclasses import dataclass

from webhook.policy.model.policy import Policy, PolicyBinding


@dataclass(frozen=True, slots=True)
class Failure:
    """A policy that could not be evaluated. `label` names the expression that failed, "" for none. `fatal`:
    the request is refused, as a rule because the failurePolicy is Fail.
    """

    policy: str
    binding: str
    label: str
    message: str
    fatal: bool

    def __str__(self) -> str:
        label = f", {self.label}" if self.label else ""
        return f"policy {self.policy!r}{label}: {self.message}"


def failure(policy: Policy, binding: PolicyBinding, label: str, message: str) -> Failure:
    """Returns a failure of a policy. This is the only function that reads failurePolicy."""
    return Failure(policy.name, binding.name, label, message, not policy.ignore_failure)
