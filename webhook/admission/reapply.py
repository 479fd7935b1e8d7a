"""A second `kubectl apply` of a manifest must not undo what admission wrote into its templates. Pure.

kubectl and server-side clients replace whole lists of kinds without a schema (a JSON merge patch of a
JobSet's `replicatedJobs`), so what admission wrote there is missing from the update. An update that asks for
the same as before gets the same templates as before. It asks for the same where our own annotation
`bayplan.dev/applied` says so, or else where the object, mutated as if it were new, gets these very templates.
The annotation serves also where it would get others by now: its gang was queued at first or has moved since,
or policies or parameters have changed.

`bayplan.dev/applied` has two digests: of the templates as they came, and of what admission made of them. The
second tells whether anybody has changed them since; if so, the first says nothing any more. kubectl's note of
what was last applied is not asked: `kubectl edit` leaves it as it was, and the manifest that is applied again
to take the edit back would count as what is stored.
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
"""A field of an object's top-level field: ("spec", "template")."""


_DIGEST_LENGTH = 16
"""Hexadecimal digits, 64 bits: a manifest is compared with one other, never looked up among many."""


_OWN = (APPLIED, PLACEMENT, POLICIES, RESERVATION)
"""What admission writes on the object itself; an update that asks for the same keeps it too."""


def with_former_templates(
    obj: Json, old: Json | None, workload: Workload, as_created: Callable[[], Json | None]
) -> Json:
    """The object, with the fields of `old` that hold templates where its own, mutated as new, equal them.

    `as_created` gives that mutated object, None where it would be refused; it is only asked for where those
    fields differ at all.
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
    """The object with the digests of its templates, as they came in `original` and as they are now.

    Without them where admission changed nothing in the templates.
    """
    fields = _fields((*workload.templates, *workload.inlined))
    if not fields:  # a pod
        return obj
    before, after = _digest(original, fields), _digest(obj, fields)
    noted = str(_annotations(original).get(APPLIED, ""))  # as anybody may have written it
    if noted and noted.partition("/")[2] == before == after:
        return obj  # it comes again as it was left, in the reinvocation of one request
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
    """The field of the spec that holds a template: `replicatedJobs` of a JobSet, `template` of a Job.

    Policies write around the templates in it too.
    """
    if len(template.path) < 2:
        return None
    top, name = template.path[:2]
    return str(top), str(name)


def _value(obj: Json, field: _Field) -> Any:
    top = obj.get(field[0])
    return top.get(field[1]) if isinstance(top, Mapping) else None
