"""Authenticates the viewers of a page. A local page has one key; in a cluster, `reviews` asks the API
server.
"""

from __future__ import annotations

import hmac
from typing import Protocol

from webhook.ui.access import ALL, ViewerAccess


class NotAuthenticatedError(Exception):
    """The token is missing or invalid. The message says how to get access; `status`: the HTTP status."""

    status = 401


class CannotAskError(NotAuthenticatedError):
    """The API server does not answer, so it is unknown whether the token is valid."""

    status = 503


class Gate(Protocol):
    """Determines what a viewer may see, by their token."""

    async def access(self, token: str, namespaces: frozenset[str]) -> ViewerAccess:
        """Returns the viewer's access to nodes and to these namespaces.

        Raises `NotAuthenticatedError` for a missing or invalid token.
        """
        ...


class KeyGate:
    """The `Gate` of a local page. Its only key gives access to everything on the page, which is what the
    kubeconfig of the user who started `bayplan ui` may read.

    Without a key, all users of a shared machine, such as a login node, could open the page.
    """

    def __init__(self, key: str) -> None:
        self._key = key.encode()

    async def access(self, token: str, namespaces: frozenset[str]) -> ViewerAccess:
        """Returns access to everything. Raises `NotAuthenticatedError` for a wrong key."""
        # A header may have bytes that are no UTF-8, which aiohttp passes as surrogates.
        if not hmac.compare_digest(token.encode(errors="surrogateescape"), self._key):
            raise NotAuthenticatedError("open the address that `bayplan ui` printed: it has the key")
        return ALL
