"""AdmissionReview v1 on the wire: decode a call, encode an answer. No I/O.

Two error roads. A bad call (no JSON, no review, too deep) raises `BadCall`, which the server answers with a
4xx. A bad object is a good call: it is answered with HTTP 200 and `allowed: false`.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from planner.model.words import shortened
from webhook.jsontools.depth import DEPTH_LIMIT, deeper_than
from webhook.wire.request import AdmissionRequest, GroupVersionKind, GroupVersionResource, UserInfo

BODY_LIMIT = 3 * 1024 * 1024
"""Bytes; the API server's own limit for a request."""


WARNING_WIDTH = 120
"""Characters up to which Kubernetes wants a warning to be short: sentences share a line within it."""


WARNING_LIMIT = 256
"""Characters of one warning that the API server never cuts, however many there are."""


WARNINGS_TOTAL = 4096
"""Characters of all warnings of one answer that the API server passes on."""


API_VERSION = "admission.k8s.io/v1"


_JSON = {list: "array", str: "string", int: "number", float: "number", bool: "boolean", type(None): "null"}


OPERATIONS = ("CREATE", "UPDATE", "DELETE", "CONNECT")


_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z0-9`'\"(])")


_ABOUT = re.compile(
    r"(?:would (?:be \w+|warn)(?=: ))?"
    r"(?:(?:: )?(?:policy '[^']+'|[^\s/:]+/[^\s/:]+/[^\s:]+))?"
)
"""What the sentences of a warning are about: an object or a policy, and what mode `warn` would have done."""


_NAMES_OBJECT = re.compile(r"(?:would (?:be \w+|warn): )?[^\s/:]+/[^\s/:]+/[^\s:]+")
"""The beginning of a warning that says which object it is about."""


class BadCall(Exception):  # noqa: N818 - the name is the road it takes
    """The call itself is wrong; `status` is the HTTP status that says so."""

    def __init__(self, message: str, status: int = 400) -> None:
        self.status = status
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class Response:
    """The answer to one request. `patch` is RFC 6902, empty for no change; `code` and `reason` tell a no."""

    allowed: bool
    patch: Sequence[Mapping[str, Any]] = ()
    code: int = 200
    reason: str = ""
    message: str = ""
    warnings: Sequence[str] = ()
    audit_annotations: Mapping[str, str] = field(default_factory=dict)


def decode(body: bytes) -> AdmissionRequest:
    """The request in an AdmissionReview's body.

    Raises `BadCall` for what is no AdmissionReview v1 with a request: 400, or 413 over `BODY_LIMIT` bytes.
    """
    if len(body) > BODY_LIMIT:
        raise BadCall(f"the body has {len(body)} bytes, more than the limit of {BODY_LIMIT}", 413)
    try:
        review = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise BadCall(
            f"the body is no JSON: line {error.lineno}, column {error.colno}: {error.msg}"
        ) from None
    if not isinstance(review, dict) or review.get("kind") != "AdmissionReview":
        kind = _short(review.get("kind")) if isinstance(review, dict) else f"a JSON {_JSON[type(review)]}"
        raise BadCall(f"expected kind AdmissionReview, found {kind}")
    if review.get("apiVersion") != API_VERSION:
        raise BadCall(f"expected apiVersion {API_VERSION}, found {_short(review.get('apiVersion'))}")
    request = review.get("request")
    if not isinstance(request, dict):
        raise BadCall("the AdmissionReview has no request")
    if deeper_than(request, DEPTH_LIMIT):
        raise BadCall(f"the request is nested deeper than {DEPTH_LIMIT} levels")
    return _request(request)


def encode(uid: str, response: Response, about: str = "") -> bytes:
    """The AdmissionReview to send back; the only place that knows of UID, patch type and base64.

    `about`: the object, NAMESPACE/KIND/NAME."""
    answer: dict[str, Any] = {"uid": uid, "allowed": response.allowed}
    if response.patch and response.allowed:
        answer["patchType"] = "JSONPatch"
        answer["patch"] = base64.b64encode(orjson.dumps(list(response.patch))).decode()
    if not response.allowed:
        answer["status"] = {
            "status": "Failure",
            "code": response.code,
            "reason": response.reason,
            "message": response.message,
        }
    if response.warnings:
        answer["warnings"] = fit_warnings(response.warnings, about)
    if response.audit_annotations:
        answer["auditAnnotations"] = dict(response.audit_annotations)
    return orjson.dumps({"apiVersion": API_VERSION, "kind": "AdmissionReview", "response": answer})


def fit_warnings(warnings: Iterable[str], about: str = "") -> list[str]:
    """Warnings as kubectl shows them whole: each a line of its own, 4,096 characters in all, none twice.

    One that names no object begins with `about`: what is wrong with several objects of an `apply` is told of
    each, and what would work once."""
    lines: list[str] = []
    room = WARNINGS_TOTAL
    for warning in dict.fromkeys(warnings):
        text = " ".join(warning.split())
        opens = 0 < len(about) <= WARNING_WIDTH and not _NAMES_OBJECT.match(text)
        for line in _lines(text, f"{about}: " if opens else ""):
            if len(line) > room:
                return lines
            lines.append(line)
            room -= len(line)
    return lines


def _lines(text: str, opening: str) -> list[str]:
    """A warning that is longer than the width, a sentence a line, each with what it is about: kubectl leaves
    out a line that it has printed before, also for another object of the same `apply`. `opening`: what the
    first line begins with, beside its width."""
    if len(text) <= WARNING_WIDTH:
        return [f"{opening}{text}"]
    about = _ABOUT.match(text)
    prefix = f"{about[0]}: " if about and about[0] and len(about[0]) <= WARNING_WIDTH else ""
    lines: list[str] = []
    for sentence in _SENTENCE_END.split(text):
        if lines and len(lines[-1]) + 1 + len(sentence) <= WARNING_WIDTH:
            lines[-1] += f" {sentence}"
            continue
        line = f"{prefix}{sentence}" if lines else sentence
        while len(line) > (limit := WARNING_LIMIT - (0 if lines else len(opening))):
            end = _clause_end(line, len(prefix), limit)
            lines.append(line[:end].rstrip())
            line = f"{prefix}{line[end:].lstrip()}"
        lines.append(line)
    return [f"{opening}{lines[0]}", *lines[1:]]


def _clause_end(line: str, start: int, limit: int) -> int:
    """Where a line that is too long is broken: after a clause, or else a word, or else anywhere."""
    ends = (line.rfind(mark, start, limit) + 1 for mark in ("; ", ": ", ", ", " "))
    return next((end for end in ends if end > start + WARNING_WIDTH // 2), limit)


def _request(request: Mapping[str, Any]) -> AdmissionRequest:
    uid, operation = request.get("uid"), request.get("operation")
    if not isinstance(uid, str) or not uid:
        raise BadCall("request.uid is missing")
    if operation not in OPERATIONS:
        raise BadCall(f"request.operation is {_short(operation)}; it is one of {', '.join(OPERATIONS)}")
    options = request.get("options")
    asked_kind, asked_resource = request.get("requestKind"), request.get("requestResource")
    return AdmissionRequest(
        uid=uid,
        operation=operation,
        kind=GroupVersionKind(*_triple(request, "kind", "kind")),
        resource=GroupVersionResource(*_triple(request, "resource", "resource")),
        sub_resource=_text(request, "subResource"),
        request_kind=GroupVersionKind(*_triple(request, "requestKind", "kind")) if asked_kind else None,
        request_resource=(
            GroupVersionResource(*_triple(request, "requestResource", "resource")) if asked_resource else None
        ),
        request_sub_resource=_text(request, "requestSubResource"),
        name=_text(request, "name"),
        namespace=_text(request, "namespace"),
        user_info=_user(request.get("userInfo")),
        object=_object(request, "object"),
        old_object=_object(request, "oldObject"),
        dry_run=_flag(request, "dryRun"),
        options=options if isinstance(options, dict) else {},
    )


def _user(value: object) -> UserInfo:
    """Who asks; what is no string or list of strings there is left out."""
    info = value if isinstance(value, dict) else {}
    groups, extra = info.get("groups"), info.get("extra")
    return UserInfo(
        username=str(info.get("username") or ""),
        uid=str(info.get("uid") or ""),
        groups=tuple(map(str, groups)) if isinstance(groups, list) else (),
        extra={str(k): tuple(map(str, v)) for k, v in extra.items() if isinstance(v, list)}
        if isinstance(extra, dict)
        else {},
    )


def _triple(request: Mapping[str, Any], key: str, last: str) -> tuple[str, str, str]:
    value = request.get(key)
    parts = ("group", "version", last)
    if not isinstance(value, dict) or not all(isinstance(value.get(part, ""), str) for part in parts):
        raise BadCall(f"request.{key} is no mapping of group, version and {last}")
    if not value.get(last):
        raise BadCall(f"request.{key}.{last} is missing")
    return value.get("group", ""), value.get("version", ""), value[last]


def _object(request: Mapping[str, Any], key: str) -> dict[str, Any] | None:
    value = request.get(key)
    if value is not None and not isinstance(value, dict):
        raise BadCall(f"request.{key} is no object")
    return value


def _text(request: Mapping[str, Any], key: str) -> str:
    value = request.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise BadCall(f"request.{key} is no string")
    return value


def _flag(request: Mapping[str, Any], key: str) -> bool:
    value = request.get(key)
    if value is not None and not isinstance(value, bool):
        raise BadCall(f"request.{key} is {_short(value)}; it is true or false")
    return value is True


def _short(value: object) -> str:
    return shortened(orjson.dumps(value).decode(), 60)
