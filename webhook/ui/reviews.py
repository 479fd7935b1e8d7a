"""Asks the API server what a viewer may see, with SelfSubjectAccessReviews and the viewer's own token.

So the page's service account needs no permission to review the access of other users, and nobody can
misuse the page to find out what others may do.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from webhook.kube.api.client import Api, ApiError, Json
from webhook.kube.api.tasks import run_together
from webhook.ui.access import ViewerAccess
from webhook.ui.gate import CannotAskError, NotAuthenticatedError

REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"

GOOD_SECONDS = 30.0
"""Seconds for which the answers for a token are cached. This is also the longest time until a revoked
permission has an effect.
"""

REFUSED_SECONDS = 5.0
"""Seconds for which a refusal of a token is cached, so that a client that repeats it does not load the API
server.
"""

MAX_TOKENS = 1024
"""The maximum number of tokens with cached answers; the oldest are removed first."""

AT_ONCE = 8
"""The maximum number of concurrent calls to the API server, for all viewers together: a viewer of few
namespaces needs a call for each namespace.
"""

LONGEST = 16_384
"""The maximum length of a token in characters; API servers do not accept longer headers."""

Question = tuple[str, str]
"""A question whether the viewer may list a resource: its plural name, and a namespace ("" for all)."""

NODES, PODS = "nodes", "pods"


@dataclass(slots=True)
class _Viewer:
    """The cached answers for one token.

    `until`: when they expire (monotonic seconds). `refused`: the token is invalid. `asking`: held while
    its questions are asked, so that concurrent requests with the same token do not ask them twice.
    """

    until: float
    refused: bool = False
    answers: dict[Question, bool] = field(default_factory=dict)
    asking: asyncio.Lock = field(default_factory=asyncio.Lock)


class ReviewGate:
    """A `Gate` that asks the API server. `api`: must not use a client certificate, which would take
    precedence over the viewer's token.
    """

    def __init__(self, api: Api, clock: Callable[[], float] = time.monotonic) -> None:
        self._api = api
        self._clock = clock
        self._viewers: dict[str, _Viewer] = {}
        self._calls = asyncio.Semaphore(AT_ONCE)

    async def access(self, token: str, namespaces: frozenset[str]) -> ViewerAccess:
        """Returns what the user of this token may list: nodes, and the pods in all namespaces or in which
        of these.

        Raises `NotAuthenticatedError` for an invalid token, and `CannotAskError` if the API server does
        not answer.
        """
        if not token or len(token) > LONGEST or not token.isascii() or not token.isprintable():
            raise NotAuthenticatedError("give the token of an account of this cluster")
        # The cache has digests as keys, so that it keeps no tokens.
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
        """Asks the API server the questions that have no cached answer, and caches the answers. Raises the
        first `ApiError`, after which it asks no more.
        """

        async def answered(question: Question) -> None:
            async with self._calls:
                status = (await self._api.create_as(token, REVIEWS, review(*question))).get("status") or {}
            viewer.answers[question] = status.get("allowed") is True

        await run_together(answered(question) for question in questions if question not in viewer.answers)


def _access(answers: Mapping[Question, bool], namespaces: frozenset[str]) -> ViewerAccess:
    if answers[PODS, ""]:
        return ViewerAccess(answers[NODES, ""], None)
    return ViewerAccess(
        answers[NODES, ""], frozenset(name for name in namespaces if answers.get((PODS, name)))
    )


def review(resource: str, namespace: str) -> Json:
    """Returns the SelfSubjectAccessReview that asks whether its sender may list the resource in the
    namespace ("" for all).
    """
    attributes = {"verb": "list", "resource": resource, **({"namespace": namespace} if namespace else {})}
    return {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
    }
