"""AdmissionReviews as an API server sends them, and a running webhook that answers them."""

from __future__ import annotations

import base64
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jsonpatch
import orjson
from aiohttp.test_utils import TestClient

from planner.ledger.sqlite import SqliteLedger
from webhook.cli.cluster_files.watched import ClusterFiles
from webhook.cli.common.inputs import shipped
from webhook.files.reader import objects
from webhook.server.http import Webhook
from webhook.server.service import Service
from webhook.wire.request import AdmissionRequest, from_object
from webhook.wire.review import decode

EXAMPLES = shipped("manifests") / "examples"
Json = dict[str, Any]
PATIENCE = 60.0
"""Seconds: the webhook's own deadline is the caller's patience with a real cluster, not a busy machine's."""


def example(name: str) -> Json:
    """The object in an example manifest."""
    (document,) = objects([str(EXAMPLES / f"{name}.yaml")])
    return document.value  # type: ignore[no-any-return]


def clusters(*names: str) -> ClusterFiles:
    """The example clusters as the webhook reads them."""
    return ClusterFiles([str(EXAMPLES / "clusters" / f"{name}.yaml") for name in names])


def review(
    obj: Json, *, operation: str = "CREATE", dry_run: bool = False, uid: str = "", old: Json | None = None
) -> Json:
    """An AdmissionReview as an API server sends it."""
    request = from_object(obj)
    return {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": uid or str(uuid.uuid4()),
            "kind": request.kind.as_cel(),
            "resource": request.resource.as_cel(),
            "name": request.name,
            "namespace": request.namespace,
            "operation": operation,
            "userInfo": {"username": "ann"},
            "object": None if operation == "DELETE" else obj,
            "oldObject": obj if operation == "DELETE" else old,
            "dryRun": dry_run,
        },
    }


def request_of(obj: Json, **words: Any) -> AdmissionRequest:
    """The request of a review."""
    return decode(orjson.dumps(review(obj, **words)))


def patched(obj: Json, response: Json) -> Json:
    """The object as the API server would store it."""
    if "patch" not in response:
        return obj
    return jsonpatch.apply_patch(obj, base64.b64decode(response["patch"]).decode())  # type: ignore[no-any-return]


@dataclass
class ServedWebhook:
    """A running webhook: its client, its ledger, and its clock."""

    client: TestClient[Any, Any]
    ledger: SqliteLedger
    webhook: Webhook
    now: list[float]

    @property
    def service(self) -> Service:
        """What answers the calls."""
        return self.webhook.service

    async def post(self, path: str, body: Json) -> Json:
        """The `response` of a review."""
        answer = await self.client.post(
            path, data=orjson.dumps(body), headers={"Content-Type": "application/json"}
        )
        assert answer.status == 200, await answer.text()
        return orjson.loads(await answer.read())["response"]  # type: ignore[no-any-return]

    async def mutate(self, obj: Json, **words: Any) -> Json:
        """/mutate."""
        return await self.post("/mutate", review(obj, **words))

    async def validate(self, obj: Json, **words: Any) -> Json:
        """/validate."""
        return await self.post("/validate", review(obj, **words))

    async def holders(self) -> list[str]:
        """The names of the gangs in the ledger."""
        return sorted(r.gang for r in (await self.ledger.book(self.now[0])).reservations)


Serve = Callable[..., Any]
