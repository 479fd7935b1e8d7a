"""Roles of disaggregated inference: the role of an object, and where the other roles of its service run.
Pure.

Prefill, decode and router are parts of one object, or objects of their own whose names differ only in the
role, such as `llama-prefill` and `llama-decode` and the pods of Deployments with these names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from planner.model.reservation import Reservation

ROLES = ("prefill", "decode", "router")


ROLE_LABELS = ("scheduling.run.ai/topology-role", "app.kubernetes.io/component")
"""Labels that name a role; the first is from Run:ai's recipe."""


def role_of(name: str, *labels: Any) -> str:
    """Returns the role that the labels name, or else the object's name implies; "" for none."""
    for key in ROLE_LABELS:
        for mapping in labels:
            if mapping and isinstance(mapping, Mapping) and mapping.get(key) in ROLES:
                return str(mapping[key])
    return _parsed(name)[1]


def _parsed(name: str) -> tuple[str, str]:
    """Returns the service and the role in a name: the text before the role, or else the word after it."""
    words = name.split("-")
    for place, word in enumerate(words):
        if word in ROLES:
            return "-".join(words[:place]) or "-" + "".join(words[place + 1 : place + 2]), word
    return "", ""


def beside(gang: str, own: Iterable[str], reservations: Iterable[Reservation]) -> list[dict[str, Any]]:
    """Returns the places of the same service's other gangs, in the order of the reservations.

    `gang` is NAMESPACE/KIND/NAME of an object, `own` the names of its gangs. Each place has its `gang`,
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
