"""Patches of many pods."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from webhook.kube.api.client import Api, Unreachable
from webhook.kube.controller.actions.pod_patches import AT_ONCE, patch_pods
from webhook.kube.state.gangs import Ref, Unbound


class Gone(Api):
    """An API server that does not answer."""

    def __init__(self) -> None:
        self.asked = 0

    async def get(self, path: str, **query: str) -> dict[str, Any]:
        """Counts the calls."""
        self.asked += 1
        await asyncio.sleep(0)
        raise Unreachable("connection refused")


async def test_no_further_pod_is_read_after_an_error() -> None:
    """The round has ended, and another replica may lead by then."""
    api = Gone()
    pods = [
        Unbound(Ref("v1", "Pod", "a", f"p{number}", ""), 0.0, "", True, (), "", "", None)
        for number in range(10 * AT_ONCE)
    ]
    with pytest.raises(Unreachable):
        await patch_pods(api, pods, lambda _, stored: stored)
    await asyncio.sleep(0.01)
    assert api.asked <= AT_ONCE + 1
