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
from typing import Any, TypeAlias, cast

from webhook.journal.entries import Answered, JournalEntry, reading, time_of
from webhook.journal.secrets import without_secrets
from webhook.wire.request import AdmissionRequest, Operation, UserInfo, from_object
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
_Key: TypeAlias = tuple[str, ...]
"""An object's API group, resource, namespace and name."""


@dataclass(slots=True)
class AuditLog:
    """Converts events to admissions; the events must be passed in their order. `left_out`: the number of
    events whose object, or old object, is unknown.
    """

    left_out: int = 0
    _stored: OrderedDict[_Key, Json] = field(default_factory=OrderedDict)

    def entry(self, event: Json) -> JournalEntry | None:
        """Returns the admission in an event; None if it is not one that Bayplan handles. Raises
        `NotAnEntryError` for a malformed event.
        """
        with reading("an audit event"):
            return self._admission(event)

    def _admission(self, event: Json) -> JournalEntry | None:
        answer = _answer(event)
        if answer is None:
            return None
        operation, key = _VERBS.get(_text(event, "verb")), _key(event)
        sent = event.get("requestObject") if operation != "DELETE" else self._stored.get(key)
        if operation is None or not isinstance(sent, Mapping) or not isinstance(sent.get("kind"), str):
            self.left_out += operation is not None or event.get("verb") == "patch"
            return None
        if row_of(_text(sent, "apiVersion"), str(sent["kind"])) is None:
            return None
        if operation == "UPDATE" and key not in self._stored:
            self.left_out += 1
            self._remember(key, event.get("responseObject") or sent)
            return None
        request = self._request(event, operation, key, sent)
        if answer.allowed and not request.dry_run:
            self._remember(key, None if operation == "DELETE" else event.get("responseObject") or sent)
        moment = time_of(datetime.fromisoformat(str(event["stageTimestamp"])).timestamp())
        return JournalEntry(
            moment,
            "validate" if operation == "DELETE" else "mutate",
            request,
            answer,
            stored=answer.allowed,
        )

    def _request(self, event: Json, operation: Operation, key: _Key, sent: Json) -> AdmissionRequest:
        return from_object(
            without_secrets(sent),
            operation,
            namespace=_text(event.get("objectRef"), "namespace") or "default",
            old_object=self._stored.get(key) if operation == "UPDATE" else None,
            user_info=_user(event.get("user") or {}),
            uid=_text(event, "auditID"),
            dry_run="dryRun=" in _text(event, "requestURI"),
        )

    def _remember(self, key: _Key, obj: Any) -> None:
        self._stored.pop(key, None)
        if isinstance(obj, Mapping):
            self._stored[key] = cast(Json, without_secrets(obj))
        if len(self._stored) > MOST_REMEMBERED:
            self._stored.popitem(last=False)


def _answer(event: Json) -> Answered | None:
    """Returns how the request of a completed event was answered; None if it did not reach Bayplan's webhook,
    or something else refused it.
    """
    status, ref = event.get("responseStatus"), event.get("objectRef")
    code, message = int(_text(status, "code") or 0), _text(status, "message")
    if event.get("stage") != "ResponseComplete" or _text(ref, "subresource") or not code:
        return None
    if code < 400:
        return Answered(True, "unchanged", message, whole=False)
    return Answered(False, "refused", message, whole=False) if _OURS in message else None


def _key(event: Json) -> _Key:
    ref = event.get("objectRef")
    return tuple(_text(ref, part) for part in ("apiGroup", "resource", "namespace", "name"))


def _text(part: Json | None, key: str) -> str:
    """Returns a field of an event as text; "" for one that is missing, null or empty."""
    return str((part or {}).get(key) or "")


def _user(user: Json) -> UserInfo:
    return UserInfo(_text(user, "username"), groups=tuple(map(str, user.get("groups") or ())))
