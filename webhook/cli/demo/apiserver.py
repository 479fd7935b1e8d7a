"""The part of an API server in the demo: calls mutate over TLS, applies the patch, and calls validate."""

from __future__ import annotations

import base64
import ssl
import uuid
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import aiohttp
import jsonpatch
import orjson

from webhook.wire.request import AdmissionRequest, from_object

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Reply:
    """The result of applying an object.

    `response`: that of /validate if it refuses the object, otherwise that of /mutate. `object`: the object as
    it would be stored. `same_as_dry_run`: whether /mutate gave the dry run and the real request the same
    response.
    """

    response: Json
    object: Json
    same_as_dry_run: bool

    @property
    def allowed(self) -> bool:
        """Whether the object is admitted."""
        return bool(self.response["allowed"])

    @property
    def message(self) -> str:
        """The message of the refusal; "" if the object is admitted."""
        return str(self.response.get("status", {}).get("message", ""))


class ApiServer:
    """Sends AdmissionReviews to the webhook at `url`. `tls`: must trust only the demo's CA."""

    def __init__(self, url: str, tls: ssl.SSLContext) -> None:
        self._url = url
        self._session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=tls))

    async def __aenter__(self) -> ApiServer:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._session.close()

    async def apply(self, obj: Json) -> Reply:
        """Sends the object to /mutate as a dry run, then for real; and if it is admitted, the patched
        object to /validate.
        """
        request = from_object(obj, uid=str(uuid.uuid4()))
        rehearsal = await self.review("mutate", request, obj, dry_run=True)
        response = await self.review("mutate", request, obj, dry_run=False)
        matching = rehearsal == response
        if not response["allowed"]:
            return Reply(response, obj, matching)
        stored = patched(obj, response)
        stored["metadata"] = {**stored["metadata"], "uid": str(uuid.uuid4())}
        verdict = await self.review("validate", request, stored, dry_run=False)
        return Reply(response if verdict["allowed"] else verdict, stored, matching)

    async def review(self, path: str, request: AdmissionRequest, obj: Json, *, dry_run: bool) -> Json:
        """Sends an AdmissionReview v1 to `path`, and returns the `response` in the answer. Raises
        `aiohttp.ClientError`.
        """
        body = {
            "apiVersion": "admission.k8s.io/v1",
            "kind": "AdmissionReview",
            "request": {
                "uid": request.uid,
                "kind": request.kind.as_cel(),
                "resource": request.resource.as_cel(),
                "requestKind": request.kind.as_cel(),
                "requestResource": request.resource.as_cel(),
                "name": request.name,
                "namespace": request.namespace,
                "operation": "CREATE",
                "userInfo": {"username": "demo", "groups": ["system:authenticated"]},
                "object": obj,
                "oldObject": None,
                "dryRun": dry_run,
                "options": {"apiVersion": "meta.k8s.io/v1", "kind": "CreateOptions"},
            },
        }
        headers = {"Content-Type": "application/json"}
        async with self._session.post(
            f"{self._url}/{path}", data=orjson.dumps(body), headers=headers
        ) as answer:
            answer.raise_for_status()
            response: Json = orjson.loads(await answer.read())["response"]
            return response


def patched(obj: Json, response: Json) -> Json:
    """Returns the object with the response's JSON Patch applied."""
    if "patch" not in response:
        return dict(obj)
    result: Json = jsonpatch.apply_patch(obj, base64.b64decode(response["patch"]).decode())
    return result
