"""The members of gangs of several objects that are stored at a moment of a replay. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from planner.model.errors import InputError
from planner.model.names import kind_of
from webhook.admission.decision_record import Decision
from webhook.wire.request import AdmissionRequest
from webhook.workloads import Workload, read
from webhook.workloads.shared_gangs.pod_groups import POD_GANGS, PodGroups


@dataclass(slots=True)
class MembersInReplay:
    """The stored members by gang, and of each gang by the member's name."""

    _by_gang: dict[str, dict[str, Workload]] = field(default_factory=dict)

    def of(self, gang: str) -> Sequence[Workload]:
        """Returns the stored members of a gang (`StoredMembers`)."""
        return tuple(self._by_gang.get(gang, {}).values())

    def store(self, decision: Decision, request: AdmissionRequest, groups: PodGroups) -> None:
        """Adds the object of an allowed request to its gang, if that may have several objects."""
        gangs = [placed.answer.gang for placed in decision.plan.placed] if decision.plan is not None else ()
        if decision.object is None or not any(kind_of(gang) in POD_GANGS for gang in gangs):
            return
        with suppress(InputError):  # policies made the object unreadable, which the decision reports
            member = read(decision.object, namespace=request.namespace, podgroups=groups)
            if member.share is not None and member.gangs:
                self._by_gang.setdefault(member.gangs[0].name, {})[member.name] = member

    def delete(self, name: str) -> None:
        """Removes the object NAMESPACE/KIND/NAME."""
        for gang in [gang for gang, members in self._by_gang.items() if name in members]:
            del self._by_gang[gang][name]
            if not self._by_gang[gang]:
                del self._by_gang[gang]
