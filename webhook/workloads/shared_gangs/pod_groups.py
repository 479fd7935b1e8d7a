"""The gang that a single pod belongs to, in the keys of every scheduler."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from planner.model.errors import Where
from webhook.workloads.fields import Field
from webhook.workloads.options import GANG, Options
from webhook.workloads.shared_gangs.subgroups import NO_SUBGROUPS, Subgroups, subgroups

PodGroups = Mapping[tuple[str, str], Mapping[str, object]]
"""Known PodGroup and Workload objects by (namespace, name)."""


KAI_GROUP = "pod-group-name"

GROUP_ANNOTATIONS = (KAI_GROUP, "scheduling.run.ai/pod-group", "scheduling.k8s.io/group-name")
"""The annotations of KAI, of Run:ai's older recipe, and of Volcano and the coscheduling plug-in."""

KUEUE_GROUP = "kueue.x-k8s.io/pod-group-name"

KUEUE_TOTAL = "kueue.x-k8s.io/pod-group-total-count"

SUBGROUPS = ("kai.scheduler/subgroup-name", "scheduling.run.ai/topology-role")
"""Labels or annotations that name the pod's part in its gang: prefill, decode, worker."""

REFERENCES = (("workloadRef", "name"), ("schedulingGroup", "podGroupName"))
"""Fields of a pod's spec that name its gang (Kubernetes 1.35 and 1.36)."""

MAIN = "main"
"""The PodSet of pods that state no part."""

OTHERS = "others"
"""The PodSet of members that are known only by number."""

_MINIMUM = (
    ("minMember",),
    ("minCount",),
    ("schedulingPolicy", "gang", "minCount"),
    ("policy", "gang", "minCount"),
)
"""The fields of PodGroups that state how many pods start together: KAI, Run:ai and Volcano; Kubernetes since
1.36.
"""


JOINED_KINDS = ("Gang", "PodGroup", "Workload")
"""The kinds in gang names (NAMESPACE/KIND/NAME) of gangs that pods join."""


POD_GANGS = ("Pod", *JOINED_KINDS)
"""The kinds in names of gangs that exist as long as their pods do."""


@dataclass(frozen=True, slots=True)
class Membership:
    """A gang's KIND/NAME, its size in pods, and its PodGroup object if known.

    `name` is "" if the size is unknown. Each pod is then planned as a gang under the pod's own name: two pods
    planned under the gang's name would both get the place of the first. `subgroups`: those of KAI's PodGroup.
    """

    name: str = ""
    size: int = 1
    group: Field | None = None
    warnings: tuple[str, ...] = ()
    subgroups: Subgroups = NO_SUBGROUPS


def membership(
    metadata: Field, spec: Field, chosen: Options, namespace: str, groups: PodGroups
) -> Membership | None:
    """Returns the gang that a pod names, None for an independent pod. Raises `InputError` for a bad name."""
    if chosen.gang:
        return _own(chosen)
    if _names_none(metadata, spec):
        return None
    name = _group_name(metadata, spec)
    if name:
        return _of_group(f"PodGroup/{name}", _find(groups, namespace, name), name)
    reference = spec.get("workloadRef")
    if reference.get("name").text():
        return _of_workload(reference, namespace, groups)
    return _kueue(metadata)


_KEYS = (*GROUP_ANNOTATIONS, KUEUE_GROUP)
_GROUP_KEYS = frozenset(_KEYS)
_KEY_PARTS = ("labels", "annotations")
_REFERENCES = frozenset(field for field, _ in REFERENCES)


def _names_none(metadata: Field, spec: Field) -> bool:
    """Returns whether no key or field names a gang."""
    if any(metadata.has(part) and not metadata.get(part).lacks(_GROUP_KEYS) for part in _KEY_PARTS):
        return False
    return spec.lacks(_REFERENCES)


def names_group(metadata: Field, spec: Field) -> bool:
    """Returns whether a template names a gang for its pods by a scheduler's key or field (for example a
    PodGroup).
    """
    if _names_none(metadata, spec):
        return False
    by_key = any(metadata.get(place, key).text() for key in _KEYS for place in ("labels", "annotations"))
    return by_key or any(spec.get(*reference).text() for reference in REFERENCES)


