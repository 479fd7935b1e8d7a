"""Says in an answer that policies, and not the object, require a level."""

from __future__ import annotations

from dataclasses import replace

from planner.model.podgroup import PodGroup
from webhook.placement.workload_plan import GangPlan, WorkloadPlan
from webhook.workloads import Workload
from webhook.workloads.keys.topology_keys import PREFERRED_LEVEL, REQUIRED_LEVEL

_OWN_LEVEL = f"the object states none, and a level in {PREFERRED_LEVEL} or {REQUIRED_LEVEL} replaces it"


def with_level_of_policies(plan: WorkloadPlan, original: Workload) -> WorkloadPlan:
    """Returns the plan; if a gang without a place requires a level only because policies added it, the
    answer says so. `original` is read from the object before policies changed it.

    Without that, its author would be told to leave out a level that the object does not have."""
    own = {group.name for group in original.gangs if not _required_levels(group)}

    def explained(gang_plan: GangPlan) -> GangPlan:
        answer, added = gang_plan.answer, _required_levels(gang_plan.asked)
        if answer.decision == "admitted" or gang_plan.group.name not in own or not added:
            return gang_plan
        words = f"Policies added the required level {' and '.join(added)}: {_OWN_LEVEL}."
        return replace(gang_plan, answer=replace(answer, message=f"{answer.message} {words}"))

    return replace(plan, placed=tuple(map(explained, plan.placed)))


def _required_levels(group: PodGroup) -> list[str]:
    constraints = (group.constraint, *(pod_set.constraint for pod_set in group.pod_sets))
    return list(dict.fromkeys(constraint.required for constraint in constraints if constraint.required))
