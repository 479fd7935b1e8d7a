"""Fuzzed reviews against the replicas, and what they patch against the API server's own validation."""

from __future__ import annotations

import asyncio
import base64
import time
from collections.abc import Iterator, Sequence
from typing import Any

import jsonpatch

from tests.attack import calls
from tests.attack.reviews import review
from tests.attack.table import Line
from tests.e2e.api import Api, ApiError

Json = dict[str, Any]
CLIENTS = 6
SHARE = 50
"""Of so many fuzzed reviews, the patched object of one more is held against the API server's validation."""
FIRST = 1_000_000
"""The number of the first of those: they are others than the fuzzed ones."""
PLACES = {
    "Pod": "/api/v1/namespaces/team/pods",
    "Job": "/apis/batch/v1/namespaces/team/jobs",
    "Deployment": "/apis/apps/v1/namespaces/team/deployments",
    "StatefulSet": "/apis/apps/v1/namespaces/team/statefulsets",
}
"""The kinds that an API server without operators validates."""


def fuzz(ports: Sequence[int], count: int, first: int = 0) -> Line:
    """Reviews of every kind with anything wrong in them, in both phases, from the number `first` on."""
    began = time.monotonic()
    bodies = (review(number) for number in range(first, first + count))
    wrong: list[str] = []

    def answered(body: Json, status: int, _: Json) -> None:
        if status >= 500 or not status:
            request = body.get("request")
            uid = request.get("uid") if isinstance(request, dict) else "damaged"
            wrong.append(f"{uid}: {status}")

    statuses = asyncio.run(calls.send(ports, bodies, CLIENTS, answered))
    measured = f"{dict(sorted(statuses.items()))} in {time.monotonic() - began:.0f} s {wrong[:20] or ''}"
    which = f"{count} fuzzed reviews from {first}" if first else f"{count} fuzzed reviews"
    return Line(f"{which}, both phases", "no 5xx, no call without an answer", measured, not wrong)


def storable(number: int) -> Json | None:
    """The fuzzed review of this number as one that the API server may store, None where it is none."""
    body = review(number)
    request = body.get("request")
    obj = request.get("object") if isinstance(request, dict) else None
    if (
        not isinstance(obj, dict)
        or str(obj.get("kind")) not in PLACES
        or request.get("operation") != "CREATE"
    ):
        return None
    spec = obj.get("spec")
    template = spec.get("template") if isinstance(spec, dict) else None
    if isinstance(template, dict) and isinstance(template.get("spec"), dict):
        if obj["kind"] == "Job":
            template["spec"].setdefault("restartPolicy", "Never")
        elif isinstance(template.setdefault("metadata", {}), dict):
            labels = template["metadata"].setdefault("labels", {})
            if isinstance(labels, dict):
                labels["app"] = "demo"
            spec.setdefault("selector", {"matchLabels": {"app": "demo"}})
            if obj["kind"] == "StatefulSet":
                spec.setdefault("serviceName", "demo")
    return body


def patched(api: Api, ports: Sequence[int], count: int) -> Line:
    """What the API server would store, it would store as patched too; nothing else asks it here."""
    refused: list[str] = []
    seen, sample = 0, max(100, count // SHARE)

    def valid() -> Iterator[Json]:
        for number in range(FIRST, FIRST + 200 * sample):
            if seen >= sample:
                return
            body = storable(number)
            if body is not None and not _refusal(api, body["request"]["object"]):
                yield body

    def answered(body: Json, status: int, response: Json) -> None:
        nonlocal seen
        if status != 200 or not response["allowed"] or "patch" not in response:
            return
        seen += 1
        obj = jsonpatch.apply_patch(body["request"]["object"], base64.b64decode(response["patch"]).decode())
        refusal = _refusal(api, obj)
        if refusal:
            refused.append(f"{body['request']['uid']}: {refusal[:200]}")

    asyncio.run(calls.send(ports, valid(), 1, answered))
    measured = f"{seen} patched, {len(refused)} refused {refused[:2] or ''}"
    return Line(
        "patched objects, dry-run create",
        f"{sample} of {sample} accepted",
        measured,
        seen >= sample and not refused,
    )


def _refusal(api: Api, obj: Json) -> str:
    try:
        api.create(PLACES[obj["kind"]], obj, dryRun="All")
    except ApiError as error:
        return str(error)
    return ""
