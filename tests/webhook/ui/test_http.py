"""The page over HTTP: who is let in, what is streamed, and what bounds it. A real server on a free port."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import orjson
import pytest

from tests.builders import racks
from tests.webhook.ui.pictures import job, picture, two_tenants
from webhook.ui.access import ViewerAccess
from webhook.ui.document import Document, document
from webhook.ui.feed import Feed
from webhook.ui.gate import KeyGate, NotAuthenticatedError
from webhook.ui.http import FILES, Page, Serving, serve

KEY = "the-key"
SIGNED = {"Authorization": f"Bearer {KEY}"}
PATIENCE = 20.0


class Site:
    """A page that is served, and what its test needs of it."""

    def __init__(self, page: Page, serving: Serving, session: aiohttp.ClientSession) -> None:
        self.page, self.session = page, session
        self.port = serving.port
        self.url = f"http://127.0.0.1:{serving.port}"

    def publish(self, *names: str) -> None:
        """These gangs hold the racks."""
        seen = picture(racks(4, 2), held=tuple(map(job, names)))
        self.page.feed.publish(seen, document(seen))

    async def stream(self, **headers: str) -> aiohttp.ClientResponse:
        """The stream of events, open."""
        return await self.session.get(f"{self.url}/api/events", headers={**SIGNED, **headers})


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    """With the picture of two tenants."""
    feed = Feed()
    seen = two_tenants()
    feed.publish(seen, document(seen))
    page = Page(feed, KeyGate(KEY), limit=2, stalled_seconds=0.5)
    serving = await serve(page, "127.0.0.1", 0)
    async with aiohttp.ClientSession() as session:
        yield Site(page, serving, session)
    await serving.stop()


async def event(response: aiohttp.ClientResponse) -> tuple[str, Document]:
    """The next event of a stream: its type and its JSON."""
    async with asyncio.timeout(PATIENCE):
        kind = ""
        while not (line := await response.content.readuntil(b"\n")).startswith(b"data: "):
            kind = line.decode().removeprefix("event: ").strip() or kind
        return kind, orjson.loads(line[6:])


@pytest.mark.parametrize("path", ["/api/events", "/api/worth?gang=default/Job/first"])
@pytest.mark.parametrize(
    "headers", [{}, {"Authorization": "Bearer other"}, {"Authorization": f"Basic {KEY}"}]
)
async def test_nothing_of_the_cluster_is_told_without_the_key(
    site: Site, path: str, headers: dict[str, str]
) -> None:
    """401 and a line that says where the key is."""
    async with site.session.get(site.url + path, headers=headers) as answer:
        assert (answer.status, "it has the key" in await answer.text()) == (401, True)


async def test_a_key_that_is_no_text_is_wrong() -> None:
    """Bytes of a header that are no UTF-8 arrive as surrogates; an error would fill the log."""
    with pytest.raises(NotAuthenticatedError, match="it has the key"):
        await KeyGate(KEY).access("\udcff", frozenset())


@pytest.mark.parametrize("name", ["", *(f"static/{name}" for name in sorted(FILES))])
async def test_the_files_of_the_page_are_served_under_a_strict_policy(site: Site, name: str) -> None:
    """No script but the page's own, none in the markup, nothing from elsewhere."""
    async with site.session.get(f"{site.url}/{name}") as answer:
        assert answer.status == 200
        policy = answer.headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'")
        assert "unsafe" not in policy
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        text = await answer.text()
        assert (
            not any(word in text for word in ("http://", "https://", "innerHTML", "onclick"))
            or ".svg" in name
        )


@pytest.mark.parametrize("path", ["/static/..%2fhttp.py", "/static/", "/static/none.js", "/etc/passwd"])
async def test_there_is_nothing_else_to_fetch(site: Site, path: str) -> None:
    """Not by a path that climbs either."""
    async with site.session.get(aiohttp.client.URL(site.url + path, encoded=True)) as answer:
        assert answer.status == 404


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
async def test_nothing_can_be_changed(site: Site, method: str) -> None:
    """There is no such method."""
    async with site.session.request(method, f"{site.url}/api/events", headers=SIGNED) as answer:
        assert answer.status == 405


async def test_a_stream_begins_with_all_and_goes_on_with_what_differs(site: Site) -> None:
    """The first gang comes, then a second."""
    site.publish("a")
    stream = await site.stream()
    kind, whole = await event(stream)
    assert (kind, set(whole["gangs"])) == ("whole", {"default/Job/a"})
    assert len(whole["racks"]) == 5
    site.publish("a", "b")
    kind, change = await event(stream)
    assert (kind, set(change["gangs"]), set(change["racks"])) == (
        "change",
        {"default/Job/b"},
        {"topo:", "topo:/r2"},
    )
    stream.close()


