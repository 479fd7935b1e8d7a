"""Who may see what in a cluster: asked of the API server with the viewer's token, remembered for a while."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from webhook.kube.api.client import Api, ApiError, Json, Unreachable
from webhook.ui.gate import CannotAskError, NotAuthenticatedError
from webhook.ui.reviews import GOOD_SECONDS, LONGEST, MAX_TOKENS, REFUSED_SECONDS, REVIEWS, ReviewGate

ALL_NAMESPACES = frozenset({"default", "team"})


class Server(Api):
    """An API server as far as reviews go: by token what may be listed, as (resource, namespace)."""

    def __init__(self, **rights: set[tuple[str, str]]) -> None:
        """The tokens that are good."""
        self.rights = rights
        self.asked: list[tuple[str, str, str]] = []
        self.at_once = self.peak = 0
        self.trouble: ApiError | None = None

    async def create_as(self, token: str, path: str, body: Mapping[str, Any]) -> Json:
        """A SelfSubjectAccessReview. Raises 401 for a token that is none."""
        assert path == REVIEWS
        attributes = body["spec"]["resourceAttributes"]
        assert attributes["verb"] == "list"
        question = attributes["resource"], attributes.get("namespace", "")
        self.asked.append((token, *question))
        self.at_once += 1
        self.peak = max(self.peak, self.at_once)
        await asyncio.sleep(0)
        self.at_once -= 1
        if self.trouble is not None:
            raise self.trouble
        if token not in self.rights:
            raise ApiError(401, "Unauthorized", "Unauthorized")
        return {"status": {"allowed": question in self.rights[token]}}


async def test_who_may_list_nodes_and_all_pods_sees_all() -> None:
    """Two questions, whatever namespaces there are."""
    server = Server(admin={("nodes", ""), ("pods", "")})
    access = await ReviewGate(server).access("admin", ALL_NAMESPACES)
    assert access.is_whole
    assert len(server.asked) == 2


async def test_a_reader_of_a_namespace_sees_that_namespace() -> None:
    """Each namespace is asked about."""
    access = await ReviewGate(Server(reader={("pods", "team")})).access("reader", ALL_NAMESPACES)
    assert (access.nodes, access.namespaces) == (False, {"team"})


async def test_who_may_list_nothing_sees_nothing() -> None:
    """They are known, and that is all."""
    access = await ReviewGate(Server(guest=set())).access("guest", ALL_NAMESPACES)
    assert (access.nodes, access.namespaces) == (False, frozenset())


async def test_answers_serve_for_a_while_and_new_namespaces_are_asked_about() -> None:
    """Not again for each event; a right that was taken away ends with them."""
    time = 0.0
    server = Server(reader={("pods", "team")})
    gate = ReviewGate(server, lambda: time)
    await gate.access("reader", frozenset({"team"}))
    before = len(server.asked)
    await gate.access("reader", frozenset({"team"}))
    assert len(server.asked) == before
    await gate.access("reader", ALL_NAMESPACES)
    assert server.asked[before:] == [("reader", "pods", "default")]
    server.rights["reader"].clear()
    time = GOOD_SECONDS + 1
    assert (await gate.access("reader", ALL_NAMESPACES)).namespaces == frozenset()


async def test_a_wrong_token_is_told_so_and_costs_one_call_in_a_while() -> None:
    """Whoever guesses asks the API server no more often than that."""
    time = 0.0
    server = Server()
    gate = ReviewGate(server, lambda: time)
    for _ in range(10):
        with pytest.raises(NotAuthenticatedError, match="does not take this token"):
            await gate.access("wrong", ALL_NAMESPACES)
    assert len(server.asked) <= 2
    time = REFUSED_SECONDS + 1
    server.rights["wrong"] = {("nodes", ""), ("pods", "")}
    assert (await gate.access("wrong", ALL_NAMESPACES)).is_whole


@pytest.mark.parametrize("token", ["", "a" * (LONGEST + 1), "a\r\nX-Other: b", "ä"])
async def test_what_can_be_no_token_is_not_sent_on(token: str) -> None:
    """It would be a part of a header."""
    server = Server()
    with pytest.raises(NotAuthenticatedError, match="give the token"):
        await ReviewGate(server).access(token, ALL_NAMESPACES)
    assert server.asked == []


async def test_while_the_api_server_does_not_answer_nothing_is_shown() -> None:
    """It is not known who asks."""
    server = Server(admin={("nodes", ""), ("pods", "")})
    server.trouble = Unreachable("refused")
    gate = ReviewGate(server)
    with pytest.raises(CannotAskError, match="cannot be asked now"):
        await gate.access("admin", ALL_NAMESPACES)
    server.trouble = None
    assert (await gate.access("admin", ALL_NAMESPACES)).is_whole


async def test_calls_and_remembered_tokens_are_bounded() -> None:
    """A hundred namespaces are asked about some at a time; the oldest tokens are forgotten."""
    server = Server(reader=set())
    gate = ReviewGate(server)
    await gate.access("reader", frozenset(map(str, range(100))))
    assert server.peak <= 8
    for number in range(MAX_TOKENS + 10):
        with pytest.raises(NotAuthenticatedError):
            await gate.access(f"t{number}", ALL_NAMESPACES)
    assert len(gate._viewers) == MAX_TOKENS
