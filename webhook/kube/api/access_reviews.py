"""The CEL `authorizer` in a cluster: each check is a SubjectAccessReview for the requesting user."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from webhook.admission.environment import Access, AccessDecision, Query
from webhook.kube.api.client import Api, ApiError, Json
from webhook.wire.request import UserInfo

REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"


SECONDS = 2.0
"""Maximum seconds for one review, well below a webhook's deadline."""


def asking(api: Api, loop: asyncio.AbstractEventLoop) -> Callable[[UserInfo], Access]:
    """Returns the function for `Environment.access`, which returns the access checks of a user.

    Decisions run in threads; the calls to the API server are made on `loop`.
    """
    return lambda user: _Reviews(api, loop, user)


@dataclass(frozen=True, slots=True)
class _Reviews:
    """Checks the access of one user by asking the API server. `check` waits, so it must be called from a
    thread other than the loop's.
    """

    api: Api
    loop: asyncio.AbstractEventLoop
    user: UserInfo

    def check(self, query: Query) -> AccessDecision:
        """Returns the decision on one query. Never raises; a failed call is a denial with `error`."""
        call = self.api.create(REVIEWS, review(query, self.user))
        pending = asyncio.run_coroutine_threadsafe(call, self.loop)
        try:
            status = pending.result(SECONDS).get("status") or {}
        except TimeoutError:
            pending.cancel()
            return AccessDecision(
                False, error=f"the API server did not say within {SECONDS:g} s who may do that"
            )
        except ApiError as error:
            return AccessDecision(False, error=f"SubjectAccessReview: {error}")
        return AccessDecision(status.get("allowed") is True, str(status.get("reason", "")))


def review(query: Query, user: UserInfo) -> Json:
    """Returns the SubjectAccessReview for a query: about the service account that the query names, or else
    about the user.
    """
    spec: Json = {"user": user.username, "uid": user.uid, "groups": list(user.groups)}
    spec["extra"] = {key: list(values) for key, values in user.extra.items()}
    if query.service_account is not None:
        namespace, name = query.service_account
        groups = ["system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated"]
        spec = {"user": f"system:serviceaccount:{namespace}:{name}", "groups": groups}
    if query.path:
        spec["nonResourceAttributes"] = {"path": query.path, "verb": query.verb}
    else:
        attributes = {
            "group": query.group,
            "resource": query.resource,
            "subresource": query.subresource,
            "namespace": query.namespace,
            "name": query.name,
            "verb": query.verb,
        }
        spec["resourceAttributes"] = {key: value for key, value in attributes.items() if value}
    return {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
