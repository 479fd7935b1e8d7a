"""Reads one PolicyException: the policies, the exempt objects, the end, and the reason."""

from __future__ import annotations

from dataclasses import replace

from webhook.policy.loading.expressions import ExpressionCompiler
from webhook.policy.loading.fields import Fields
from webhook.policy.loading.read import open_object, read_conditions
from webhook.policy.loading.read_match import read_selector
from webhook.policy.model.policy import PolicyException

EXCEPTION_KIND = "PolicyException"


PLANNER = ("plan", "planner")
"""Names under which reports and messages show the planner beside the policies; no exemption may name them."""


def read_exemption(top: Fields) -> PolicyException | None:
    """Returns the exemption; None if a problem was recorded."""
    before = len(top.problems)
    names, spec = open_object(top)
    if spec is None:
        return None
    match = spec.child("match", required=": whom it is for")
    policies = spec.texts("policies", required=": at least one name of a policy")
    for index, pattern in enumerate(policies):
        if pattern in PLANNER:
            spec.wrong(
                "is no policy: what the planner refuses can never run, and is not exempted; the annotation"
                " bayplan.dev/skip leaves the plan where RBAC allows it",
                "policies",
                index,
            )
    until = spec.moment("until", whole_day=True, required=": a date after which it ends")
    reason = spec.text("reason", required=": why, and who allowed it")
    compiler = ExpressionCompiler(names.name, False, False, {}, authorizer=False)
    conditions = read_conditions(spec, compiler, "conditions")
    spec.done()
    exemption = PolicyException(
        name=names.name,
        file=top.document.file,
        reason=reason,
        until=until or 0.0,
        ended=str(spec.value.get("until")),
        policies=policies,
        conditions=conditions,
    )
    if match is not None:
        exemption = _matching(exemption, match)
    return exemption if len(top.problems) == before else None


def _matching(exemption: PolicyException, match: Fields) -> PolicyException:
    exemption = replace(
        exemption,
        namespaces=match.texts("namespaces"),
        namespace_selector=read_selector(match.child("namespaceSelector")),
        kinds=match.texts("kinds"),
        names=match.texts("names"),
        selector=read_selector(match.child("selector")),
        users=match.texts("users"),
        groups=match.texts("groups"),
    )
    match.any_of("namespaces", "namespaceSelector", "kinds", "names", "selector", "users", "groups")
    match.done()
    return exemption
