"""Roles of disaggregated inference: which one an object plays, and where the others have their place. Pure.

Prefill, decode and router are either parts of one object, or objects of their own whose names differ in the
role alone: `llama-prefill` and `llama-decode`, and the pods that Deployments of these names make.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from planner.model.reservation import Reservation

ROLES = ("prefill", "decode", "router")


ROLE_LABELS = ("scheduling.run.ai/topology-role", "app.kubernetes.io/component")
"""Labels that name a role; the first is of Run:ai's recipe."""


def role_of(name: str, *labels: Any) -> str:
    """The role that labels name, or else an object's name; "" for none."""
    for key in ROLE_LABELS:
        for mapping in labels:
            if isinstance(mapping, Mapping) and mapping.get(key) in ROLES:
                return str(mapping[key])
    return _parsed(name)[1]


def _parsed(name: str) -> tuple[str, str]:
    """The service of a name, and its role: what stands before the role, or else the word after it."""
    words = name.split("-")
    for place, word in enumerate(words):
        if word in ROLES:
            return "-".join(words[:place]) or "-" + "".join(words[place + 1 : place + 2]), word
    return "", ""


def beside(gang: str, own: Iterable[str], reservations: Iterable[Reservation]) -> list[dict[str, Any]]:
    """The places of the same service's other gangs, in the order of the reservations.

    `gang` is NAMESPACE/KIND/NAME of an object, `own` the names of its gangs. Each place has its `gang`,
    `role`, `topology` and `domain`.
    """
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
