"""Decodes and encodes AdmissionReview v1. No I/O.

There are two kinds of errors. A malformed call (not JSON, not an AdmissionReview, nested too deeply) raises
`BadCall`, which the server answers with HTTP 4xx. A malformed object in a valid call is answered with HTTP
200 and `allowed: false`.
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
"""Maximum size of a body in bytes: the API server's own limit for a request."""


WARNING_WIDTH = 120
"""Length of a warning, in characters, that Kubernetes recommends not to exceed. A longer warning is split
into sentences; short sentences share a line.
"""


WARNING_LIMIT = 256
"""Length of a warning, in characters, up to which the API server never truncates it, however many there
are.
"""


WARNINGS_TOTAL = 4096
"""Total length of a response's warnings, in characters, that the API server passes on."""


TEXT_LIMIT = 4096
"""Maximum length of a text of a request outside of its object, in characters. Queues and logs keep some of
these texts for thousands of calls.
"""


API_VERSION = "admission.k8s.io/v1"


_JSON = {list: "array", str: "string", int: "number", float: "number", bool: "boolean", type(None): "null"}


OPERATIONS = ("CREATE", "UPDATE", "DELETE", "CONNECT")


_NAMESPACE = re.compile(r"(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)?")
"""Matches the name of a namespace, and "". Anything else would be another path when objects of the namespace
are read from the API server, so that holds of a forged review would never be known to have no owner.
"""


_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z0-9`'\"(])")


_ABOUT = re.compile(
    r"(?:would (?:be \w+|warn)(?=: ))?"
    r"(?:(?:: )?(?:policy '[^']+'|[^\s/:]+/[^\s/:]+/[^\s:]+))?"
)
"""Matches the beginning of a warning that names an object or a policy, with the prefix of mode `warn`."""


_NAMES_OBJECT = re.compile(r"(?:would (?:be \w+|warn): )?[^\s/:]+/[^\s/:]+/[^\s:]+")
"""Matches the beginning of a warning that names its object."""


class BadCall(Exception):  # noqa: N818 - it describes the call, as opposed to the object
    """The call is malformed. `status`: the HTTP status of the answer."""

    def __init__(self, message: str, status: int = 400) -> None:
        self.status = status
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class Response:
    """The answer to a request. `patch`: RFC 6902, empty for no change. `code`, `reason`: those of a
    refusal.
    """

    allowed: bool
    patch: Sequence[Mapping[str, Any]] = ()
    code: int = 200
    reason: str = ""
    message: str = ""
    warnings: Sequence[str] = ()
    audit_annotations: Mapping[str, str] = field(default_factory=dict)


def decode(body: bytes) -> AdmissionRequest:
    """Returns the request in the body of an AdmissionReview.

    Raises `BadCall` with status 413 for more than `BODY_LIMIT` bytes, and 400 for any other malformed body.
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
    """Returns the AdmissionReview to send back, with UID, patch type and the patch in base64.

    `about`: the object as NAMESPACE/KIND/NAME, for its warnings.
    """
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
    """Returns the warnings as lines that kubectl shows completely, without duplicates. Lines beyond a total
    of `WARNINGS_TOTAL` are left out.

    A warning that does not name its object gets the prefix `about`. Otherwise kubectl, which omits repeated
    lines, would print it for only one of several objects of an `apply`.
    """
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
    """Returns the lines of a warning; a long one is split between sentences. Each line begins with the object
    or policy that the warning names, because kubectl omits a line that it has printed before, even for
    another object of the same `apply`. `opening`: a prefix of the first line, which does not count for its
    width.
    """
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
    """Returns the index at which to break a long line: after a clause, otherwise after a word, otherwise at
    `limit`. `start`: the length of the line's prefix."""
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
    namespace = _text(request, "namespace")
    if not _NAMESPACE.fullmatch(namespace):
        raise BadCall(f"request.namespace is {_short(namespace)}, which is no name of a namespace")
    return AdmissionRequest(
        uid=_bounded(uid, "uid"),
        operation=operation,
        kind=GroupVersionKind(*_triple(request, "kind", "kind")),
        resource=GroupVersionResource(*_triple(request, "resource", "resource")),
        sub_resource=_bounded(_text(request, "subResource"), "subResource"),
        request_kind=GroupVersionKind(*_triple(request, "requestKind", "kind")) if asked_kind else None,
        request_resource=(
            GroupVersionResource(*_triple(request, "requestResource", "resource")) if asked_resource else None
        ),
        request_sub_resource=_bounded(_text(request, "requestSubResource"), "requestSubResource"),
        name=_text(request, "name"),
        namespace=namespace,
        user_info=_user(request.get("userInfo")),
        object=_object(request, "object"),
        old_object=_object(request, "oldObject"),
        dry_run=_flag(request, "dryRun"),
        options=options if isinstance(options, dict) else {},
    )


def _user(value: object) -> UserInfo:
    """Returns the user of a request. Values that are not strings or lists of strings are ignored."""
    info = value if isinstance(value, dict) else {}
    groups, extra = info.get("groups"), info.get("extra")
    return UserInfo(
        username=_bounded(str(info.get("username") or ""), "userInfo.username"),
        uid=_bounded(str(info.get("uid") or ""), "userInfo.uid"),
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
    group, version, name = (_bounded(value.get(part, ""), f"{key}.{part}") for part in parts)
    return group, version, name


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


def _bounded(text: str, key: str) -> str:
    """Returns the text. Raises `BadCall` if it is longer than `TEXT_LIMIT`."""
    if len(text) > TEXT_LIMIT:
        raise BadCall(f"request.{key} has {len(text)} characters, more than the limit of {TEXT_LIMIT}")
    return text


def _flag(request: Mapping[str, Any], key: str) -> bool:
    value = request.get(key)
    if value is not None and not isinstance(value, bool):
        raise BadCall(f"request.{key} is {_short(value)}; it is true or false")
    return value is True


def _short(value: object) -> str:
    return shortened(orjson.dumps(value).decode(), 60)
