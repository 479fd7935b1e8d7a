"""What policies see of the object of a request, computed once for all policies of a pass."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from webhook.jsontools.path import Path
from webhook.policy.engine.defaults import defaulted
from webhook.policy.engine.forms.form import json_of
from webhook.policy.engine.inputs import PolicyInputs, poll_policies
from webhook.policy.engine.sharing.template_forms import Forms
from webhook.policy.engine.targets import Target, own_target, template_targets
from webhook.wire.request import AdmissionRequest


@dataclass(slots=True)
class ObjectCache:
    """Results computed from the object and its templates, shared by all policies.

    Nothing is changed in place: a mutation creates new maps and lists on the path to its change. A part of
    the object that no policy has changed is therefore the same Python object in each later state, and results
    for it stay valid. Otherwise, after a mutation of one of n templates, the results of all n would have to
    be computed again.

    `templates`: the pod templates that `templates_of` returned last, as targets.
    """

    request: AdmissionRequest
    inputs: PolicyInputs
    templates: tuple[Target, ...] = ()
    forms: Forms = field(default_factory=Forms)
    _own: Target | None = None
    """The object itself as a target."""
    _templates_of: Any = None
    """The object whose templates are `templates`."""
    _defaulted: dict[tuple[Path, bool], tuple[Any, dict[str, Any]]] = field(default_factory=dict)
    """By path and `template` (see `defaulted`), the value there without defaults, and its copy with them."""
    _contents: dict[Path, tuple[Any, bytes | None]] = field(default_factory=dict)
    """By path, the template and its JSON (None if JSON cannot represent it)."""
    _by_content: dict[tuple[bytes, bool], dict[str, Any]] = field(default_factory=dict)
    """By the JSON of a template and `template`, the copy with defaults."""
    _variables_of: Any = None
    """The object whose variables are in `_variables`."""
    _variables: dict[int, tuple[str, Mapping[str, Any]]] = field(default_factory=dict)
    """`gang`, `plan` and `cluster` by the `id` of a PodSet's name, because the name may be a stand-in, which
    has no hash: the name, which is kept alive so that no other object gets the same `id`, and the variables.
    """

    def own_target(self, obj: Mapping[str, Any] | None) -> Target:
        """Returns the object itself as a target."""
        own = self._own
        if own is None or own.raw is not obj:
            own = self._own = own_target(self.request, obj)
        return own

    def templates_of(self, obj: Mapping[str, Any] | None) -> tuple[Target, ...]:
        """Returns the pod templates of the object, as targets."""
        if self._templates_of is None:
            self.templates = tuple(template_targets(self.request, obj, self.inputs))
        elif self._templates_of is not obj:
            self.templates = tuple(target.as_in(obj) for target in self.templates)
        self._templates_of = obj
        return self.templates

    def defaulted(self, target: Target, *, template: bool) -> dict[str, Any]:
        """Returns the target with the API server's defaults, as expressions see it; it must not be modified.

        `template`: a template keeps limits without requests (`defaults.defaulted`). Equal templates share one
        object, so that results for it are found by identity.
        """
        key, shown = (target.path, template), target.obj or {}
        remembered = self._defaulted.get(key)
        if remembered is None or remembered[0] is not shown:
            content = self.content(target)
            copy = self._by_content.get((content, template)) if content is not None else None
            if copy is None:
                poll_policies()
                copy = defaulted(shown, template=template)
                if content is not None:
                    self._by_content[content, template] = copy
            remembered = self._defaulted[key] = shown, copy
        return remembered[1]

    def content(self, target: Target) -> bytes | None:
        """Returns the template as JSON, so that equal templates have equal keys; None for any other target,
        for a template with an old state, and for one that JSON cannot represent.
        """
        if not target.path or target.old is not None or target.inlined is not None:
            return None
        remembered = self._contents.get(target.path)
        if remembered is None or remembered[0] is not target.raw:
            remembered = self._contents[target.path] = target.raw, json_of(target.raw)
        return remembered[1]

    def variables(self, whole: Mapping[str, Any] | None, pod_set: str) -> Mapping[str, Any]:
        """Returns `gang`, `plan` and `cluster` of the object `whole`, for the PodSet of this name."""
        if self._variables_of is not whole:
            self._variables_of = whole
            self._variables.clear()
        if id(pod_set) not in self._variables:
            self._variables[id(pod_set)] = pod_set, self.inputs.variables(whole or {}, pod_set)
        return self._variables[id(pod_set)][1]
