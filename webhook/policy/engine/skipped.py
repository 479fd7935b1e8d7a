"""The policies that are left out because the caller does not provide the variables that they read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from webhook.policy.engine.inputs import PolicyInputs
from webhook.policy.model.policy import BAYPLAN_VARIABLES, Policy

PolicyKind = TypeVar("PolicyKind", bound=Policy)


@dataclass(frozen=True, slots=True)
class Skipped:
    """A policy that was left out, because the caller does not provide the variables `lacks`."""

    policy: str
    lacks: tuple[str, ...]


def runnable_policies(
    policies: Sequence[PolicyKind], inputs: PolicyInputs
) -> tuple[tuple[PolicyKind, ...], tuple[Skipped, ...]]:
    """Returns the policies whose variables the caller provides, and the policies that are left out."""
    unknown = BAYPLAN_VARIABLES - inputs.variable_names
    if not unknown:
        return tuple(policies), ()
    lacking = {policy.name: tuple(sorted(policy.uses & unknown)) for policy in policies}
    runnable = tuple(policy for policy in policies if not lacking[policy.name])
    return runnable, tuple(Skipped(name, lacks) for name, lacks in lacking.items() if lacks)


def skipped_notice(policies: Sequence[Policy], skipped: Sequence[Skipped]) -> str:
    """Returns one line about the policies that were left out, "" if there are none."""
    if not skipped:
        return ""
    names = ", ".join(row.policy for row in skipped)
    lacks = ", ".join(sorted({name for row in skipped for name in row.lacks}))
    return f"{len(skipped)} of {len(policies)} policies left out, for lack of {lacks}: {names}"
