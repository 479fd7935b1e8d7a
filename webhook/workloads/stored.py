"""Reads the metadata of a stored object: its controller, its reservations, its times. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from webhook.workloads.keys.annotation_keys import RESERVATION
from webhook.workloads.kinds import WorkloadKind, row_of

Json = Mapping[str, Any]


def controller_of(obj: Json) -> Json:
    """Returns the ownerReference of the object's controller, {} for none."""
    owners = obj["metadata"].get("ownerReferences") or []
    return next((owner for owner in owners if owner.get("controller")), {})


def controller_row(obj: Json) -> WorkloadKind | None:
    """Returns the row of the controller's kind; None for no controller and for an unknown kind.

    The API group counts: a Job of another group than `batch` has none of its properties."""
    controller = controller_of(obj)
    return row_of(str(controller.get("apiVersion", "")), str(controller.get("kind", "")))


def reservation_ids(annotations: Json) -> tuple[str, ...]:
    """Returns the ids of the reservations that an object names, in replica order."""
    return tuple(name for name in str(annotations.get(RESERVATION, "")).split(",") if name)


def seconds(moment: str) -> float:
    """Converts RFC 3339 to seconds since the epoch; 0 for "". Raises `ValueError` for any other text."""
    return datetime.fromisoformat(moment).timestamp() if moment else 0.0
