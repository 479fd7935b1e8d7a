"""Reads a manifest as a workload: its pod templates, its gangs, and how they are planned. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from planner.model.errors import InputError, InputErrors, Where
from planner.model.podgroup import PodGroup
from webhook.jsontools.path import Path
from webhook.workloads.controllers import ObjectController, controller_in
from webhook.workloads.fields import Field
from webhook.workloads.gangs import PodSetRequest, asks_for_gpus, gangs, without_gang
from webhook.workloads.implied_labels import implied_labels
from webhook.workloads.keys.topology_keys import (
    NOTHING_STATED,
    OBJECT,
    OBJECT_AND_TEMPLATE,
    StatedTopology,
    merged,
    read_request,
    request_of_pod_group,
    requests_of_older_recipe,
)
from webhook.workloads.kinds import WorkloadKind, row_of
from webhook.workloads.layouts.grouping import grouped
from webhook.workloads.layouts.layout import PodSetKey, PodSetTemplate, WorkloadLayout
from webhook.workloads.left_alone import is_left_alone, is_placed_by_kueue, is_placeholder, is_run_elsewhere
from webhook.workloads.options import Options, options
from webhook.workloads.queues import KAI_QUEUE, KUEUE_QUEUE, first_label, following
from webhook.workloads.read_templates import ReadTemplates
from webhook.workloads.shared_gangs.pod_groups import (
    Membership,
    PodGroups,
    membership,
    names_group,
    names_own_gang,
)
from webhook.workloads.shared_gangs.shares import with_share
from webhook.workloads.shared_gangs.subgroups import NO_SUBGROUPS
from webhook.workloads.workload import NO_PODS, Template, Workload


def read(
    obj: Mapping[str, Any],
    *,
    namespace: str = "default",
    request_uid: str = "",
    where: Where | None = None,
    podgroups: PodGroups | None = None,
    templates: ReadTemplates | None = None,
) -> Workload:
    """Reads any object; an object of an unknown kind is a Workload without templates or gangs.

    `namespace`: for an object without one. `request_uid`: gives a name to an object with only a generateName.
    `podgroups`: PodGroup objects that pods may refer to. `templates`: the cache of an earlier reading of the
    same object. Raises `InputError`, naming the field, for a malformed object of a known kind."""
    api_version, kind = obj.get("apiVersion"), obj.get("kind")
    if not isinstance(api_version, str) or not isinstance(kind, str):
        return Workload()
    row = row_of(api_version, kind)
    if row is None:
        return Workload()
    try:
        reader = _Reader(obj, row, namespace, request_uid, where or Where(), podgroups or {})
        return reader.workload(templates or ReadTemplates())
    except RecursionError:
        raise InputError("is nested too deeply", where) from None


def pod_templates(obj: Mapping[str, Any]) -> tuple[Template, ...]:
    """Returns the templates that `read` finds, of pods in any form, without reading what their pods request.
    Raises `InputError` if an object of a known kind has malformed templates."""
    api_version, kind = obj.get("apiVersion"), obj.get("kind")
    row = row_of(api_version, kind) if isinstance(api_version, str) and isinstance(kind, str) else None
    if row is None:
        return ()
    return _templates(row.layout(Field(obj, (), Where())))


def wants_plan(workload: Workload) -> bool:
    """Returns whether the object is planned: a pod requests GPUs, MIG slices or a device claim, or there is a
    topology or bayplan.dev key. Claims count whatever their DeviceClass, which another object names."""
    if not workload.gangs or workload.skip:
        return False
    shapes = (pod_set.shape for group in workload.gangs for pod_set in group.pod_sets)
    return workload.asks or workload.claims or any(asks_for_gpus(shape) for shape in shapes)


# Like `Field`, not frozen: each reading of an object creates one. Never modified.
@dataclass(slots=True)
class _Grouping:
    """Which pods of an object start together, and what the object states for them.

    `gang`: what the pods name. `loose`: each pod starts by itself, though the object's kind could start them
    together. `together`: `bayplan.dev/gang` makes one gang of pods that otherwise start by themselves.
    """

    layout: WorkloadLayout
    chosen: Options
    top: StatedTopology
    gang: Membership | None
    loose: bool
    together: bool

    @property
    def shared_gang(self) -> Membership | None:
        """The gang of several objects to which the object belongs; None for gangs of its own."""
        return self.gang if self.gang is not None and self.gang.name else None


class _Reader:
    """Reads one object of a known kind; `workload` returns the result."""

    def __init__(
        self,
        obj: Mapping[str, Any],
        row: WorkloadKind,
        namespace: str,
        uid: str,
        where: Where,
        groups: PodGroups,
    ) -> None:
        self.row = row
        plain = Field(obj, (), where)
        self.metadata = plain.get("metadata")
        self.namespace = self.metadata.get("namespace").name() or namespace
        self.name = _name(self.metadata, uid)
        label = where.object or f"{self.namespace}/{row.name}/{self.name}"
        self.obj = Field(obj, (), Where(where.file, label, where.field))
        self.metadata = self.obj.get("metadata")
        self.groups = groups

    def workload(self, read_templates: ReadTemplates) -> Workload:
        row, grouping = self.row, self._grouping()
        layout, gang, shared_gang = grouping.layout, grouping.gang, grouping.shared_gang
        controller = controller_in(self.metadata, self.namespace)
        of_gang = shared_gang is not None and shared_gang.group is None
        sets = _of_subgroups(self._shapes(layout, read_templates, of_gang=of_gang), gang)
        child, labelled = self._is_child(controller, layout), self._labelled(layout)
        templates = _templates(layout)
        suspended = bool(row.suspend) and self.obj.get(*row.suspend).flag()
        queue = self.metadata.get("labels", KUEUE_QUEUE).text()
        workload = Workload(
            kind=row.name,
            name=f"{self.namespace}/{row.name}/{self.name}",
            templates=tuple(template for template in templates if template.is_pod_template),
            inlined=tuple(template for template in templates if not template.is_pod_template),
            gangs=() if child else self._gangs(grouping, sets, labelled),
            planned_elsewhere=NO_PODS if child else _planned_elsewhere(grouping, sets),
            unplanned=layout.unplanned,
            per_pod=grouping.loose or (row.each_pod and not grouping.together),
            skip=grouping.chosen.skip or self._is_left_alone(controller, layout),
            holds=(row.holds or grouping.together) and not (child or grouping.loose or suspended),
            suspended=suspended,
            kueue=f"{self.namespace}/{queue}" if queue else "",
            suspends=bool(row.suspend),
            template_immutable=row.template_immutable,
            owner=controller.name,
            owner_has_templates=controller.has_templates,
            owner_suspends=controller.suspends,
            asks=_states_anything(grouping, sets),
            claims=any(part.claims for part in sets.values()),
            queue=gang.group.get("spec", "queue").text() if gang and gang.group else "",
            kai_queue=first_label(labelled, KAI_QUEUE),
        )
        return workload if shared_gang is None else with_share(workload, shared_gang, grouping.chosen)

    def _grouping(self) -> _Grouping:
        row, layout = self.row, self.row.layout(self.obj)
        chosen = self._options(layout)
        gang = self._membership(layout, chosen)
        if gang is not None and gang.group is not None:
            of_templates = () if row.name == "Pod" else (template.metadata for template in layout.templates)
            chosen = options(self.metadata, *of_templates, gang.group.get("metadata"))
        top, is_part = self._top(gang, layout), gang is not None and bool(gang.name)
        together = row.each_pod and bool(chosen.gang) and not is_part
        loose = layout.loose and not (
            chosen.together or top.stated or any(map(_says_together, layout.templates))
        )
        layout = grouped(layout, chosen, loose=loose, together=together, is_part=is_part)
        return _Grouping(layout, chosen, top, gang, loose, together)

    def _gangs(
        self, grouping: _Grouping, sets: dict[PodSetKey, PodSetRequest], labelled: list[Field]
    ) -> tuple[PodGroup, ...]:
        shared_gang, layout = grouping.shared_gang, grouping.layout
        name = f"{self.namespace}/{shared_gang.name if shared_gang else f'{self.row.name}/{self.name}'}"
        within = shared_gang.subgroups.within if shared_gang else ()
        owner = f"{self.namespace}/{self.name}"
        own = gangs(layout, name, grouping.chosen, grouping.top, sets, within, owner=owner)
        return following(own, labelled, [template.spec for template in layout.templates])

    def _is_child(self, controller: ObjectController, layout: WorkloadLayout) -> bool:
        """Returns whether the object has no gangs.

        An object whose controller has gangs (a JobSet's Job) is part of those, and a pod with `nodeName` has
        its node. A pod of such a controller is planned if it names no reservation.
        """
        if controller.has_gangs and self.row.name != "Pod":
            return True
        return bool(layout.templates) and all(t.spec.get("nodeName").text() for t in layout.templates)

    def _options(self, layout: WorkloadLayout) -> Options:
        """Returns the options that the object and its templates state. Raises `InputError` with all invalid
        ones, and with the invalid topology keys."""
        metadata = (self.metadata, *(template.metadata for template in layout.templates))
        try:
            return options(*metadata)
        except InputError:
            errors = InputErrors()
            errors.read(lambda: options(*metadata), Options())
            for part in metadata:
                errors.read(partial(read_request, OBJECT_AND_TEMPLATE, part), NOTHING_STATED)
            errors.raise_any()
            raise

    def _is_left_alone(self, controller: ObjectController, layout: WorkloadLayout) -> bool:
        """Returns whether the pods are not planned: system pods, pause pods, and pods that Kueue places or
        runs in another cluster."""
        return (
            is_left_alone(self.namespace, controller.kind)
            or is_run_elsewhere(self.obj.get("spec"))
            or (
                bool(layout.templates)
                and all(is_placeholder(m.spec.map(), m.spec.where) for m in layout.templates)
            )
            or any(
                is_placed_by_kueue(template.spec.get("schedulingGates"))
                for template in layout.templates
                if template.spec.has("schedulingGates")
            )
        )

    def _labelled(self, layout: WorkloadLayout) -> list[Field]:
        """Returns the metadata of the object and its templates that have labels, in order."""
        parts = (self.metadata, *(template.metadata for template in layout.templates))
        return [metadata for metadata in parts if metadata.has("labels")]

    def _top(self, gang: Membership | None, layout: WorkloadLayout) -> StatedTopology:
        """Returns the topology request of the whole object; its keys take precedence over its PodGroup's."""
        own = self.row.name == "Pod"
        requests = [read_request(OBJECT_AND_TEMPLATE if own else OBJECT, self.metadata)]
        placed = [self.metadata] if own else [template.metadata for template in layout.templates]
        requests += [request for metadata in placed for request in requests_of_older_recipe(metadata)]
        if gang is not None:
            if gang.name and gang.group is None and not own:
                templates = (template for template in layout.templates if names_own_gang(template.metadata))
                requests += [template.request for template in templates]
            requests.append(StatedTopology(warnings=gang.warnings))
            requests += gang.subgroups.requests
            if gang.group is not None:
                requests.append(request_of_pod_group(gang.group))
        return merged(requests)

    def _membership(self, layout: WorkloadLayout, chosen: Options) -> Membership | None:
        """Returns the gang of several objects that the pods name, if it is known; None for gangs of their
        own.

        Replicas that are each a gang, and gangs that start together in several domains, join no other gang.
        """
        if self.row.name == "Pod":
            return membership(self.metadata, self.obj.get("spec"), chosen, self.namespace, self.groups)
        if not self.row.each_pod and len(layout.gangs) != 1:
            return None
        size = sum(template.count for gang in layout.gangs for template in gang)
        # Pods of a Deployment or StatefulSet join a gang only if their template names it.
        joins = not self.row.each_pod or any(
            names_own_gang(template.metadata) for template in layout.templates
        )
        if chosen.gang and joins and (chosen.gang_size or 0) > size:
            return membership(self.metadata, self.obj.get("spec"), chosen, self.namespace, self.groups)
        for template in layout.templates:
            shared_gang = membership(
                template.metadata,
                template.spec,
                options(template.metadata),
                self.namespace,
                self.groups,
            )
            if shared_gang is not None and shared_gang.group is not None:
                # An object that creates all pods is itself the gang: it has the reservation while it exists.
                alone = shared_gang.size <= size and not self.row.each_pod
                return replace(shared_gang, name="", subgroups=NO_SUBGROUPS) if alone else shared_gang
        return None

    def _shapes(
        self, layout: WorkloadLayout, read_templates: ReadTemplates, *, of_gang: bool
    ) -> dict[PodSetKey, PodSetRequest]:
        """Returns the PodSets by their keys.

        `of_gang`: the PodSets belong to a `bayplan.dev/gang` of several objects. The topology keys of a
        template that names this gang apply to the whole gang, and were read already."""
        templates = {template.key: template for gang in layout.gangs for template in gang}
        # Templates that start no pod are read too, so that their errors are reported.
        for template in layout.templates:
            templates.setdefault(template.key, template)
        own = self.row.name == "Pod"
        name, kind = self.metadata.get("name").text(), self.row.name
        return {
            key: read_templates.pod_set_request(
                template,
                own or (of_gang and names_own_gang(template.metadata)),
                implied_labels(kind, name, template.pod_set),
                name,
            )
            for key, template in templates.items()
        }


def _planned_elsewhere(grouping: _Grouping, sets: dict[PodSetKey, PodSetRequest]) -> PodGroup:
    """Returns the pods of an object whose layout has no gangs."""
    if grouping.layout.gangs or not sets:
        return NO_PODS
    return without_gang([*sets.values()], grouping.chosen, grouping.top)


def _states_anything(grouping: _Grouping, sets: dict[PodSetKey, PodSetRequest]) -> bool:
    """Returns whether the object or a template has a topology key or a key of Bayplan."""
    if grouping.chosen.stated or grouping.top.stated:
        return True
    return any(part.request.stated for part in sets.values())


def _says_together(template: PodSetTemplate) -> bool:
    """Returns whether a template asks for a topology, or names a gang for its pods."""
    if names_group(template.metadata, template.spec):
        return True
    return template.request.stated


def _name(metadata: Field, uid: str) -> str:
    name = metadata.get("name").name()
    if name:
        return name
    prefix = metadata.get("generateName").text()
    if not prefix:
        raise metadata.get("name").error("is missing, and generateName too; give the object a name")
    Field(prefix.rstrip("-."), (*metadata.path, "generateName"), metadata.root).name()
    return prefix + hashlib.sha256(uid.encode("utf-8", "surrogatepass")).hexdigest()[:8]


def _of_subgroups(
    sets: dict[PodSetKey, PodSetRequest], gang: Membership | None
) -> dict[PodSetKey, PodSetRequest]:
    """Returns the PodSets with the requests of the subgroups of the same names."""
    parts = gang.subgroups.parts if gang else {}
    return {
        key: replace(
            part,
            pod_set=replace(part.pod_set, constraint=parts[key[0]].request.constraint),
            request=parts[key[0]].request,
        )
        if key[0] in parts
        else part
        for key, part in sets.items()
    }


def _templates(layout: WorkloadLayout) -> tuple[Template, ...]:
    templates: dict[Path, Template] = {}
    for template in layout.templates:
        path, name, count = template.template.path, template.pod_set, template.count
        if (other := templates.get(path)) is not None:
            # One template for leader and workers: only their index distinguishes their pods.
            name = other.pod_set if not count else ""
            count += other.count
        templates[path] = Template(path, name, count, template.metadata.path, template.spec.path)
    return tuple(templates.values())
