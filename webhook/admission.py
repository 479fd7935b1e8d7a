"""The decision: from a request, the policies and a picture of the cluster to one answer. Pure.

Copy the object; run the mutating policies in a fixed order, each seeing what the former did; plan; write the
plan onto the object; run the validating policies on the result; make one patch. No I/O, no clock, no chance,
so a dry run is the same decision with nothing done about it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from planner.errors import InputError
from planner.reservation import Reservation, reservation_id
from planner.snapshot import Snapshot
from webhook.diff import patch_between
from webhook.names import QUEUED_GATE, RESERVATION
from webhook.planning import WorkloadPlan
from webhook.policy.engine import Effect, Findings, Mutated, run_mutating, run_validating
from webhook.policy.model import PolicySet
from webhook.policy.request import AdmissionRequest
from webhook.review import Response
from webhook.sight import Sight
from webhook.stamp import policies_note, stamp
from webhook.workloads import Workload

Phase = Literal["mutate", "validate"]
Json = Mapping[str, Any]
PLAN = "plan"
"""The name under which the plan's own writing stands among the effects."""


@dataclass(frozen=True, slots=True)
class Reserve:
    """Take this reservation; it was planned on the book's revision `planned_on`."""

    reservation: Reservation
    planned_on: int


@dataclass(frozen=True, slots=True)
class Claim:
    """The workload exists: its hold no longer expires."""

    reservation: str
    owner_uid: str


@dataclass(frozen=True, slots=True)
class Release:
    """The workload is gone: give its reservation back."""

    reservation: str


Step = Reserve | Claim | Release


@dataclass(frozen=True, slots=True)
class Decision:
    """The answer, what is to be done in the ledger for it, and how it came about.

    `object` is the object as it shall be (as it came, where it is refused or nothing changed it).
    `effects` say which policy changed what; `plan` is None where nothing was planned; `skipped` names the
    policies that were left out because no cluster is known.
    """

    response: Response
    object: Json | None = None
    steps: tuple[Step, ...] = ()
    plan: WorkloadPlan | None = None
    effects: tuple[Effect, ...] = ()
    findings: Findings | None = None
    skipped: tuple[str, ...] = ()
    revision: str = ""


def decide(
    request: AdmissionRequest, policies: PolicySet, snapshot: Snapshot | None, phase: Phase
) -> Decision:
    """Answer one request. Never raises for what an object holds: that is a refusal in words."""
    if request.object is None or request.sub_resource:
        steps = _farewell(request, snapshot) if request.operation == "DELETE" else ()
        return Decision(Response(True), request.object, steps, revision=policies.revision)
    sight = Sight(request, snapshot)
    try:
        workload = sight.workload(request.object)
        if phase == "mutate":
            return _mutate(request, workload, policies, sight, snapshot)
        return _validate(request, policies, sight, snapshot)
    except InputError as error:
        return Decision(
            Response(False, code=422, reason="Invalid", message=str(error)),
            request.object,
            revision=policies.revision,
        )
