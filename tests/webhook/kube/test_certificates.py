"""The certificates of a Secret, as long as a server runs."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from certs.authority import service_names
from webhook.kube import certificates as module
from webhook.kube.api.client import Api
from webhook.kube.certificates import SecretCertificates


class Proxied(Api):
    """An API server behind a proxy that answers in its place."""

    def __init__(self) -> None:
        self.asked = 0

    async def get(self, path: str, **query: str) -> dict[str, Any]:
        """JSON that is no object of Kubernetes."""
        self.asked += 1
        return {"login": "required"}


async def test_an_odd_answer_does_not_end_the_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The certificate would never be renewed, and the server be out of reach when it ends."""
    monkeypatch.setattr(module, "EVERY", 0.01)
    api = Proxied()
    names = service_names("bayplan", "bayplan-system")
    served = SecretCertificates(api, "bayplan-system", "bayplan-tls", names, ["bayplan"])
    watching = asyncio.create_task(served.watch())
    async with asyncio.timeout(5):
        while api.asked < 10:  # noqa: ASYNC110 - a check sets no event
            await asyncio.sleep(0.01)
    assert "KeyError" in served.problem
    assert not watching.done()
    watching.cancel()
    await asyncio.wait([watching])
