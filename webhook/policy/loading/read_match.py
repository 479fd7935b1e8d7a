"""Reads matchConstraints, matchResources and label selectors of a policy or a binding."""

from __future__ import annotations

from functools import lru_cache

from planner.manifests.requirements import SELECTOR_OPERATORS
from planner.model.labels import Requirement
from webhook.policy.loading.fields import Fields, Required
from webhook.policy.model.match import EVERY_REQUEST, OPERATIONS, SCOPES, MatchResources, ResourceRule
from webhook.policy.model.selectors import EVERYTHING, LabelSelector

_match = lru_cache(maxsize=512)(MatchResources)
"""Creates a match; equal matches are one object, so that a request is compared only once with a match that
several policies have.

The bound is larger than the number of policies in a set; an evicted entry only costs a second comparison.
"""


def read_match(fields: Fields | None, *, rules_required: bool) -> MatchResources:
    """Reads matchConstraints or matchResources from a map."""
    if fields is None:
        return EVERY_REQUEST
    match = _match(
        namespace_selector=read_selector(fields.child("namespaceSelector")),
        object_selector=read_selector(fields.child("objectSelector")),
        equivalent=fields.choice("matchPolicy", ("Equivalent", "Exact"), "Equivalent") == "Equivalent",
        rules=_read_rules(
            fields, "resourceRules", required=": at least one rule" if rules_required else False
        ),
        exclude_rules=_read_rules(fields, "excludeResourceRules"),
    )
    fields.done()
    return match


_AT_LEAST_ONE = ": at least one entry, '*' for all"


def _read_rules(fields: Fields, name: str, *, required: Required = False) -> tuple[ResourceRule, ...]:
    rules = []
    for row in fields.children(name, required=required):
        rules.append(
            ResourceRule(
                operations=row.texts("operations", OPERATIONS, required=_AT_LEAST_ONE),
                api_groups=row.texts("apiGroups", required=_AT_LEAST_ONE),
                api_versions=row.texts("apiVersions", required=_AT_LEAST_ONE),
                resources=row.texts("resources", required=_AT_LEAST_ONE),
                resource_names=row.texts("resourceNames"),
                scope=row.choice("scope", SCOPES, "*"),
            )
        )
        row.done()
    return tuple(rules)


def read_selector(fields: Fields | None) -> LabelSelector:
    """Reads a selector from a map; a missing one selects everything."""
    if fields is None:
        return EVERYTHING
    labels = fields.labels("matchLabels")
    requirements = []
    for row in fields.children("matchExpressions"):
        requirement = Requirement(
            row.text("key", required=True),
            row.choice("operator", SELECTOR_OPERATORS, "In"),
            row.texts("values"),
        )
        if (requirement.operator in ("In", "NotIn")) != bool(requirement.values):
            need = "needs values" if not requirement.values else "takes no values"
            row.wrong(f"{requirement.operator} {need}", "values")
        row.done()
        requirements.append(requirement)
    fields.done()
    return LabelSelector(labels, tuple(requirements))
