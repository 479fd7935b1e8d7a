"""Events on a gang's workload."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pytest

from webhook.kube.api.client import Api
from webhook.kube.controller.actions.events import Recorder
from webhook.kube.state.gangs import Ref

SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
"""What the API server accepts as the name of an event."""


class Written(Api):
    """An API server that keeps the events that are written."""

    def __init__(self) -> None:
        self.names: list[str] = []

    async def create(self, path: str, body: Mapping[str, Any], **query: str) -> dict[str, Any]:
        """Keeps the name of the event."""
        self.names.append(body["metadata"]["name"])
        return dict(body)


@pytest.mark.parametrize("mark", ["-", ".", "-."])
async def test_the_event_of_an_object_with_a_long_name_has_a_valid_name(mark: str) -> None:
    """The API server refuses a part that ends with a hyphen, and the event would be lost."""
    api = Written()
    name = "a" * (200 - len(mark)) + mark + "b" * 40
    await Recorder(api).tell(Ref("v1", "Pod", "research", name, "uid-1"), "Queued", "position 1 of 1")
    (written,) = api.names
    assert SUBDOMAIN.fullmatch(written)
    assert len(written) <= 253