async def test_who_reads_late_gets_one_event_of_all_that_changed(site: Site) -> None:
    """Nothing is kept for a viewer but the newest document."""
    stream = await site.stream()
    await event(stream)
    for names in (["a"], ["a", "b"], ["a", "b", "c"]):
        site.publish(*names)  # without a moment for the stream between them
    _, change = await event(stream)
    assert {name for name, entry in change["gangs"].items() if entry} == {f"default/Job/{n}" for n in "abc"}
    stream.close()


async def test_a_browser_that_does_not_read_is_dropped(site: Site) -> None:
    """Its connection is closed, and its place is free for another."""
    reader = socket.create_connection(("127.0.0.1", site.port))
    reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    reader.sendall(f"GET /api/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {KEY}\r\n\r\n".encode())
    seen = two_tenants()
    async with asyncio.timeout(PATIENCE):
        while not site.page.viewers:  # noqa: ASYNC110 - it is a number
            await asyncio.sleep(0.01)
        for size in range(10_000):  # until the buffers of both sockets are full
            page = {"": {"source": f"{size}" * 1_000_000, "revisions": []}}
            site.page.feed.publish(seen, {**document(seen), "page": page})
            await asyncio.sleep(0.01)
            if not site.page.viewers:
                break
    assert site.page.viewers == 0
    reader.close()


async def test_there_are_so_many_streams_and_no_more(site: Site) -> None:
    """The third is told so; once another ends it is let in."""
    streams = [await site.stream() for _ in range(2)]
    third = await site.stream()
    assert (third.status, "2 pages are open already" in await third.text()) == (503, True)
    streams[0].close()
    async with asyncio.timeout(PATIENCE):
        while (third := await site.stream()).status != 200:  # noqa: ASYNC110 - asked again
            await asyncio.sleep(0.05)
    for stream in (third, streams[1]):
        stream.close()


class Tenants:
    """Lets in who names a namespace as token; `gone` no longer."""

    def __init__(self) -> None:
        self.gone: set[str] = set()

    async def access(self, token: str, namespaces: frozenset[str]) -> ViewerAccess:
        """Of that namespace alone."""
        if not token or token in self.gone:
            raise NotAuthenticatedError("who are you?")
        return ViewerAccess(nodes=False, namespaces=frozenset({token}))


async def test_each_viewer_gets_their_own_document(site: Site) -> None:
    """A gang of another namespace is neither in the stream nor at its address."""
    site.page.gate = Tenants()
    stream = await site.stream(Authorization="Bearer team")
    _, whole = await event(stream)
    assert set(whole["gangs"]) == {"team/Job/second", "team/Job/later"}
    stream.close()
    for gang, status in (("team/Job/second", 200), ("default/Job/first", 404), ("team/Job/none", 404)):
        request: Any = {"headers": {"Authorization": "Bearer team"}, "params": {"gang": gang}}
        async with site.session.get(f"{site.url}/api/worth", **request) as answer:
            assert answer.status == status


async def test_a_stream_ends_when_its_viewer_may_see_no_more(site: Site) -> None:
    """Rights are asked for again before each event."""
    site.page.gate = tenants = Tenants()
    stream = await site.stream(Authorization="Bearer team")
    await event(stream)
    tenants.gone.add("team")
    site.publish("a")
    with pytest.raises((aiohttp.ClientError, asyncio.IncompleteReadError)):
        await event(stream)


async def test_the_worth_of_a_place_is_that_of_plan(site: Site) -> None:
    """The time of an all-reduce, beside a topology-blind placement, with the model's name."""
    async with site.session.get(
        f"{site.url}/api/worth", headers=SIGNED, params={"gang": "default/Job/first"}
    ) as answer:
        worth = await answer.json()
    assert worth["words"].startswith("All-reduce of 1 GB: ")
    assert worth["allReduce"]["placement"]["nodes"] == 2


async def test_it_is_ready_once_there_is_a_picture(site: Site) -> None:
    """A Service sends nobody to a page that knows nothing yet."""
    async with site.session.get(f"{site.url}/readyz") as answer:
        assert answer.status == 200
    site.page.feed = Feed()
    async with site.session.get(f"{site.url}/readyz") as answer:
        assert answer.status == 503
    async with site.session.get(f"{site.url}/healthz") as answer:
        assert answer.status == 200
