"""The taints of reserved domains, over several terms of one leader."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

import pytest

from planner.model.labels import RESERVED_TAINT
from webhook.kube.api.client import Api, ApiError, Event
from webhook.kube.controller.node_taints import NodeTaints
from webhook.policy.engine.device_selectors import read_cluster


class OneNode(Api):
    """An API server with one node, whose taint belongs to no reservation."""

    def __init__(self, status: int = 200) -> None:
        self.status = status
        self.version = 1
        self.written: list[str] = []

    async def list(
        self, path: str, keep: Callable[[dict[str, Any]], Any] = dict, **query: str
    ) -> tuple[list[Any], str]:
        """The node in its current version."""
        taints = [{"key": RESERVED_TAINT, "value": "gone", "effect": "NoSchedule"}]
        node = {"metadata": {"name": "n1", "resourceVersion": str(self.version)}, "spec": {"taints": taints}}
        return [keep(node)], str(self.version)

    async def watch(self, path: str, version: str, **query: str) -> AsyncIterator[Event]:
        """Tells of nothing."""
        await asyncio.sleep(60)
        yield Event("BOOKMARK", {"metadata": {"resourceVersion": version}})

    async def merge(self, path: str, body: Mapping[str, Any], **query: str) -> dict[str, Any]:
        """Keeps the version that is written to, or refuses the patch."""
        if self.status != 200:
            raise ApiError(self.status, "", "refused")
        self.written.append(body["metadata"]["resourceVersion"])
        return dict(body)


async def test_a_later_term_begins_with_the_nodes_as_they_are() -> None:
    """Another replica has led in between, and has written the nodes."""
    api = OneNode()
    taints = NodeTaints(api)
    await taints.start()
    await taints.close()
    api.version = 2
    await taints.start()
    try:
        assert await taints.sync(read_cluster(()))
    finally:
        await taints.close()
    assert api.written == ["2"]


@pytest.mark.parametrize(
    ("status", "done"), [(200, True), (404, True), (403, True), (500, True), (409, False)]
)
async def test_only_a_node_that_has_changed_meanwhile_is_tried_again_at_once(status: int, done: bool) -> None:
    """A missing permission would else cause a round after the other, each with a line in the log per node."""
    taints = NodeTaints(OneNode(status))
    await taints.start()
    try:
        assert await taints.sync(read_cluster(())) is done
    finally:
        await taints.close()
