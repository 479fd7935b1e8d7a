"""Bayplan's scheduling gate, which pods without a place have. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.model.errors import InputError, Where
from webhook.workloads.keys.annotation_keys import QUEUED_GATE

Json = dict[str, Any]


def is_gated(pod: Mapping[str, Any]) -> bool:
    """Returns whether a pod has Bayplan's scheduling gate."""
    spec = pod.get("spec")
    gates = (spec.get("schedulingGates") if isinstance(spec, Mapping) else None) or []
    return any(isinstance(gate, Mapping) and gate.get("name") == QUEUED_GATE for gate in gates)


def gated(spec: Mapping[str, Any], *, waits: bool) -> Json:
    """Returns the spec of a pod with Bayplan's gate (`waits`), or without it. Gates of others stay.

    Raises `InputError` if the gates are no list of objects.
    """
    stated = spec.get("schedulingGates") or []
    if not isinstance(stated, list) or not all(isinstance(gate, dict) for gate in stated):
        raise InputError("expected a list of {name: …}", Where(field="spec.schedulingGates"))
    others = {name: value for name, value in spec.items() if name != "schedulingGates"}
    gates = [gate for gate in stated if gate.get("name") != QUEUED_GATE]
    if waits:
        gates.append({"name": QUEUED_GATE})
    return {**others, "schedulingGates": gates} if gates else others
