"""The requests to which a policy or a binding applies: rules, selectors, scope.

An exclude rule takes precedence over every other rule. An object selector needs to select only one of the
object and the old object.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from planner.model.pod import NAMESPACE_NAME_LABEL
from webhook.policy.model.selectors import EVERYTHING, LabelSelector
from webhook.wire.request import AdmissionRequest, GroupVersionKind, GroupVersionResource

OPERATIONS = ("CREATE", "UPDATE", "DELETE", "CONNECT", "*")


SCOPES = ("Cluster", "Namespaced", "*")


@dataclass(frozen=True, slots=True)
class ResourceRule:
    """One of resourceRules or excludeResourceRules. `resources` may name subresources ("pods/status",
    "pods/*", "*/scale", "*/*"; see `_resource`).
    """

    operations: tuple[str, ...]
    api_groups: tuple[str, ...]
    api_versions: tuple[str, ...]
    resources: tuple[str, ...]
    resource_names: tuple[str, ...] = ()
    scope: str = "*"

    def matches(
        self, request: AdmissionRequest, resource: GroupVersionResource, *, any_version: bool
    ) -> bool:
        """Returns whether the rule matches this request on `resource`, in any version with `any_version`."""
        return (
            _within(request.operation, self.operations)
            and _within(resource.group, self.api_groups)
            and (any_version or _within(resource.version, self.api_versions))
            and any(_resource(row, resource.resource, request.sub_resource) for row in self.resources)
            and (not self.resource_names or request.name in self.resource_names)
            and (self.scope == "*" or self._in_scope(request))
        )

    def _in_scope(self, request: AdmissionRequest) -> bool:
        # A Namespace is cluster-scoped, but its request names the Namespace itself as namespace.
        namespaced = bool(request.namespace) and request.resource.resource != "namespaces"
        return (self.scope == "Namespaced") == namespaced


@dataclass(frozen=True, slots=True)
class MatchResources:
    """matchConstraints of a policy, or matchResources of a binding; a binding without rules matches every
    request. `equivalent`: matchPolicy is Equivalent, not Exact.
    """

    namespace_selector: LabelSelector = EVERYTHING
    object_selector: LabelSelector = EVERYTHING
    equivalent: bool = True
    rules: tuple[ResourceRule, ...] = ()
    exclude_rules: tuple[ResourceRule, ...] = ()

    def concerns(self, request: AdmissionRequest, *, empty_rules_match: bool = False) -> bool:
        """Returns whether the rules and the namespace match. No mutation of the object can change this.

        `empty_rules_match`: an empty list of rules matches every request, as in a binding.
        """
        return (
            self.namespace_selector_holds(request)
            and not self._any(self.exclude_rules, request)
            and (self._any(self.rules, request) or (empty_rules_match and not self.rules))
        )

    def _any(self, rules: Sequence[ResourceRule], request: AdmissionRequest) -> bool:
        # As in the API server, Exact compares the resource that the user named. Equivalent compares any
        # version of it, and also the resource to which the API server converted the object for the webhook.
        if not rules:
            return False
        requested = request.request_resource or request.resource
        is_converted = self.equivalent and requested != request.resource
        resources = (requested, request.resource) if is_converted else (requested,)
        return any(
            rule.matches(request, resource, any_version=self.equivalent)
            for rule in rules
            for resource in resources
        )

    def namespace_selector_holds(self, request: AdmissionRequest) -> bool:
        """Returns whether the namespace is selected; cluster-scoped objects always match, as upstream."""
        if self.namespace_selector is EVERYTHING:
            return True
        if request.kind == GroupVersionKind("", "v1", "Namespace"):
            # The API server has added the label with the name before; in a file it is usually missing.
            stated = labels_of(request.object or request.old_object)
            return self.namespace_selector.matches({**stated, NAMESPACE_NAME_LABEL: request.name})
        return not request.namespace or self.namespace_selector.matches(request.namespace_labels)

    @property
    def selects_all(self) -> bool:
        """Whether all objects are selected, whatever their labels."""
        return self.object_selector is EVERYTHING

    @property
    def reads_no_object(self) -> bool:
        """Whether neither the labels nor the name of an object decide whether it matches."""
        rules = (*self.rules, *self.exclude_rules)
        return self.selects_all and not any(rule.resource_names for rule in rules)

    def selects(self, request: AdmissionRequest, obj: Mapping[str, Any] | None) -> bool:
        """Returns whether the object selector matches the object, or the old object of an update."""
        if self.selects_all:
            return True
        present = [item for item in (obj, request.old_object) if item is not None]
        return any(self.object_selector.matches(labels_of(item)) for item in present)


EVERY_REQUEST = MatchResources()
"""The match of a binding that restricts nothing."""


def labels_of(obj: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """Returns an object's labels; none if they are missing or malformed."""
    metadata = (obj or {}).get("metadata")
    labels = metadata.get("labels") if isinstance(metadata, Mapping) else None
    return labels if isinstance(labels, Mapping) else {}


def _within(value: str, options: tuple[str, ...]) -> bool:
    return "*" in options or value in options


def _resource(pattern: str, resource: str, sub_resource: str) -> bool:
    """Returns whether a pattern matches a resource or a subresource of it, as upstream does.

    A pattern without a slash matches no subresource. `pods/*` matches pods and every subresource of pods,
    `*/scale` the subresource scale of every resource, `*/*` everything.
    """
    wanted_resource, _, wanted_sub = pattern.partition("/")
    return wanted_resource in ("*", resource) and wanted_sub in ("*", sub_resource)
