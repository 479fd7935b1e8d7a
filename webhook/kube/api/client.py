"""Calls to the API server: JSON in, JSON out, with the `kubernetes` package's asyncio client.

The generated models are not used: they take a hundred times as long as parsing the JSON, and planner and
webhook read plain documents. The package provides the configuration, which `kubeconfig` reads, and the
connection pool.
"""

from __future__ import annotations

import asyncio
import math
import ssl
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any, Literal
from urllib.parse import urlencode

import aiohttp
import orjson
from kubernetes.aio import client as generated
from kubernetes.aio import config

from planner.model.cached_property import cached_property
from webhook.kube.api.outage import Outages
from webhook.kube.api.proxies import environment_proxy

Json = dict[str, Any]


PAGE = 500
"""Objects per page of a list, as in kubectl and client-go."""


CALL_SECONDS = 10.0
"""Maximum seconds for one write; a read may take three times as long."""


WATCH_SECONDS = 60
"""Seconds after which the API server is asked to end a watch; the watch is then resumed where it ended."""


SILENCE_SECONDS = 75.0
"""Seconds without data after which a watch counts as broken. The server ends a working watch earlier, after
`WATCH_SECONDS`.
"""


SHARED_SECONDS = 1.0
"""Maximum age in seconds of an answer that several callers share (`Api.get_shared`)."""


DOWN = (502, 503, 504)
"""The statuses of a proxy or load balancer without an API server behind it, or of one without its etcd."""


OF_ALL_CALLS = (0, 401, 429)
"""The statuses (0: no answer) that other calls would get too. With another one, it may be the object: for
example, a policy or a broken webhook refuses all writes in one tenant's namespace.
"""


MERGE = "application/merge-patch+json"


STRATEGIC = "application/strategic-merge-patch+json"


