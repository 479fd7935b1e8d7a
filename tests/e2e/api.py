"""A small client of the API server: JSON over a persistent connection, with the credentials of a
kubeconfig.
"""

from __future__ import annotations

import base64
import http.client
import json
import ssl
import tempfile
import threading
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import yaml

Json = dict[str, Any]
TRIES = 10
MERGE = "application/merge-patch+json"


class ApiError(Exception):
    """The API server answered with an error: `status` is the HTTP status, the message is the server's."""

    def __init__(self, status: int, message: str) -> None:
        """Keeps status and message as the API server returned them."""
        super().__init__(f"{status}: {message}")
        self.status = status


class Api:
    """Calls with the credentials of one user. Thread-safe: each thread has its own connection."""

    def __init__(self, kubeconfig: Path) -> None:
        """Reads the current context. Raises `KeyError` if it is incomplete."""
        config = yaml.safe_load(kubeconfig.read_text())
        context = _entry(config["contexts"], config["current-context"])["context"]
        cluster = _entry(config["clusters"], context["cluster"])["cluster"]
        user = _entry(config["users"], context["user"])["user"]
        address = urlsplit(cluster["server"])
        self._host, self._port = address.hostname or "", address.port or 443
        self._tls = _tls(cluster, user)
        self._headers = {"Authorization": f"Bearer {user['token']}"} if "token" in user else {}
        self._local = threading.local()

    def get(self, path: str, **query: str) -> Json:
        """GET."""
        return self.call("GET", path, None, **query)

    def items(self, path: str, **query: str) -> list[Json]:
        """All items of a list."""
        return list(self.get(path, **query)["items"])

    def create(self, path: str, body: Json, **query: str) -> Json:
        """POST."""
        return self.call("POST", path, body, **query)

    def merge(self, path: str, body: Json, **query: str) -> Json:
        """PATCH with a JSON merge patch."""
        return self.call("PATCH", path, body, MERGE, **query)

    def delete(self, path: str, *, grace: int | None = None, propagation: str = "Background") -> None:
        """DELETE. An object that does not exist counts as deleted."""
        body: Json = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": propagation}
        if grace is not None:
            body["gracePeriodSeconds"] = grace
        try:
            self.call("DELETE", path, body)
        except ApiError as error:
            if error.status != 404:
                raise

    def call(
        self,
        method: str,
        path: str,
        body: Json | None,
        content_type: str = "application/json",
        **query: str,
    ) -> Json:
        """One call. Raises `ApiError` for status 400 and above, `OSError` if there is no response."""
        target = f"{path}?{urlencode(query)}" if query else path
        headers = {**self._headers, "Content-Type": content_type, "Accept": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        try:
            status, answer = self._exchange(method, target, data, headers)
        except (http.client.RemoteDisconnected, ConnectionError, ssl.SSLEOFError):  # closed while it was kept
            status, answer = self._exchange(method, target, data, headers)
        for _ in range(TRIES):
            if status != 429:
                break
            time.sleep(1)  # the server asks for patience, for one while it opens a new kind's storage
            status, answer = self._exchange(method, target, data, headers)
        if status >= 400:
            raise ApiError(status, _message(answer))
        decoded = json.loads(answer) if answer.startswith(b"{") else {"text": answer.decode()}
        return dict(decoded)

    def _exchange(
        self, method: str, target: str, data: bytes | None, headers: dict[str, str]
    ) -> tuple[int, bytes]:
        connection = getattr(self._local, "connection", None)
        if connection is None:
            connection = http.client.HTTPSConnection(self._host, self._port, context=self._tls, timeout=60)
            self._local.connection = connection
        try:
            connection.request(method, target, data, headers)
            response = connection.getresponse()
            return response.status, response.read()
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            self._local.connection = None
            if isinstance(error, OSError):
                raise
            raise OSError(f"the answer ended before its end: {error!r}") from error


def _entry(entries: list[Json], name: str) -> Json:
    return next(entry for entry in entries if entry["name"] == name)


def _message(answer: bytes) -> str:
    try:
        return str(json.loads(answer).get("message", ""))
    except ValueError:
        return answer.decode(errors="replace")


def _tls(cluster: Json, user: Json) -> ssl.SSLContext:
    with tempfile.TemporaryDirectory() as folder:
        context = ssl.create_default_context(cafile=_file(cluster, "certificate-authority", Path(folder)))
        cert = _file(user, "client-certificate", Path(folder))
        if cert:
            context.load_cert_chain(cert, _file(user, "client-key", Path(folder)))
    return context


def _file(entry: Json, key: str, folder: Path) -> str | None:
    """The path of a file that a kubeconfig names, or a file with the base64 content that it holds."""
    inline = entry.get(f"{key}-data")
    if not inline:
        return entry.get(key)
    path = folder / key
    path.write_bytes(base64.b64decode(inline))
    return str(path)
