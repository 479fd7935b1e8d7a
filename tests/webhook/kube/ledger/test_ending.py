"""The end of an expired hold: what happens with it when nobody waits for it any more."""

from __future__ import annotations

import asyncio
import gc
import math

from planner.model.reservation import Reservation
from tests.planner.ledger.books import whole
from tests.webhook.kube.ledger.api_server import ApiServer
from tests.webhook.kube.ledger.replicas import NOW, run
from webhook.kube.api.client import Unreachable
from webhook.kube.ledger import documents
from webhook.kube.ledger.proposals import Proposals
from webhook.kube.ledger.view import BookView


def test_an_end_that_fails_after_all_have_given_up_is_no_traceback() -> None:
    """Both callers go while the owner is looked up, and then the API server does not answer: asyncio logs
    nothing, and the next caller looks the owner up again.
    """

    async def script() -> None:
        logged: list[str] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: logged.append(context["message"]))
        asked, gone = asyncio.Semaphore(0), asyncio.Event()

        async def owner(held: Reservation) -> str:
            asked.release()
            await gone.wait()
            raise Unreachable("no route to the API server")

        server = ApiServer()
        view = BookView(server.client())
        document = server.call("POST", documents.RESERVATIONS, documents.proposed(whole("team/Job/a", "r1")))
        entry = view.objects.stored(document)
        proposals = Proposals(view, math.inf, lambda: owner)

        async def given_up() -> None:
            callers = [asyncio.create_task(proposals.expired_holds.end(entry, NOW, owner)) for _ in range(2)]
            await asked.acquire()
            for caller in callers:
                caller.cancel()
            await asyncio.gather(*callers, return_exceptions=True)

        await given_up()
        gone.set()
        await asyncio.sleep(1)
        gc.collect()
        await given_up()
        await asyncio.sleep(1)
        gc.collect()
        assert logged == []

    run(script)
