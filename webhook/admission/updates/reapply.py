"""Keeps a second `kubectl apply` of a manifest from undoing what admission wrote into its templates. Pure.

For kinds without a schema, kubectl and other clients replace whole lists (a JSON merge patch of a JobSet's
`replicatedJobs`), so the update lacks what admission wrote there. An update that asks for the same templates
as before therefore gets the stored templates. It asks for the same if the annotation `bayplan.dev/applied`
says so, or if admission of the object as a new one would produce the stored templates. The second test alone
is not enough: the gang may have been queued at first or have moved, or policies or parameters may have
changed.

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

from webhook.workloads import Template, Workload
from webhook.workloads.keys.annotation_keys import APPLIED, PLACEMENT, POLICIES, RESERVATION

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
    obj: Json, old: Json | None, workload: Workload, as_created: Callable[[], Json | None]
) -> Json:
    """Returns the object of an update; if the update asks for the same templates as before, with the template
    fields of `old`, the stored object.

    `as_created`: returns the object as admission would make it if the object were new, None if the object
    would be refused; called only if the fields differ.
    """
    fields = _fields((*workload.templates, *workload.inlined))
    former = {field: _value(old, field) for field in fields} if old is not None else {}
    if not former or None in former.values() or all(_value(obj, field) == former[field] for field in fields):
        return obj
    if workload.owner_has_templates or not _asks_for_the_same(obj, old or {}, fields, as_created):
        return obj
    restored = dict(obj)
    for (top, name), value in former.items():
        restored[top] = {**restored[top], name: value}
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
    before, after = _digest(original, fields), _digest(obj, fields)
    noted = str(_annotations(original).get(APPLIED, ""))  # any user may have written it
    if noted and noted.partition("/")[2] == before == after:
        return obj  # the API server reinvokes the webhook with the object that this webhook returned
    annotations = {key: value for key, value in _annotations(obj).items() if key != APPLIED}
    if before != after:
        annotations[APPLIED] = f"{before}/{after}"
    if annotations == _annotations(obj):
        return obj
    return {**obj, "metadata": {**(obj.get("metadata") or {}), "annotations": annotations}}


def _asks_for_the_same(
    obj: Json, old: Json, fields: tuple[_Field, ...], as_created: Callable[[], Json | None]
) -> bool:
    before, _, after = str(_annotations(old).get(APPLIED, "")).partition("/")
    if after and after != _digest(old, fields):
        return False
    if before and before == _digest(obj, fields):
        return True
    mutated = as_created()
    return mutated is not None and all(_value(mutated, field) == _value(old, field) for field in fields)


def _digest(obj: Json, fields: Iterable[_Field]) -> str:
    values = [(field, _value(obj, field)) for field in fields]
    return hashlib.sha256(orjson.dumps(values, option=orjson.OPT_SORT_KEYS)).hexdigest()[:_DIGEST_LENGTH]


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
