"""What the doctor says of odd installations."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from planner.manifests.reservation import reservation_manifest
from planner.model.labels import RESERVED_TAINT
from tests.planner.ledger.books import whole
from webhook.kube.api.client import Api
from webhook.kube.doctor import checks
from webhook.kube.doctor.checks import examine
from webhook.kube.doctor.dry_run import examine_dry_run
from webhook.kube.doctor.patient import APPLY, Patient
from webhook.kube.ledger.documents import RESERVATIONS
from webhook.kube.state.findings import CheckFinding
from webhook.placement.taints import holder

Json = dict[str, Any]


class Configured(Api):
    """An API server in which each object has this content. `ahead`: by how much its clock is ahead."""

    def __init__(self, configuration: Json, ahead: timedelta = timedelta(0)) -> None:
        self.configuration, self.ahead = configuration, ahead

    def now(self) -> float:
        """The API server's time."""
        return (datetime.now(UTC) + self.ahead).timestamp()

    async def get(self, path: str, **query: str) -> Json:
        """The configuration."""
        return self.configuration


@pytest.mark.parametrize("configuration", [{}, {"webhooks": None}, {"webhooks": []}])
async def test_a_configuration_without_webhooks_is_a_fault(
    monkeypatch: pytest.MonkeyPatch, configuration: Json
) -> None:
    """Nothing is sent to Bayplan then, and the other checks go on."""
    looked_at = [check for check in checks.CHECKS if check.__name__ == "_webhooks"]
    monkeypatch.setattr(checks, "CHECKS", looked_at)
    patient = Patient(Configured(configuration), "bayplan-system", "bayplan")
    message = "the configuration bayplan has none: no object is sent to Bayplan"
    assert await examine(patient) == [
        CheckFinding(f"{kind} webhooks", "fail", message, APPLY) for kind in ("mutating", "validating")
    ]


async def test_webhooks_with_one_fault_are_one_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    """Right after an installation none has a CA; that were forty lines."""
    looked_at = [check for check in checks.CHECKS if check.__name__ == "_webhooks"]
    monkeypatch.setattr(checks, "CHECKS", looked_at)
    webhooks = [{"name": f"{name}.bayplan.dev", "clientConfig": {}} for name in "abcd"]
    patient = Patient(Configured({"webhooks": webhooks}), "bayplan-system", "bayplan")
    message = "a.bayplan.dev, b.bayplan.dev and 2 more: caBundle holds no certificate"
    assert [finding.message for finding in await examine(patient)] == [message] * 2


async def test_a_reservation_that_was_made_by_hand_for_a_gang_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With what it does; those that the webhook wrote are not."""
    looked_at = [check for check in checks.CHECKS if check.__name__ == "_reservations"]
    monkeypatch.setattr(checks, "CHECKS", looked_at)
    own = reservation_manifest(whole("team/Job/a", "r1"))
    by_hand = reservation_manifest(replace(whole("team/Job/a", "r2"), id="mine"))

    class Listing(Configured):
        async def list(self, path: str, read: Any = None, **query: str) -> Any:
            return [own, by_hand], "1"

    (finding,) = await examine(Patient(Listing({}), "bayplan-system", "bayplan"))
    assert (finding.subject, finding.grade) == ("reservations", "warn")
    assert finding.message.startswith(
        "Reservation/mine was made by hand for team/Job/a, whose own reservation"
    )


async def test_reservations_are_listed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """For those that were made by hand, and for the taint of a node that belongs to no reservation."""
    held = whole("team/Job/a", "r1")
    listed: list[str] = []

    def node(name: str, gang: str) -> Json:
        taint = {"key": RESERVED_TAINT, "value": holder(gang), "effect": "NoSchedule"}
        return {"metadata": {"name": name}, "spec": {"taints": [taint]}}

    class Listing(Configured):
        async def list(self, path: str, read: Any = None, **query: str) -> Any:
            listed.append(path)
            nodes = [node("n1", "team/Job/a"), node("n2", "team/Job/gone")]
            return nodes if path.endswith("nodes") else [reservation_manifest(held)], "1"

    after_topology = checks.CHECKS[checks.CHECKS.index(checks._topology) + 1 :]
    monkeypatch.setattr(checks, "CHECKS", [check for check in after_topology if check != examine_dry_run])
    (finding,) = await examine(Patient(Listing({}), "bayplan-system", "bayplan"))
    assert finding.message == "1 of 2 fenced nodes, such as n2, belong to no reservation"
    assert sorted(listed) == ["/api/v1/nodes", RESERVATIONS]


@pytest.mark.parametrize("hours", [-2, 2])
async def test_the_leader_is_judged_by_the_time_of_the_api_server(
    monkeypatch: pytest.MonkeyPatch, hours: int
) -> None:
    """The Lease has the time of the cluster: the clock of the user's machine says nothing about it."""
    monkeypatch.setattr(checks, "CHECKS", [check for check in checks.CHECKS if check.__name__ == "_leader"])
    ahead = timedelta(hours=hours)
    spec = {"holderIdentity": "replica-1", "leaseDurationSeconds": 15}

    async def grade(renewed_ago: timedelta) -> str:
        renewed = (datetime.now(UTC) + ahead - renewed_ago).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        patient = Patient(
            Configured({"spec": {**spec, "renewTime": renewed}}, ahead), "bayplan-system", "bayplan"
        )
        (finding,) = await examine(patient)
        return finding.grade

    assert await grade(timedelta(seconds=2)) == "ok"
    assert await grade(timedelta(minutes=2)) == "fail"