class ApiError(Exception):
    """An error answer of the API server: `status` is the HTTP status, `reason` its CamelCase token."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(f"{message} ({status} {reason})" if reason else f"{message} ({status})")
        self.status = status
        self.reason = reason
        self.message = message


class Unreachable(ApiError):  # noqa: N818 - it is a state of the world, not a fault of the call
    """No answer: the connection was refused, reset, or timed out. Whether a write succeeded is unknown."""

    def __init__(self, message: str) -> None:
        super().__init__(0, "", message)

    def __str__(self) -> str:
        return f"the API server does not answer: {self.message}"


@dataclass(frozen=True, slots=True)
class Event:
    """One watch event; the object of a bookmark contains only a resource version.

    `OPENED` is an additional first event with an empty object: the server accepted the watch.
    """

    type: Literal["OPENED", "ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"]
    object: Json


class Api:
    """A client of the API server for one user. Close it after use."""

    def __init__(self, configuration: Any) -> None:
        # The calls for a gang's 300 pods and dozens of watches share one connection pool.
        configuration.connection_pool_maxsize = 200
        configuration.retries = False
        # With `trust_env`, aiohttp would read the environment and ~/.netrc for each request, in two threads
        # that compete with decisions for the CPU. A password in ~/.netrc is not meant for the API server.
        configuration.client_session_kwargs = (configuration.client_session_kwargs or {}) | {
            "trust_env": False
        }
        configuration.proxy = configuration.proxy or environment_proxy(configuration.host)
        self._client = generated.ApiClient(configuration)
        self._client.user_agent = "bayplan"
        self._epoch, self._has_server_time = time.time() - time.monotonic(), False
        """The time at zero of the monotonic clock, in seconds since the epoch: by this machine's clock, and
        after the first answer by the API server's.
        """

    @property
    def host(self) -> str:
        """The server's address."""
        return str(self._client.configuration.host)

    def now(self) -> float:
        """Returns seconds since the epoch: the API server's time at its first answer, advanced by the
        monotonic clock.

        Replicas therefore agree to about a second whatever their own clocks say, and holds do not expire
        because a clock is changed.
        """
        return self._epoch + time.monotonic()

    async def close(self) -> None:
        """Closes the connections."""
        for _, call in self._shared.values():
            call.cancel()
        await self._client.close()

    async def get(self, path: str, **query: str) -> Json:
        """Reads one object. Without `resourceVersion` in the query the read is consistent: it sees every
        finished write.

        Like all methods, raises `ApiError` for an error answer and `Unreachable` for none.
        """
        return await self._call("GET", path, query)

    async def get_shared(self, path: str) -> Json:
        """Reads one object, which may be `SHARED_SECONDS` old: callers at about the same time share one call.
        A failure is not kept: only the callers that wait for the call get it.
        """
        now = time.monotonic()
        began, call = self._shared.get(path, (-math.inf, None))
        if call is None or now - began > SHARED_SECONDS or _has_failed(call):
            call = asyncio.ensure_future(self.get(path))
            call.add_done_callback(_has_failed)  # else asyncio logs a failure that no caller awaits
            self._shared[path] = now, call
        return await asyncio.shield(call)  # cancelling one caller leaves the call to the others

    @cached_property
    def outages(self) -> Outages:
        """Whether the server answers at all."""
        return Outages()

    @cached_property
    def _shared(self) -> dict[str, tuple[float, asyncio.Future[Json]]]:
        """The latest shared call of each path, and when it began, in monotonic seconds."""
        return {}

    @cached_property
    def absent_groups(self) -> set[str]:
        """The API groups that the server has denied by themselves, and has not listed since."""
        return set()

    async def find(self, path: str, **query: str) -> Json | None:
        """Reads one object; returns None if it does not exist."""
        try:
            return await self.get(path, **query)
        except ApiError as error:
            if error.status != 404:
                raise
            return None

    async def create(self, path: str, body: Mapping[str, Any], **query: str) -> Json:
        """Sends a POST. Raises `ApiError` 409 AlreadyExists if the name exists."""
        return await self._call("POST", path, query, body)

    async def create_as(self, token: str, path: str, body: Mapping[str, Any]) -> Json:
        """Sends a POST with another user's token instead of this client's. Not for a client with a TLS client
        certificate, which the API server would consider first.
        """
        return await self._call("POST", path, {}, body, token=token)

    async def replace(self, path: str, body: Mapping[str, Any], **query: str) -> Json:
        """Sends a PUT. Raises `ApiError` 409 Conflict if the body has a `metadata.resourceVersion` that is
        not current.
        """
        return await self._call("PUT", path, query, body)

    async def merge(self, path: str, body: Mapping[str, Any], **query: str) -> Json:
        """Sends a PATCH with a JSON merge patch; a `metadata.resourceVersion` in it is a precondition."""
        return await self._call("PATCH", path, query, body, MERGE)

    async def merge_lists(self, path: str, body: Mapping[str, Any], **query: str) -> Json:
        """Sends a PATCH with a strategic merge patch, for built-in kinds: list entries are matched by their
        merge key.
        """
        return await self._call("PATCH", path, query, body, STRATEGIC)

    async def delete(self, path: str, *, version: str = "", uid: str = "") -> bool:
        """Sends a DELETE, with the version and the UID as preconditions if given. Returns False if the object
        did not exist.
        """
        conditions = {"resourceVersion": version, "uid": uid}
        body = {"preconditions": {key: value for key, value in conditions.items() if value}}
        try:
            await self._call("DELETE", path, {}, body)
        except ApiError as error:
            if error.status == 404:
                return False
            raise
        return True

    async def list(
        self, path: str, keep: Callable[[Json], Any] = dict, **query: str
    ) -> tuple[list[Any], str]:
        """Returns `keep` of every object, read page by page, and the resource version of the list.

        Items lack apiVersion and kind. Raises `ApiError` 410 if the list expired between two pages.
        """
        items: list[Any] = []
        asked = {"limit": str(PAGE), **query}
        while True:
            page = await self._call("GET", path, asked)
            items += map(keep, page.get("items") or [])
            metadata = page.get("metadata") or {}
            if not metadata.get("continue"):
                return items, str(metadata.get("resourceVersion", ""))
            asked["continue"] = metadata["continue"]

    async def watch(self, path: str, version: str, **query: str) -> AsyncIterator[Event]:
        """Yields the events after a resource version, including bookmarks, until the server ends the watch.

        Raises `ApiError` 410 if the version is too old to resume from: the caller then lists again.
        """
        asked = {"watch": "true", "allowWatchBookmarks": "true", "resourceVersion": version, **query}
        asked.setdefault("timeoutSeconds", str(WATCH_SECONDS))
        timeout = aiohttp.ClientTimeout(total=None, connect=CALL_SECONDS, sock_read=SILENCE_SECONDS)
        response = await self._send("GET", path, asked, None, "", timeout)
        try:
            if response.status != 200:
                raise _error(response.status, await response.read())
            yield Event("OPENED", {})
            async for line in _lines(response):
                event = _event(line)
                if event.type == "ERROR":
                    status = event.object
                    raise ApiError(
                        int(status.get("code", 500)), status.get("reason", ""), status.get("message", "")
                    )
                yield event
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise Unreachable(_words(error)) from error
        finally:
            response.close()

    async def _call(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        body: Mapping[str, Any] | None = None,
        content_type: str = "application/json",
        token: str = "",
    ) -> Json:
        timeout = aiohttp.ClientTimeout(total=CALL_SECONDS * (3 if method == "GET" else 1))
        response = await self._send(method, path, query, body, content_type, timeout, token)
        try:
            data = await response.read()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise Unreachable(_words(error)) from error
        finally:
            response.release()
        if response.status >= 400:
            raise _error(response.status, data)
        answer = orjson.loads(data) if data[:1] == b"{" else {"text": data.decode(errors="replace")}
        return dict(answer)

    async def _send(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        body: Mapping[str, Any] | None,
        content_type: str,
        limits: aiohttp.ClientTimeout,
        token: str = "",
    ) -> aiohttp.ClientResponse:
        headers = {"Accept": "application/json", "Content-Type": content_type or "application/json"}
        headers["User-Agent"] = self._client.user_agent
        if token:
            headers["Authorization"] = f"Bearer {token}"
        else:
            try:
                await self._client.update_params_for_auth(headers, [], ["BearerToken"], path, method, body)
            # Tokens are renewed here, from their file or by a plugin.
            except (config.ConfigException, OSError, ValueError) as error:
                raise Unreachable(f"it was not asked, as the token cannot be read: {error}") from error
        url = self.host + path + (f"?{urlencode(query)}" if query else "")
        pool = self._client.rest_client
        if pool.pool_manager is None:
            pool.pool_manager = pool._create_pool_manager()
        data = orjson.dumps(body) if body is not None else None
        try:
            response: aiohttp.ClientResponse = await pool.pool_manager.request(
                method,
                url,
                data=data,
                headers=headers,
                timeout=limits,
                proxy=pool.proxy,
                server_hostname=pool.configuration.tls_server_name,
            )
        except (aiohttp.ClientError, TimeoutError, OSError, ssl.SSLError) as error:
            self.outages.begin()
            raise Unreachable(_words(error)) from error
        if response.status in DOWN:
            self.outages.begin()
        else:
            self.outages.end()
        if not self._has_server_time:
            self._has_server_time = True
            self._epoch = _epoch(response.headers.get("Date", ""), self._epoch)
        return response


