"""A Reservation as a Kubernetes object, `bayplan.dev/v1alpha1`, and back, with nothing lost on the way.

What was reserved is `spec`; how long it holds and for whom is `status`. Amounts are written in base units
(cpu with the suffix `m`), so that reading them back gives the same numbers; times are RFC 3339 in UTC.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import cast

from planner import quantity
from planner.answer import Assignment
from planner.errors import InputError, Where
from planner.podgroup import ReserveMode
from planner.quantity import Resources
from planner.reservation import Reservation, State
from planner.topology import Domain

API_VERSION = "bayplan.dev/v1alpha1"
KIND = "Reservation"
_MODES = ("domain", "nodes", "none")
_STATES = ("held", "claimed")


def reservation_manifest(reservation: Reservation) -> dict[str, object]:
    """The reservation as `kubectl get -o yaml` would print it; lists are sorted where order means nothing."""
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": reservation.id},
        "spec": {
            "gang": reservation.gang,
            "topology": reservation.topology,
            "level": reservation.level,
            "domain": list(reservation.domain),
            "mode": reservation.mode,
            "domains": [list(domain) for domain in reservation.domains],
            "nodes": sorted(reservation.nodes),
            "assignments": [
                {"podSet": a.pod_set, "node": a.node, "count": a.count} for a in reservation.assignments
            ],
            "requests": [
                {"podSet": pod_set, "requests": _amounts(requests)}
                for pod_set, requests in reservation.requests
            ],
            "fingerprint": reservation.fingerprint,
        },
        "status": {
            "state": reservation.state,
            "created": _rfc3339(reservation.created),
            "expires": None if reservation.expires is None else _rfc3339(reservation.expires),
            "ownerUID": reservation.owner_uid,
        },
    }


def reservation_from(manifest: object, where: Where) -> Reservation:
    """The reservation that a manifest states. Raises `InputError` naming the field that is wrong."""
    root = _mapping(manifest, where)
    name = _text(_mapping(root.get("metadata"), where.at("metadata")), "name", where.at("metadata"))
    where = Where(where.file, where.object or f"{KIND}/{name}", "")
    spec_at, status_at = where.at("spec"), where.at("status")
    spec = _mapping(root.get("spec"), spec_at)
    status = _mapping(root.get("status") or {}, status_at)
    return Reservation(
        id=name,
        gang=_text(spec, "gang", spec_at),
        topology=_text(spec, "topology", spec_at, default=""),
        level=_text(spec, "level", spec_at, default=""),
        domain=_domain(spec.get("domain"), spec_at.at("spec.domain")),
        mode=cast(ReserveMode, _choice(spec, "mode", _MODES, spec_at, default="domain")),
        domains=tuple(_domain(item, at) for item, at in _items(spec, "domains", spec_at)),
        nodes=frozenset(_string(item, at) for item, at in _items(spec, "nodes", spec_at)),
        assignments=tuple(_assignment(item, at) for item, at in _items(spec, "assignments", spec_at)),
        requests=tuple(_requests(item, at) for item, at in _items(spec, "requests", spec_at)),
        fingerprint=_text(spec, "fingerprint", spec_at, default=""),
        created=_seconds(status.get("created"), status_at.at("status.created")) or 0.0,
        expires=_seconds(status.get("expires"), status_at.at("status.expires")),
        state=cast(State, _choice(status, "state", _STATES, status_at, default="held")),
        owner_uid=_text(status, "ownerUID", status_at, default=""),
    )


def _amounts(requests: Resources) -> dict[str, str]:
    return {name: f"{value}m" if name == "cpu" else str(value) for name, value in sorted(requests.items())}


def _assignment(item: object, where: Where) -> Assignment:
    entry = _mapping(item, where)
    count = entry.get("count")
    if not isinstance(count, int) or isinstance(count, bool) or count < 1:
        raise InputError(f"expected a number of pods, 1 or more, found {count!r}", _under(where, "count"))
    return Assignment(_text(entry, "podSet", where), _text(entry, "node", where), count)


def _requests(item: object, where: Where) -> tuple[str, Resources]:
    entry = _mapping(item, where)
    amounts = quantity.amounts(entry.get("requests"), _under(where, "requests"), up=True)
    return _text(entry, "podSet", where), amounts


def _domain(value: object, where: Where) -> Domain:
    if value is None:
        return ()
    return tuple(_string(part, where) for part in _sequence(value, where))


def _rfc3339(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def _seconds(value: object, where: Where) -> float | None:
    if value is None or value == "":
        return None
    if isinstance(value, datetime):  # PyYAML has read an unquoted timestamp already
        return (value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp()
    try:
        return datetime.fromisoformat(_string(value, where)).timestamp()
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{value!r} is no time; write it as 2026-01-31T12:00:00Z", where) from None


def _under(where: Where, key: str) -> Where:
    return where.at(f"{where.field}.{key}" if where.field else key)


def _mapping(value: object, where: Where) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        raise InputError(f"expected a mapping, found {type(value).__name__}", where)
    return value


def _sequence(value: object, where: Where) -> Sequence[object]:
    if not isinstance(value, list | tuple):
        raise InputError(f"expected a list, found {type(value).__name__}", where)
    return value


def _items(spec: Mapping[str, object], key: str, where: Where) -> list[tuple[object, Where]]:
    at = _under(where, key)
    return [(item, at.at(f"{at.field}[{i}]")) for i, item in enumerate(_sequence(spec.get(key) or [], at))]


def _string(value: object, where: Where) -> str:
    if not isinstance(value, str):
        raise InputError(f"expected a string, found {type(value).__name__}", where)
    return value


def _text(entry: Mapping[str, object], key: str, where: Where, default: str | None = None) -> str:
    value = entry.get(key)
    if value is None:
        if default is None:
            raise InputError("is missing", _under(where, key))
        return default
    return _string(value, _under(where, key))


def _choice(entry: Mapping[str, object], key: str, choices: Sequence[str], where: Where, default: str) -> str:
    value = _text(entry, key, where, default)
    if value not in choices:
        raise InputError(f"{value!r} is none of {', '.join(choices)}", _under(where, key))
    return value
