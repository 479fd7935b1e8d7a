"""The share of one object in a gang of several objects. Pure."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from planner.model.podgroup import Constraint
from planner.model.quantity import amounts
from webhook.workloads.fields import Field
from webhook.workloads.options import Options
from webhook.workloads.shared_gangs.merge import name_and_shape, with_whole_gang
from webhook.workloads.shared_gangs.pod_groups import Membership
from webhook.workloads.workload import GangPart, GangShare, Workload


def with_share(workload: Workload, shared_gang: Membership, chosen: Options) -> Workload:
    """Returns the workload as a member of a gang of several objects, with placeholders for the others."""
    if not workload.gangs:
        return workload
    total = shared_gang.group.get("spec", "minResources") if shared_gang.group is not None else Field(None)
    stated = {name: GangPart(part.count, Constraint()) for name, part in chosen.gang_parts.items()}
    of_group = shared_gang.subgroups.parts.items()
    share = GangShare(
        shared_gang.size,
        workload.gangs[0].pod_sets,
        (),
        {**stated, **{name: GangPart(part.count, part.request.constraint) for name, part in of_group}},
        shared_gang.subgroups.within,
        chosen.gang_resources,
        {name: part.requests for name, part in chosen.gang_parts.items()},
        amounts(total.map(), total.where, up=True) or None,
        workload.gangs[0].warnings,
    )
    # If a part has several shapes, `merge` renames its PodSets; "" says that its templates serve all of them.
    shapes = Counter(name for name, _ in set(map(name_and_shape, share.own)))
    templates = tuple(replace(t, pod_set="") if shapes[t.pod_set] > 1 else t for t in workload.templates)
    workload = replace(workload, share=share, templates=templates)
    return with_whole_gang(workload, [workload])