def _has_failed(call: asyncio.Future[Json]) -> bool:
    return call.done() and (call.cancelled() or call.exception() is not None)


def _epoch(date: str, default: float) -> float:
    """Returns the time at zero of the monotonic clock, in seconds since the epoch, from an answer's Date
    header; `default` if the header is missing or invalid.
    """
    try:
        return parsedate_to_datetime(date).timestamp() - time.monotonic()
    except ValueError:
        return default


async def _lines(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    """Yields complete lines of any length: a line is an event with an object of up to 3 MiB."""
    rest = b""
    async for chunk in response.content.iter_any():
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            if line:
                yield line


def _event(line: bytes) -> Event:
    """Returns the event of a line. Raises `ApiError` if it is none, for example in the page of a proxy."""
    try:
        event = orjson.loads(line)
        return Event(event["type"], event["object"])
    except (orjson.JSONDecodeError, KeyError, TypeError):
        raise ApiError(200, "", "the answer is no watch") from None


def _error(status: int, data: bytes) -> ApiError:
    try:
        status_object = orjson.loads(data)
        return ApiError(status, str(status_object.get("reason", "")), str(status_object["message"])[:2000])
    except (orjson.JSONDecodeError, AttributeError, KeyError, TypeError):
        return ApiError(status, "", data.decode(errors="replace").strip()[:200])


def _words(error: BaseException) -> str:
    if isinstance(error, (TimeoutError, asyncio.TimeoutError)):
        return "timed out"
    # The texts of these have the proxy's URL, which may have a password.
    if isinstance(error, aiohttp.ClientHttpProxyError):
        return f"the proxy answers {error.status} {error.message}"
    if isinstance(error, aiohttp.InvalidURL):
        return "its address, or that of the proxy, is not valid"
    return str(error) or type(error).__name__
