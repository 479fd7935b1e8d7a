"""What the doctor says of odd installations."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from webhook.kube.api.client import Api
from webhook.kube.doctor import checks
from webhook.kube.doctor.checks import Patient, examine
from webhook.kube.state.findings import CheckFinding

Json = dict[str, Any]


class Configured(Api):
    """An API server in which each webhook configuration has this content."""

    def __init__(self, configuration: Json) -> None:
        self.configuration = configuration

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
    patient = Patient(Configured(configuration), "bayplan-system", "bayplan", datetime.now(UTC))
    message = "the configuration bayplan has none: no object is sent to Bayplan"
    assert await examine(patient) == [
        CheckFinding(f"{kind} webhooks", "fail", message, checks.APPLY) for kind in ("mutating", "validating")
    ]
