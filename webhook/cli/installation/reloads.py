"""Reloads the files of `bayplan serve`, and logs which settings are in force and what is not taken up."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import orjson

from webhook.policy.model.policy import PolicySet
from webhook.server.disks import full_disks
from webhook.server.http import Webhook

RELOAD_SECONDS = 2.0
"""Seconds between two checks for changed policy and cluster files."""

PoliciesObserver = Callable[[PolicySet], None]
"""The type of a function that is called with the policies after each reload."""

log = logging.getLogger("bayplan")


@dataclass(slots=True)
class Reloads:
    """Reloads policies and cluster files when they change. Logs the settings in force after each change, and
    each problem once. `observer`: called with each new set of policies.
    """

    webhook: Webhook
    observer: PoliciesObserver
    _settings: dict[str, Any] | None = None
    """The settings, problems and full disks of the last check, which are not logged again."""
    _problem: str = ""
    _full: str = ""

    async def run(self) -> None:
        """Checks every `RELOAD_SECONDS` until it is cancelled. An error is logged, and the next check tries
        again.
        """
        while True:
            await asyncio.sleep(RELOAD_SECONDS)
            try:
                await self.check()
            except Exception as error:  # for example, a folder that may not be entered for a moment
                log.error("reload: %s", type(error).__name__, exc_info=error)

    async def check(self) -> None:
        """Takes up what has changed since the last check."""
        service = self.webhook.service
        await asyncio.to_thread(service.cluster.snapshot)  # reloads cluster files without a call
        if await asyncio.to_thread(service.policies.reload_if_changed):
            policies = service.policies.current
            self.observer(policies)
            log.info("policies taken up: revision %s", policies.revision)
            log_warnings(policies)
        if not service.cluster.waiting():
            settings = await asyncio.to_thread(service.in_force)
            if settings != self._settings:
                log.info("settings in force: %s", orjson.dumps(settings).decode())
            self._settings = settings
        self._log_problems()

    def _log_problems(self) -> None:
        problem = "; ".join(self.webhook.problems())
        if problem and problem != self._problem:
            log.warning("not taken up, the last good ones serve: %s", problem)
        self._problem = problem
        full = "; ".join(full_disks(self.webhook.folders))
        if full and full != self._full:
            log.warning("%s", full)
        self._full = full


def log_warnings(policies: PolicySet) -> None:
    """Logs the expressions of these policies that will fail when they are evaluated."""
    for warning in policies.warnings:
        log.warning("will fail when it is run: %s", warning)
