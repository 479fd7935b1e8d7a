"""Rounds of a controller after it led before, and after a hold could not be ended."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from tests.builders import racks
from tests.webhook.kube.controller.test_rounds import NOW, claimed, leading, one_round, part
from tests.webhook.kube.worlds import work
from webhook.kube.api.client import ApiError


async def test_a_place_is_kept_whose_pods_have_just_ended_when_a_replica_leads_for_the_second_time() -> None:
    """Its pods had just ended when it led before, and ran for hours while another replica led."""
    group, now = part("retried"), [NOW]
    async with leading(racks(1, 1), work(group), clock=lambda: now[0]) as (client, ledger, other):
        await ledger.reserve(claimed(racks(1, 1), group), 0, NOW)

        async def a_round_later() -> bool:
            await asyncio.sleep(0.5)
            return True

        await one_round(client, a_round_later)
        now[0] += 7200
        await one_round(client, a_round_later)
        assert (await other.book(now[0])).reservations


@pytest.mark.parametrize("status", [403, 422, 500])
async def test_an_expired_hold_that_cannot_be_ended_does_not_keep_others_from_their_place(
    status: int, caplog: pytest.LogCaptureFixture
) -> None:
    """A policy protects it, or the webhook of a policy is down."""
    hold = replace(claimed(racks(1, 2), part("a")), state="held", owner_uid="", expires=NOW - 1)
    async with leading(racks(1, 2), work(part("b"), queued=True)) as (client, ledger, other):
        await ledger.reserve(hold, 0, NOW - 60)

        async def refusing(method: str, path: str) -> None:
            if method != "GET" and path.endswith(hold.id):
                raise ApiError(status, "", "denied the request")

        client.before = refusing

        async def ended() -> bool:
            return "default/Job/b" in {held.gang for held in (await other.book(NOW)).reservations}

        await one_round(client, ended)
    assert caplog.text.count("cannot be ended") == 1, "it is tried again later"
