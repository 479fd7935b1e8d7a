"""A proxy for the API server, whose URL may have a password."""

from __future__ import annotations

import asyncio

import pytest
from kubernetes.aio import client as generated

from webhook.kube.api.client import Api, Unreachable

ANSWER = b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n"


async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A proxy that lets nobody through."""
    await reader.readuntil(b"\r\n\r\n")
    writer.write(ANSWER)
    await writer.drain()
    writer.close()


@pytest.mark.parametrize(("port", "words"), [(0, "the proxy answers 407"), (99_999, "is not valid")])
async def test_the_password_of_a_proxy_is_in_no_message(port: int, words: str) -> None:
    """The message reaches the log, /readyz, and the users whose requests are refused meanwhile."""
    proxy = await asyncio.start_server(refuse, "127.0.0.1", 0)
    configuration = generated.Configuration(host="https://api.example.com:6443")
    configuration.proxy = f"http://bayplan:secret@127.0.0.1:{port or proxy.sockets[0].getsockname()[1]}"
    api = Api(configuration)
    try:
        with pytest.raises(Unreachable) as raised:
            await api.get("/version")
    finally:
        await api.close()
        proxy.close()
    assert words in str(raised.value)
    assert "secret" not in str(raised.value)
