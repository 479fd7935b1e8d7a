"""Makes the response to a request whose decision exceeds the deadline of a call. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from planner.model.effort.deadline import DeadlinePassed, Part
from webhook.wire.review import Response

_WORDS: Mapping[Part, tuple[str, str]] = {
    "reading": ("reading its pod templates", "fewer PodSets, or several objects"),
    "policies": ("evaluating the policies on it", "fewer containers and PodSets, or several objects"),
    "search": (
        "the search for a place",
        "fewer kinds of pods, and fewer terms of affinity and spread constraints on them",
    ),
    "explanation": (
        "the search for a request that would have a place, for as it is it has none now,",
        "fewer kinds of pods, and fewer terms of affinity and spread constraints on them",
    ),
}
"""By part of a decision: text that says what took too long, and text that says what the user can reduce."""


def took_too_long(passed: DeadlinePassed) -> Response:
    """Returns the refusal. It says that the request is too large (413), not that the server failed."""
    work, smaller = _WORDS[passed.part]
    message = f"{work} took longer than one decision may. What would work: {smaller}"
    return Response(False, code=413, reason="RequestEntityTooLarge", message=message)
