"""Who looks at the page, and what they may see: everything with the key of a local page, else by reviews."""

from __future__ import annotations

import hmac
from typing import Protocol

from webhook.ui.access import ALL, ViewerAccess


class NotAuthenticatedError(Exception):
    """The token is none, or is no longer good: the message says what would be."""

    status = 401


class CannotAskError(NotAuthenticatedError):
    """Whether the token is good cannot be asked now."""

    status = 503


class Gate(Protocol):
    """Tells of a viewer's token what the viewer may see."""

    async def access(self, token: str, namespaces: frozenset[str]) -> ViewerAccess:
        """Of these namespaces and the nodes. Raises `NotAuthenticatedError`."""
        ...


class KeyGate:
    """One key for everything: whoever started the page has it, and sees what their own kubeconfig reads.

    Without it everybody with an account on the same machine, a login node perhaps, could look.
    """

    def __init__(self, key: str) -> None:
        self._key = key.encode()

    async def access(self, token: str, namespaces: frozenset[str]) -> ViewerAccess:
        """All. Raises `NotAuthenticatedError`."""
        if not hmac.compare_digest(token.encode(), self._key):
            raise NotAuthenticatedError("open the address that `bayplan ui` printed: it has the key")
        return ALL
