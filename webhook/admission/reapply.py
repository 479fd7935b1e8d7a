"""A second `kubectl apply` of a manifest must not undo what admission wrote into its templates. Pure.

kubectl and server-side clients replace whole lists of kinds without a schema (a JSON merge patch of a
JobSet's `replicatedJobs`), so what admission wrote there is missing from the update. An update that asks for
the same as before gets the same templates as before. It asks for the same where kubectl's annotation
`last-applied-configuration` says so, or else where the object, mutated as if it were new, gets these very
templates. The annotation serves also for a gang that was queued at first or has moved since: mutated now it
would get other templates, and its kind lets nobody change them.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

import orjson

from webhook.workloads import Template, Workload

Json = Mapping[str, Any]


_Field = tuple[str, str]
"""A field of an object's top-level field: ("spec", "template")."""


LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
"""Where kubectl keeps the manifest that it was given."""


def with_former_templates(
    obj: Json, old: Json | None, workload: Workload, as_created: Callable[[], Json | None]
) -> Json:
    """The object, with the fields of `old` that hold templates where its own, mutated as new, equal them.

    `as_created` gives that mutated object, None where it would be refused; it is only asked for where those
    fields differ at all.
    """
    fields = {field for template in workload.templates if (field := _field(template)) is not None}
    former = {field: _value(old, field) for field in fields} if old is not None else {}
    if not former or None in former.values() or all(_value(obj, field) == former[field] for field in fields):
        return obj
    if not all(_applied_again(obj, old or {}, field) for field in fields):
        mutated = as_created()
        if mutated is None or any(_value(mutated, field) != former[field] for field in fields):
            return obj
    restored = copy.deepcopy(dict(obj))
    for (top, name), value in former.items():
        restored[top][name] = value
    return restored


def _applied_again(obj: Json, old: Json, field: _Field) -> bool:
    """Whether a field of the update is what `kubectl apply` was given, now as the last time."""
    now, before = _value(_last_applied(obj), field), _value(_last_applied(old), field)
    return now is not None and now == before == _value(obj, field)


def _last_applied(obj: Json) -> Json:
    metadata = obj.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, Mapping) else None
    try:
        manifest = orjson.loads(str((annotations or {}).get(LAST_APPLIED, "{}")))
    except (orjson.JSONDecodeError, AttributeError):
        return {}
    return manifest if isinstance(manifest, dict) else {}


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
