"""The API server's part in the demo: a review over TLS, the patch applied, the second review."""

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
    """What came back: `dry` says whether the dry run gave the very same response."""

    response: Json
    object: Json
    same_as_dry_run: bool

    @property
    def allowed(self) -> bool:
        """Whether the object would be stored."""
        return bool(self.response["allowed"])

    @property
    def message(self) -> str:
        """The refusal, "" where there is none."""
        return str(self.response.get("status", {}).get("message", ""))


class ApiServer:
    """Sends AdmissionReviews to `url`, trusting the CA in `tls` alone."""

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
        """A dry run, then the real thing: mutate, and validate what would be stored."""
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
        """One AdmissionReview v1; its `response`."""
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
    """The object with the response's patch, as the API server applies it."""
    if "patch" not in response:
        return dict(obj)
    result: Json = jsonpatch.apply_patch(obj, base64.b64decode(response["patch"]).decode())
    return result
