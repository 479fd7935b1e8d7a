"""Reads admissions from the API server's audit log (audit.k8s.io/v1, one JSON event per line). Pure.

At level Request and above, an event has the sent object and whether it was admitted, but not what webhooks
changed. An event of a patch does not have the whole object. The old object of an update is taken from an
earlier event.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, cast

from webhook.journal.entries import Answered, JournalEntry, reading, time_of
from webhook.journal.secrets import without_secrets
from webhook.wire.request import Operation, UserInfo, from_object
from webhook.workloads.kinds import row_of

API_VERSION = "audit.k8s.io/v1"
_VERBS: dict[str, Operation] = {"create": "CREATE", "update": "UPDATE", "delete": "DELETE"}
_OURS = ".bayplan.dev"
"""The suffix of the names of Bayplan's webhooks, which the API server writes into the message of a
refusal.
"""
MOST_REMEMBERED = 20_000
"""Maximum number of objects that are remembered for later updates, to bound memory. Updates of other objects
are left out."""

Json = Mapping[str, Any]


@dataclass(slots=True)
class AuditLog:
    """Converts events to admissions; the events must be passed in their order. `left_out`: the number of
    events whose object, or old object, is unknown.
    """

    left_out: int = 0
    _stored: OrderedDict[tuple[str, ...], Json] = field(default_factory=OrderedDict)

    def entry(self, event: Json) -> JournalEntry | None:
        """Returns the admission in an event; None if it is not one that Bayplan handles. Raises
        `NotAnEntryError` for a malformed event.
        """
        with reading("an audit event"):
            return self._admission(event)

    def _admission(self, event: Json) -> JournalEntry | None:
        status, ref = event.get("responseStatus") or {}, event.get("objectRef") or {}
        code, message = int(status.get("code") or 0), str(status.get("message") or "")
        operation = _VERBS.get(str(event.get("verb")))
        if event.get("stage") != "ResponseComplete" or ref.get("subresource") or not code:
            return None
        refused = code >= 400 and _OURS in message
        if code >= 400 and not refused:  # it did not reach Bayplan's webhook, or something else refused it
            return None
        key = tuple(str(ref.get(part) or "") for part in ("apiGroup", "resource", "namespace", "name"))
        sent = event.get("requestObject") if operation != "DELETE" else self._stored.get(key)
        if operation is None or not isinstance(sent, Mapping) or not isinstance(sent.get("kind"), str):
            self.left_out += operation is not None or event.get("verb") == "patch"
            return None
        if row_of(str(sent.get("apiVersion") or ""), str(sent["kind"])) is None:
            return None
        if operation == "UPDATE" and key not in self._stored:
            self.left_out += 1
            self._remember(key, event.get("responseObject") or sent)
            return None
        request = from_object(
            without_secrets(sent),
            operation,
            namespace=str(ref.get("namespace") or "default"),
            old_object=self._stored.get(key) if operation == "UPDATE" else None,
            user_info=_user(event.get("user") or {}),
            uid=str(event.get("auditID") or ""),
            dry_run="dryRun=" in str(event.get("requestURI") or ""),
        )
        if not refused and not request.dry_run:
            self._remember(key, None if operation == "DELETE" else event.get("responseObject") or sent)
        answer = Answered(not refused, "refused" if refused else "unchanged", message, whole=False)
        moment = time_of(datetime.fromisoformat(str(event["stageTimestamp"])).timestamp())
        return JournalEntry(
            moment, "validate" if operation == "DELETE" else "mutate", request, answer, stored=not refused
        )

    def _remember(self, key: tuple[str, ...], obj: Any) -> None:
        self._stored.pop(key, None)
        if isinstance(obj, Mapping):
            self._stored[key] = cast(Json, without_secrets(obj))
        if len(self._stored) > MOST_REMEMBERED:
            self._stored.popitem(last=False)


def _user(user: Json) -> UserInfo:
    return UserInfo(str(user.get("username") or ""), groups=tuple(map(str, user.get("groups") or ())))
