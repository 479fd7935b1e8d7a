"""Keeps a second `kubectl apply` of a manifest from undoing what admission wrote into its templates. Pure.

For kinds without a schema, kubectl and other clients replace whole lists (a JSON merge patch of a JobSet's
`replicatedJobs`), so the update lacks what admission wrote there. An update that asks for the same templates
as before therefore gets the stored templates. It asks for the same if the annotation `bayplan.dev/applied`
says so, or if admission of the object as a new one would produce the stored templates. The second test alone
is not enough: the gang may have been queued at first or have moved, or policies or parameters may have
changed.

Numbers of pods beside the templates are left out of this comparison (`COUNTS`), and are as the update states
them: a manifest that is applied again with more replicas asks for the same templates.

`bayplan.dev/applied` has two digests: of the templates as they were applied, and of the templates after
admission. If the stored templates differ from the second digest, somebody has changed them since, and the
first is not used. kubectl's annotation `last-applied-configuration` is not used: `kubectl edit` does not
update it, so applying a manifest again in order to undo an edit would look like no change.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import orjson

from planner.cluster.snapshot import Snapshot
from webhook.jsontools.path import Path, find, replaced
from webhook.placement.pod_affinity import remove_placement_affinity, terms_of_object
from webhook.placement.stamp import OF_PLAN
from webhook.workloads import Template, Workload
from webhook.workloads.keys.annotation_keys import APPLIED, PLACEMENT, POLICIES, RESERVATION
from webhook.workloads.layouts.layout import COUNTS

Json = Mapping[str, Any]


_Field = tuple[str, str]
"""A field of the second level of an object, for example ("spec", "template")."""

_DIGEST_LENGTH = 16
"""Number of hexadecimal digits. 64 bits suffice, because a digest is compared with one other, never looked up
among many."""

_OWN = (APPLIED, PLACEMENT, POLICIES, RESERVATION)
"""The annotations that admission writes on the object itself. They are restored with the templates, unless
the update states them."""


def with_former_templates(
    obj: Json,
    old: Json | None,
    workload: Workload,
    as_created: Callable[[], Json | None],
    planless: Callable[[Json], Json],
) -> Json:
    """Returns the object of an update; if the update asks for the same templates as before, with the template
    fields of `old`, the stored object.

    `as_created`: returns the object as admission would make it if the object were new and had the numbers of
    pods of `old` (`with_former_counts`), None if it would be refused; called only if the fields differ.
    `planless`: returns an object without what the plan of its gang wrote into its templates.
    """
    fields = _fields((*workload.templates, *workload.inlined))
    former = {field: _value(old, field) for field in fields} if old is not None else {}
    if not former or None in former.values() or all(_value(obj, field) == former[field] for field in fields):
        return obj
    if workload.owner_has_templates or not _asks_for_the_same(obj, old or {}, workload, as_created, planless):
        return obj
    restored, ends = dict(obj), _pods(workload)
    for (top, name), value in former.items():
        counted = _with_counts_of(obj[top][name], value, (top, name), ends)
        restored[top] = {**restored[top], name: counted}
    kept = {key: value for key, value in _annotations(old or {}).items() if key in _OWN}
    if kept:
        restored["metadata"] = {**restored["metadata"], "annotations": {**kept, **_annotations(obj)}}
    return restored


def with_applied(obj: Json, original: Json, workload: Workload) -> Json:
    """Returns the object with `bayplan.dev/applied`: the digests of its templates in `original`, as applied,
    and in `obj`, after admission. If admission did not change the templates, the annotation is removed.
    """
    fields = _fields((*workload.templates, *workload.inlined))
    if not fields:  # a Pod has no template
        return obj
    ends = _pods(workload)
    before, after = _digest(original, fields, ends), _digest(obj, fields, ends)
    noted = str(_annotations(original).get(APPLIED, ""))  # any user may have written it
    if noted and noted.partition("/")[2] == before == after:
        return obj  # the API server reinvokes the webhook with the object that this webhook returned
    annotations = {key: value for key, value in _annotations(obj).items() if key != APPLIED}
    if before != after:
        annotations[APPLIED] = f"{before}/{after}"
    if annotations == _annotations(obj):
        return obj
    return {**obj, "metadata": {**(obj.get("metadata") or {}), "annotations": annotations}}


def with_former_counts(obj: Json, old: Json, workload: Workload) -> Json:
    """Returns the object with the numbers of pods of `old`, the stored object, beside its templates."""
    ends = _pods(workload)
    tops = {str(path[0]) for path in ends}
    return {**obj, **{top: _with_counts_of(old.get(top), obj.get(top), (top,), ends) for top in tops}}


def without_plan(obj: Json, workload: Workload, snapshot: Snapshot) -> Json:
    """Returns an object without the annotations and node affinity that plans wrote into its templates."""
    written = terms_of_object(obj, workload, snapshot)
    for template in workload.templates:
        metadata, spec = find(obj, template.metadata_path) or {}, find(obj, template.spec_path)
        annotations = metadata.get("annotations") or {}
        own = {key: value for key, value in annotations.items() if key not in OF_PLAN}
        obj = replaced(obj, template.metadata_path, {**metadata, "annotations": own})
        affinity = remove_placement_affinity(spec.get("affinity") or {}, written)
        rest = {key: value for key, value in spec.items() if key != "affinity"}
        obj = replaced(obj, template.spec_path, {**rest, "affinity": affinity} if affinity else rest)
    return obj


def _asks_for_the_same(
    obj: Json,
    old: Json,
    workload: Workload,
    as_created: Callable[[], Json | None],
    planless: Callable[[Json], Json],
) -> bool:
    fields, ends = _fields((*workload.templates, *workload.inlined)), _pods(workload)
    before, _, after = str(_annotations(old).get(APPLIED, "")).partition("/")
    if after and after != _digest(old, fields, ends):
        return False
    if before and before == _digest(obj, fields, ends):
        return True
    mutated = as_created()
    return mutated is not None and (
        _without_counts(planless(mutated), fields, ends) == _without_counts(planless(old), fields, ends)
    )


def _digest(obj: Json, fields: Iterable[_Field], ends: frozenset[Path]) -> str:
    values = _without_counts(obj, fields, ends)
    return hashlib.sha256(orjson.dumps(values, option=orjson.OPT_SORT_KEYS)).hexdigest()[:_DIGEST_LENGTH]


def _without_counts(obj: Json, fields: Iterable[_Field], ends: frozenset[Path]) -> list[tuple[_Field, Any]]:
    """Returns the fields with their values, in which there are no numbers of pods."""
    return [(field, _with_counts_of(None, _value(obj, field), field, ends)) for field in fields]


def _with_counts_of(asked: Any, value: Any, path: Path, ends: frozenset[Path]) -> Any:
    """Returns the value at `path` with the numbers of pods that `asked`, the same field of an update, states;
    without any if that is None."""
    if path in ends:
        return value
    if isinstance(value, Mapping):
        stated = asked if isinstance(asked, Mapping) else {}
        rest = {
            key: _with_counts_of(stated.get(key), inner, (*path, key), ends)
            for key, inner in value.items()
            if not _is_count(key, inner)
        }
        return rest | {key: inner for key, inner in stated.items() if _is_count(key, inner)}
    if isinstance(value, list):
        states = asked if isinstance(asked, list) and len(asked) == len(value) else [None] * len(value)
        return [
            _with_counts_of(each, inner, (*path, place), ends)
            for place, (each, inner) in enumerate(zip(states, value, strict=True))
        ]
    return value


def _is_count(key: str, value: Any) -> bool:
    return key in COUNTS and isinstance(value, int)


def _pods(workload: Workload) -> frozenset[Path]:
    """Returns the paths of the pods' own specs and metadata, in which no number is a number of pods."""
    return frozenset(
        path
        for template in (*workload.templates, *workload.inlined)
        for path in (template.metadata_path, template.spec_path)
        if path != template.path
    )


def _annotations(obj: Json) -> Json:
    metadata = obj.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, Mapping) else None
    return annotations if isinstance(annotations, Mapping) else {}


def _fields(templates: Iterable[Template]) -> tuple[_Field, ...]:
    fields = {field for template in templates if (field := _field(template)) is not None}
    return tuple(sorted(fields))


def _field(template: Template) -> _Field | None:
    """Returns the field that holds a template: `spec.replicatedJobs` of a JobSet, `spec.template` of a Job.

    Policies also write into that field beside the templates.
    """
    if len(template.path) < 2:
        return None
    top, name = template.path[:2]
    return str(top), str(name)


def _value(obj: Json, field: _Field) -> Any:
    top = obj.get(field[0])
    return top.get(field[1]) if isinstance(top, Mapping) else None
