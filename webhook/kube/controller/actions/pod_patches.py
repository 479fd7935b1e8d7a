"""Patches pods, several at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from webhook.kube.api.client import Api, ApiError, Json
from webhook.kube.api.tasks import run_together
from webhook.kube.state.gangs import Unbound

AT_ONCE = 16
"""Maximum number of pods that are patched concurrently."""

GONE_OR_CHANGED = (404, 409)
"""HTTP statuses that are ignored: the next round sees what happened to the pod."""


async def patch_pods(api: Api, pods: Iterable[Unbound], patch_of: Callable[[Unbound, Json], Json]) -> None:
    """Applies to each pod the patch that `patch_of` returns for it and its stored object. Raises the first
    `ApiError`, after which no further pod is patched.

    A pod that was deleted, replaced by another of its name, or changed since it was read is left to the next
    round.
    """
    limit = asyncio.Semaphore(AT_ONCE)

    async def patched(pod: Unbound) -> None:
        path = f"/api/v1/namespaces/{pod.ref.namespace}/pods/{pod.ref.name}"
        async with limit:
            try:
                stored = await api.get(path)
                if stored["metadata"]["uid"] == pod.ref.uid:
                    await api.merge(path, patch_of(pod, stored))
            except ApiError as error:
                if error.status not in GONE_OR_CHANGED:
                    raise

    await run_together(map(patched, pods))
