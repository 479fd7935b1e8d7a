"""`bayplan serve` takes up changed files for as long as it runs."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest

from planner.ledger.sqlite import SqliteLedger
from webhook.cli.installation import reloads as module
from webhook.cli.installation.reloads import Reloads
from webhook.policy.loading.files import PolicyStore
from webhook.policy.model.policy import PolicySet
from webhook.server.http import Webhook
from webhook.server.service import Service

POLICY = """
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: NAME}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]
  validations: [{expression: "true"}]
"""


class Denied(PolicyStore):
    """A store whose folder may not be entered at the first check."""

    checks = 0

    def reload_if_changed(self) -> bool:
        """Raises the first time."""
        self.checks += 1
        if self.checks == 1:
            raise PermissionError(13, "Permission denied")
        return super().reload_if_changed()


async def test_an_error_does_not_end_the_reloads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The next check takes up what has changed; nobody would be told that none followed."""
    monkeypatch.setattr(module, "RELOAD_SECONDS", 0.01)
    file = tmp_path / "policy.yaml"
    file.write_text(POLICY.replace("NAME", "first"))
    webhook = Webhook(Service(Denied([file]), SqliteLedger(tmp_path / "ledger.db")))
    taken: list[PolicySet] = []
    with caplog.at_level(logging.ERROR):
        running = asyncio.create_task(Reloads(webhook, taken.append).run())
        file.write_text(POLICY.replace("NAME", "second"))
        async with asyncio.timeout(5):
            while not taken:  # noqa: ASYNC110 - a reload sets no event
                await asyncio.sleep(0.01)
    running.cancel()
    await asyncio.wait([running])
    assert [policy.name for policy in taken[0].policies] == ["second"]
    assert "reload: PermissionError" in caplog.text
