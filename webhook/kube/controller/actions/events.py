"""Events on a gang's workload, which `kubectl describe job` shows.

An event's name contains a digest of its content, so a new leader that reports the same again adds no event.
"""

from __future__ import annotations

import hashlib
import logging
from dataclasses import dataclass, field
from datetime import UTC, datetime

from webhook.kube.api.client import Api, ApiError, Json
from webhook.kube.state.gangs import Ref
from webhook.workloads.stored import seconds

LONGEST = 1000
"""Maximum number of characters of a message; the API server allows 1,024."""


LONGEST_NAME = 200
"""Maximum number of characters of the object's name in the name of its event, which may have 253."""


KEPT = 10_000
"""Maximum number of events that are remembered as written."""


log = logging.getLogger("bayplan")


@dataclass(slots=True)
class Recorder:
    """Writes events; an event that cannot be written is logged and dropped."""

    api: Api
    _told_digests: dict[str, None] = field(default_factory=dict)

    async def tell(self, ref: Ref, reason: str, message: str, *, warning: bool = False) -> None:
        """Writes one event on an object, unless this recorder has written the same before, or the object has
        no UID.
        """
        text = message if len(message) <= LONGEST else message[: LONGEST - 1] + "…"
        digest = hashlib.sha256(f"{ref.uid}\0{reason}\0{text}".encode()).hexdigest()[:16]
        if digest in self._told_digests or not ref.uid:
            return
        self._told_digests[digest] = None
        while len(self._told_digests) > KEPT:
            del self._told_digests[next(iter(self._told_digests))]
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        # A name that is cut may end with a mark, which a valid name has only between letters and digits.
        name = f"{ref.name[:LONGEST_NAME].rstrip('-.')}.{digest}"
        body = {
            "metadata": {"name": name, "namespace": ref.namespace},
            "involvedObject": {
                "apiVersion": ref.api_version,
                "kind": ref.kind,
                "namespace": ref.namespace,
                "name": ref.name,
                "uid": ref.uid,
            },
            "reason": reason,
            "message": text,
            "type": "Warning" if warning else "Normal",
            "source": {"component": "bayplan"},
            "reportingComponent": "bayplan",
            "reportingInstance": "bayplan",
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        }
        try:
            await self.api.create(f"/api/v1/namespaces/{ref.namespace}/events", body)
        except ApiError as error:
            if error.status not in (404, 409):  # the namespace was deleted; the event exists already
                log.warning("event %s on %s: %s", reason, ref.key, error)


def told_at(event: Json) -> float:
    """Returns the last time of an Event, in seconds since the epoch. Raises `KeyError`, `TypeError` or
    `ValueError` for an object that is no valid Event.
    """
    return seconds(str(event.get("lastTimestamp") or event["metadata"]["creationTimestamp"]))
