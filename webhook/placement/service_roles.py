"""Finds the role of an object in disaggregated inference, and where the other roles of its service are. Pure.

The roles prefill, decode and router are parts of one object, or objects of their own whose names differ only
in the role, for example `llama-prefill` and `llama-decode`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from planner.model.reservation import Reservation

ROLES = ("prefill", "decode", "router")


ROLE_LABELS = ("scheduling.run.ai/topology-role", "app.kubernetes.io/component")
"""Labels that name a role; the first is from Run:ai's recipe."""


def role_of(name: str, *labels: Any) -> str:
    """Returns the role that one of these label mappings names, otherwise the role in the object's name; ""
    for none.
    """
    for key in ROLE_LABELS:
        for mapping in labels:
            if mapping and isinstance(mapping, Mapping) and mapping.get(key) in ROLES:
                return str(mapping[key])
    return _parsed(name)[1]


def _parsed(name: str) -> tuple[str, str]:
    """Returns the service and the role in a name; ("", "") if it contains no role.

    The service is the text before the role. If there is none, it is "-" and the word after the role."""
    words = name.split("-")
    for index, word in enumerate(words):
        if word in ROLES:
            return "-".join(words[:index]) or "-" + "".join(words[index + 1 : index + 2]), word
    return "", ""


def places_of_service(
    gang: str, own: Iterable[str], reservations: Iterable[Reservation]
) -> list[dict[str, Any]]:
    """Returns the places of the other gangs of the same service, in the order of the reservations.

    `gang`: the object, NAMESPACE/KIND/NAME. `own`: the names of its gangs. Each place is a dict with `gang`,
    `role`, `topology` and `domain`."""
    namespace, _, name = gang.split("/", 2)
    service, role = _parsed(name)
    if not role:
        return []
    kept = {*own, gang}
    places = []
    for held in reservations:
        parts = held.gang.split("/")
        if parts[0] == namespace and len(parts) > 2 and held.gang not in kept:
            their_service, role = _parsed(parts[2])
            if role and their_service == service:
                place = {"gang": held.gang, "role": role}
                places.append({**place, "topology": held.topology, "domain": list(held.domain)})
    return places
