"""A second `kubectl apply` of a manifest must not undo what admission wrote into its templates. Pure.

kubectl and server-side clients replace whole lists of kinds without a schema (a JSON merge patch of a
JobSet's `replicatedJobs`), so what was injected there is gone from the update. Where the update asks for just
what was asked before, it gets what it got before: kubectl's own note of what was last applied tells it, and
where there is none, that the object as it came would get the same again. It tells it also of a gang that
was queued then and has its place now, or has moved since: its templates are what its kind lets nobody change.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

import orjson

from webhook.workloads import Template, Workload

Json = Mapping[str, Any]


LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
"""Where kubectl keeps the manifest that it was given."""


def as_before(obj: Json, old: Json | None, workload: Workload, as_new: Callable[[], Json | None]) -> Json:
    """The object, with the parts of `old` that hold templates where its own, mutated as new, equal them.

    `as_new` gives that mutated object, None where it would be refused; it is only asked for where those
    parts differ at all.
    """
    parts = {part for template in workload.templates if (part := _part(template)) is not None}
    before = {part: _at(old, part) for part in parts} if old is not None else {}
    if not before or None in before.values() or all(_at(obj, part) == before[part] for part in parts):
        return obj
    if not all(_applied_again(obj, old or {}, part) for part in parts):
        mutated = as_new()
        if mutated is None or any(_at(mutated, part) != before[part] for part in parts):
            return obj
    restored = copy.deepcopy(dict(obj))
    for (top, field), value in before.items():
        restored[top][field] = value
    return restored


def _applied_again(obj: Json, old: Json, part: tuple[str, str]) -> bool:
    """Whether a part of the update is what `kubectl apply` was given, now as the last time."""
    now, then = (_at(_last_applied(one), part) for one in (obj, old))
    return now is not None and now == then == _at(obj, part)


def _last_applied(obj: Json) -> Json:
    metadata = obj.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, Mapping) else None
    try:
        found = orjson.loads(str((annotations or {}).get(LAST_APPLIED, "{}")))
    except (orjson.JSONDecodeError, AttributeError):
        return {}
    return found if isinstance(found, dict) else {}


def _part(template: Template) -> tuple[str, str] | None:
    """The field of the spec that holds a template: `replicatedJobs` of a JobSet, `template` of a Job.

    Policies write around the templates in it too.
    """
    if len(template.path) < 2:
        return None
    top, field = template.path[:2]
    return str(top), str(field)


def _at(obj: Json, part: tuple[str, str]) -> Any:
    value = obj.get(part[0])
    return value.get(part[1]) if isinstance(value, Mapping) else None