def names_own_gang(metadata: Field) -> bool:
    """Returns whether a template names a gang for its pods by the annotation `bayplan.dev/gang`."""
    return bool(metadata.get("annotations", GANG).text())


def groups_named(metadata: Field, spec: Field) -> frozenset[str]:
    """Returns the names of the PodGroup and Workload objects that pods of a template may belong to."""
    annotations = (metadata.get("annotations", key).text() for key in GROUP_ANNOTATIONS)
    fields = (spec.get(*reference).text() for reference in REFERENCES)
    label = metadata.get("labels", GROUP_ANNOTATIONS[1]).text()
    return frozenset(name for name in (*annotations, label, *fields) if name)


def joinable(groups: PodGroups) -> PodGroups:
    """Returns the groups that users wrote for objects to join.

    A group with an owner was created by a scheduler for the pods of an existing object (KAI's podgrouper):
    its gang is that object's.
    """
    return {name: group for name, group in groups.items() if not _owned(group)}


def _owned(group: Mapping[str, object]) -> bool:
    metadata = group.get("metadata")
    return isinstance(metadata, Mapping) and bool(metadata.get("ownerReferences"))


def subgroup(metadata: Field) -> str:
    """Returns the name of a pod's PodSet in its gang; "main" if it states none."""
    stated = (metadata.get(place, key).text() for key in SUBGROUPS for place in ("labels", "annotations"))
    return next((name for name in stated if name), MAIN)


def _alone(why: str) -> Membership:
    return Membership(warnings=(f"{why}: this pod is planned as a gang of 1",))


def _own(chosen: Options) -> Membership:
    if chosen.gang_size is None:
        return _alone(f'gang "{chosen.gang}" has no bayplan.dev/gang-size')
    return Membership(f"Gang/{chosen.gang}", chosen.gang_size)


def _group_name(metadata: Field, spec: Field) -> str:
    names = [metadata.get("annotations", key).name() for key in GROUP_ANNOTATIONS]
    names.append(metadata.get("labels", GROUP_ANNOTATIONS[1]).name())
    names.append(spec.get("schedulingGroup", "podGroupName").name())
    return next((name for name in names if name), "")


def _find(groups: PodGroups, namespace: str, name: str) -> Field | None:
    group = groups.get((namespace, name))
    return None if group is None else Field(group, (), Where(object=f"{namespace}/{name}"))


def _of_group(gang: str, group: Field | None, name: str) -> Membership:
    if group is None:
        return _alone(f'PodGroup "{name}" is not known here')
    parts = subgroups(group)
    return Membership(gang, max(_minimum(group.get("spec")), parts.size), group, subgroups=parts)


def _minimum(spec: Field) -> int:
    return next((n for place in _MINIMUM if (n := spec.get(*place).count(0))), 1)


def _of_workload(reference: Field, namespace: str, groups: PodGroups) -> Membership:
    """Reads `spec.workloadRef` (Kubernetes 1.35): a named pod group in a Workload (scheduling.k8s.io)."""
    name, part = reference.get("name").name(), reference.get("podGroup").name()
    gang = f"Workload/{name}/{part}" if part else f"Workload/{name}"
    workload = _find(groups, namespace, name)
    if workload is None:
        return _alone(f'Workload "{name}" is not known here')
    for group in workload.get("spec", "podGroups").items():
        if group.get("name").text() == part:
            return Membership(gang, _minimum(group))
    return _alone(f'Workload "{name}" has no pod group "{part}"')


def _kueue(metadata: Field) -> Membership | None:
    name = metadata.get("labels", KUEUE_GROUP).name() or metadata.get("annotations", KUEUE_GROUP).name()
    if not name:
        return None
    total = metadata.get("annotations", KUEUE_TOTAL).count_in_text()
    if total is None:
        return _alone(f'pod group "{name}" has no {KUEUE_TOTAL}')
    return Membership(f"PodGroup/{name}", total)
