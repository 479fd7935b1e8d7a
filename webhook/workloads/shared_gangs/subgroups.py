"""KAI's subgroups: parts of a PodGroup with their own size and topology constraint, which may be nested.

Source: `spec.subGroups[]` of scheduling.run.ai/v2alpha2, with `name`, `minMember`, `parent` and
`topologyConstraint`. Pods belong to subgroups without children. The constraint of a subgroup with children
applies to all pods below it together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from webhook.workloads.fields import Field
from webhook.workloads.keys.topology_keys import StatedTopology, request_of_constraint


@dataclass(frozen=True, slots=True)
class Part:
    """A subgroup without children: the number of pods that it starts with, and its request."""

    count: int
    request: StatedTopology


@dataclass(frozen=True, slots=True)
class Subgroups:
    """The subgroups of a PodGroup. `parts`: those without children, by name. `within`: levels, each with the
    parts required in one domain of it. `requests`: the requests of subgroups with children, without their
    constraints.
    """

    parts: Mapping[str, Part] = field(default_factory=dict)
    within: tuple[tuple[str, tuple[str, ...]], ...] = ()
    requests: tuple[StatedTopology, ...] = ()

    @property
    def size(self) -> int:
        """The number of pods that all parts start with."""
        return sum(part.count for part in self.parts.values())


NO_SUBGROUPS = Subgroups()


def subgroups(group: Field) -> Subgroups:
    """Returns the subgroups of a PodGroup object; none for a PodGroup of another kind.

    Raises `InputError`, naming the field, for a duplicate name, an unknown parent, or a cycle.
    """
    listed = {}
    for subgroup in group.get("spec", "subGroups").items():
        name = subgroup.get("name").text()
        if not name or name in listed:
            raise subgroup.get("name").error("names each subgroup, and no two alike")
        listed[name] = subgroup
    above = {name: _parents(name, listed) for name in listed}
    parents = {parent for names in above.values() for parent in names}
    below = {
        parent: tuple(n for n in listed if n not in parents and parent in above[n]) for parent in parents
    }
    wishes = {parent: request_of_constraint(listed[parent]) for parent in listed if parent in parents}
    return Subgroups(
        {
            name: Part(subgroup.get("minMember").count(1), request_of_constraint(subgroup))
            for name, subgroup in listed.items()
            if name not in parents
        },
        tuple(
            (request.constraint.required, below[name])
            for name, request in wishes.items()
            if request.constraint.required
        ),
        tuple(_of_several(name, request) for name, request in wishes.items()),
    )


def _parents(name: str, listed: Mapping[str, Field]) -> list[str]:
    """Returns the ancestors of a subgroup, the nearest first."""
    ancestors: list[str] = []
    while parent := listed[name].get("parent").text():
        field = listed[name].get("parent")
        if parent not in listed:
            raise field.error(f"{parent!r} is no subgroup of this PodGroup; it has {', '.join(listed)}")
        if parent in ancestors or len(ancestors) == len(listed):
            raise field.error(f"{parent!r} is above itself; leave the parent of one of them out")
        ancestors.append(parent)
        name = parent
    return ancestors


def _of_several(name: str, request: StatedTopology) -> StatedTopology:
    """Returns the request of a subgroup with children, without its constraint, which is in `within`.

    Its preferred level is ignored with a warning.
    """
    preferred = request.constraint.preferred
    notes = (f"the preferred level {preferred} of subgroup {name} is not followed; only a required one is",)
    return StatedTopology(origins=request.origins, warnings=notes if preferred else (), stated=request.stated)
