"""What a viewer of a cluster's page may see, asked with the viewer's own token: SelfSubjectAccessReviews.

So the page's account needs no right to ask for others, and can be made to tell nobody's rights but those of
who gave it their token.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from webhook.kube.api.client import Api, ApiError, Json
from webhook.ui.access import ViewerAccess
from webhook.ui.gate import CannotAskError, NotAuthenticatedError

REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"

GOOD_SECONDS = 30.0
"""How long an answer serves: so long after it was revoked a right is used at most."""

REFUSED_SECONDS = 5.0
"""How soon a token that was not taken is tried again: guessing costs the API server little."""

MAX_TOKENS = 1024
"""Viewers whose answers are remembered; the oldest make room."""

AT_ONCE = 8
"""Calls at once, of all viewers."""

LONGEST = 16_384
"""Characters of a token; no API server takes longer ones in a header."""

Question = tuple[str, str]
"""A resource that somebody would list, and the namespace, "" for all."""

NODES, PODS = "nodes", "pods"


@dataclass(slots=True)
class _Viewer:
    """The answers to one token: until when (monotonic seconds) they serve."""

    until: float
    refused: bool = False
    answers: dict[Question, bool] = field(default_factory=dict)
    asking: asyncio.Lock = field(default_factory=asyncio.Lock)


class ReviewGate:
    """A `Gate` that asks the API server. `api` must not carry a client certificate: it would speak instead of
    the token."""

    def __init__(self, api: Api, clock: Callable[[], float] = time.monotonic) -> None:
        self._api = api
        self._clock = clock
        self._viewers: dict[str, _Viewer] = {}
        self._calls = asyncio.Semaphore(AT_ONCE)

    async def access(self, token: str, namespaces: frozenset[str]) -> ViewerAccess:
        """What this token's user may list. Raises `NotAuthenticatedError`.

        Where the API server does not answer nothing may be seen.
        """
        if not token or len(token) > LONGEST or not token.isascii() or not token.isprintable():
            raise NotAuthenticatedError("give the token of an account of this cluster")
        viewer = self._viewer(hashlib.sha256(token.encode()).hexdigest())
        async with viewer.asking:
            if viewer.refused:
                raise NotAuthenticatedError(
                    "the cluster does not take this token: is it of another, or expired?"
                )
            try:
                await self._ask(viewer, token, [(NODES, ""), (PODS, "")])
                if not viewer.answers[PODS, ""]:
                    await self._ask(viewer, token, [(PODS, name) for name in sorted(namespaces)])
            except ApiError as error:
                if error.status == 401:
                    viewer.refused, viewer.until = True, self._clock() + REFUSED_SECONDS
                    raise NotAuthenticatedError("the cluster does not take this token") from None
                raise CannotAskError(f"who you are cannot be asked now: {error}") from None
        return _access(viewer.answers, namespaces)

    def _viewer(self, digest: str) -> _Viewer:
        viewer = self._viewers.get(digest)
        if viewer is None or viewer.until < self._clock():
            self._viewers.pop(digest, None)
            while len(self._viewers) >= MAX_TOKENS:
                del self._viewers[next(iter(self._viewers))]
            self._viewers[digest] = viewer = _Viewer(self._clock() + GOOD_SECONDS)
        return viewer

    async def _ask(self, viewer: _Viewer, token: str, questions: list[Question]) -> None:
        """Those that were not asked yet, some at a time. Raises the first `ApiError`."""

        async def answered(question: Question) -> None:
            async with self._calls:
                status = (await self._api.create_as(token, REVIEWS, review(*question))).get("status") or {}
            viewer.answers[question] = status.get("allowed") is True

        await asyncio.gather(
            *(answered(question) for question in questions if question not in viewer.answers)
        )


def _access(answers: Mapping[Question, bool], namespaces: frozenset[str]) -> ViewerAccess:
    if answers[PODS, ""]:
        return ViewerAccess(answers[NODES, ""], None)
    return ViewerAccess(
        answers[NODES, ""], frozenset(name for name in namespaces if answers.get((PODS, name)))
    )


def review(resource: str, namespace: str) -> Json:
    """Whether the one who asks may list this."""
    attributes = {"verb": "list", "resource": resource, **({"namespace": namespace} if namespace else {})}
    return {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
    }
