"""Annotates workloads, above all with the places of their gangs. Pod templates stay as they are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from planner.model.answer import Answer
from planner.model.reservation import Reservation
from webhook.kube.api.client import Api, ApiError
from webhook.kube.controller.actions.place_notes import notes_of
from webhook.kube.controller.world import World
from webhook.kube.state.gangs import Ref
from webhook.kube.state.gathering import Gang
from webhook.placement.stamp import placement_note
from webhook.placement.workload_plan import GangPlan, WorkloadPlan
from webhook.workloads import KINDS
from webhook.workloads.keys.annotation_keys import PLACEMENT


async def note_place(api: Api, gang: Gang, place: Reservation | Answer, world: World) -> None:
    """Annotates the gang's workloads with the places of all of their gangs. Raises `ApiError`.

    `place`: the answer for a gang that is admitted and holds nothing; its workloads must not say any more
    that they wait, or it would stay in the queue. For a gang of several objects, each object that has pods in
    it is annotated.
    """
    if isinstance(place, Answer):
        note = placement_note(WorkloadPlan((GangPlan(gang.group, place),), world.snapshot))
        await annotate(api, gang.refs, {PLACEMENT: note})
        return
    book = world.snapshot.with_reservation(place)
    for ref in gang.refs:
        work = next((work for work in world.works if work.ref.uid == ref.uid), None)
        if work is None:
            continue
        groups = (gang.group,) if gang.members else work.gangs
        held = [(group, own) for group in groups if (own := book.holding(group.name)) is not None]
        await annotate(api, [ref], notes_of(book, held))


async def annotate(api: Api, refs: Iterable[Ref], notes: Mapping[str, str | None]) -> None:
    """Sets annotations on workloads, or removes those that are None; passes over a workload that does not
    exist. Raises `ApiError`.
    """
    for ref in refs:
        row = KINDS[(ref.api_version.rpartition("/")[0], ref.kind)]
        path = f"/apis/{ref.api_version}/namespaces/{ref.namespace}/{row.resource}/{ref.name}"
        try:
            await api.merge(path, {"metadata": {"annotations": notes}})
        except ApiError as error:
            if error.status != 404:
                raise
