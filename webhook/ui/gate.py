"""Authenticates viewers of the page. A local page has a key; in a cluster, `reviews` asks the API server."""

from __future__ import annotations

import hmac
from typing import Protocol

from webhook.ui.access import ALL, ViewerAccess


class NotAuthenticatedError(Exception):
    """The token is missing or invalid. The message says what would work."""

    status = 401


class CannotAskError(NotAuthenticatedError):
    """The API server cannot be asked about the token now."""

    status = 503


class Gate(Protocol):
    """Determines what a viewer may see, by their token."""

    async def access(self, token: str, namespaces: frozenset[str]) -> ViewerAccess:
        """Returns the viewer's access to nodes and to these namespaces. Raises `NotAuthenticatedError`."""
        ...


class KeyGate:
    """A `Gate` with one key, which gives access to everything that the kubeconfig of the page's owner may
    read.

    Without a key, all users of a shared machine such as a login node could open the page.
    """

    def __init__(self, key: str) -> None:
        self._key = key.encode()

    async def access(self, token: str, namespaces: frozenset[str]) -> ViewerAccess:
        """Returns access to everything. Raises `NotAuthenticatedError` for a wrong key."""
        if not hmac.compare_digest(token.encode(), self._key):
            raise NotAuthenticatedError("open the address that `bayplan ui` printed: it has the key")
        return ALL
