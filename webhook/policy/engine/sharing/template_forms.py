"""Finds templates that differ only in values which hardly any policy reads, so that a policy runs once for
all of them.

The templates of one object usually differ in what their containers run (image, command, environment), and in
labels and annotations that state the role of their pods. Values that differ are replaced by a stand-in
(`webhook.cel.values.stand_in`); the result is the *form* of the template. If a policy reads no stand-in, its
effect is the same on all templates with the same form. Otherwise it is run on each template.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from planner.manifests.pods.pod import UNREAD
from webhook.cel.values.stand_in import StandIn
from webhook.jsontools.diff import equal
from webhook.jsontools.path import Path
from webhook.policy.engine.forms.form import Form, Json, containers, json_of, pull_policies, with_stand_ins
from webhook.policy.engine.targets import Target

Show = Callable[[Target], dict[str, Any]]

POD_SET: Any = StandIn()
"""Stand-in for the name of a template's PodSet. The CEL variable `gang.podSet` is this name, and the PodSet's
part of the CEL variable `plan` is found by it.
"""


@dataclass(slots=True)
class Forms:
    """The forms of one object's templates in one pass over the policies.

    `places`: for each path at which the templates differ, the stand-in that replaces the value there; None
    until the first form is requested. `forms`: by the form's content as JSON without defaults, and the one
    default that depends on a replaced value. With defaults, templates that state different ones of them could
    have one form, and differ after a policy has changed both in the same way.
    """

    places: dict[Path, StandIn] | None = None
    forms: dict[bytes, Form] = field(default_factory=dict)
    of_templates: dict[Path, tuple[Any, Form | None]] = field(default_factory=dict)
    """By the path of a template: the template, and its form (None if it has none)."""

    def form(self, target: Target, templates: Sequence[Target], show: Show) -> Form | None:
        """Returns the form of a target; None if policies are run on this target separately.

        They are run separately on the object itself, on an object's only template, on templates of an updated
        object (each has its own `oldObject`), on templates that are no PodTemplateSpec (`Target.inlined`),
        and on content that JSON cannot represent. `show` returns the content of a target as policies see it.
        """
        if not target.path or target.old is not None or target.inlined is not None or len(templates) < 2:
            return None
        remembered = self.of_templates.get(target.path)
        if remembered is None or remembered[0] is not target.raw:
            if self.places is None:
                self.places = {place: StandIn() for place in _differing_paths(map(show, templates))}
            remembered = target.raw, self._form(target, show, self.places)
            self.of_templates[target.path] = remembered
        return remembered[1]

    def record(self, target: Target, form: Form) -> None:
        """Records the form of a template after a policy has changed it."""
        self.of_templates[target.path] = target.raw, form

    def _form(self, target: Target, show: Show, places: Mapping[Path, StandIn]) -> Form | None:
        content = json_of((with_stand_ins(target.raw or {}, places)[0], pull_policies(target.raw)))
        if content is None:
            return None
        form = self.forms.get(content)
        if form is None:
            form = self.forms[content] = Form(*with_stand_ins(show(target), places))
        return form


def with_pod_set_hidden(target: Target) -> Target:
    """Returns the target with a stand-in for the name of its PodSet.

    A run on this target raises StandInRead if it reads the name or a value that depends on the name, so a
    result of the run is also valid for templates of other PodSets.
    """
    return replace(target, pod_set=POD_SET)


def _differing_paths(shown: Iterator[Json]) -> Iterator[Path]:
    """Yields each path of a replaceable value at which two of these pods have different values, once."""
    first: dict[Path, Any] = {}
    differing: set[Path] = set()
    for pod in shown:
        for place, value in _replaceable(pod):
            if place not in differing and not equal(first.setdefault(place, value), value):
                differing.add(place)
                yield place


def _replaceable(pod: Json) -> Iterator[tuple[Path, Any]]:
    """Yields the values that a stand-in may replace: labels, annotations, and what containers run."""
    metadata = pod.get("metadata")
    for part in ("labels", "annotations"):
        values = metadata.get(part) if isinstance(metadata, dict) else None
        if isinstance(values, dict):
            for key, value in values.items():
                yield ("metadata", part, key), value
    for part, index, container in containers(pod):
        for name, value in container.items():
            if name in UNREAD:
                yield ("spec", part, index, name), value
