"""The *form* of pods or objects that differ only in values which hardly any policy reads: these values are
replaced by stand-ins (`webhook.cel.values.stand_in`).

If a policy reads no stand-in, its effect is the same on all that have the form.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from planner.manifests.pods.pod import AS_SENT, CONTAINER_LISTS
from webhook.cel.values.stand_in import StandIn
from webhook.jsontools.path import Path, find, replaced
from webhook.policy.engine.defaults import pull_policy

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True, eq=False)
class Form:
    """The common content of templates that differ only where it has stand-ins. Compared by identity.

    `shown`: the content as policies see it, with defaults.
    """

    shown: dict[str, Any]
    stand_ins: Mapping[Path, StandIn]
    """The stand-ins by their path in `shown`."""

    def still_common_to(self, changed: Any) -> bool:
        """Returns whether the templates of this form have a common form again after a change.

        `changed`: the form's content after a policy. The templates have a common form if all remaining
        stand-ins are where they were, and no default that depends on a replaced value (an image's pull
        policy) has changed.
        """
        left = dict(_stand_ins(changed, ()))
        stays = all(self.stand_ins.get(place) is stand_in for place, stand_in in left.items())
        return stays and pull_policies(self.shown) == pull_policies(changed)


def with_stand_ins(pod: Json, places: Mapping[Path, StandIn]) -> tuple[Any, dict[Path, StandIn]]:
    """Returns a pod with the stand-ins of those places at which it has a value, and these stand-ins."""
    stand_ins = {place: stand_in for place, stand_in in places.items() if find(pod, place) is not None}
    shown: Any = pod
    for place, stand_in in stand_ins.items():
        shown = replaced(shown, place, stand_in)
    return shown, stand_ins


def json_of(value: Any) -> bytes | None:
    """Returns a value as JSON; None if JSON cannot represent it. Pods have the same JSON if they have
    stand-ins at the same places and are equal otherwise.
    """
    try:
        return orjson.dumps(value, _marked, AS_SENT)
    except TypeError:  # an integer of more than 64 bits, or a key that is not a string
        return None


def _stand_ins(value: Any, place: Path) -> Iterator[tuple[Path, StandIn]]:
    if type(value) is StandIn:
        yield place, value
    elif isinstance(value, (dict, list)):
        items: Any = value.items() if isinstance(value, dict) else enumerate(value)
        for step, item in items:
            yield from _stand_ins(item, (*place, step))


def has_stand_in(value: Any) -> bool:
    """Returns whether a value is a stand-in or contains one."""
    return any(True for _ in _stand_ins(value, ()))


def pull_policies(pod: Any) -> list[Any]:
    """Returns the pull policy of each container's image, with or without defaults: the one default that
    depends on a replaced value. [] for a value that is no pod.
    """
    return [(part, index, pull_policy(container)) for part, index, container in containers(pod)]


def containers(pod: Any) -> Iterator[tuple[str, int, Json]]:
    spec = find(pod, ("spec",))
    for part in CONTAINER_LISTS:
        containers = spec.get(part) if isinstance(spec, dict) else None
        for index, container in enumerate(containers if isinstance(containers, list) else ()):
            if isinstance(container, dict):
                yield part, index, container


def _marked(value: object) -> str:
    """Returns the JSON of a stand-in: a text, so that it differs from null. Where a pod has a stand-in,
    another has a stand-in too, or null, or nothing. Raises TypeError for any other value that JSON does not
    have.
    """
    if type(value) is not StandIn:
        raise TypeError
    return "stand-in"
