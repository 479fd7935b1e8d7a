"""Restricts a gang to the nodes of the flavors in which Kueue has admitted its pods. Pure.

For pods, pod groups, Deployments, StatefulSets and LeaderWorkerSets, Kueue removes a gate from each pod, and
writes the flavor's node labels and tolerations onto the pod alone (Kueue v0.19.2, pkg/podset/podset.go). The
gang is planned from the template of its object, which does not have them, so its place could be on nodes to
which its pods can never be bound. Jobs and other kinds that Kueue suspends have both in their template.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from planner.cluster.snapshot import Snapshot
from planner.model.labels import selects
from planner.model.pod import NodeSelection
from planner.model.podgroup import PodGroup, PodSet
from planner.model.reservation import Reservation, reservation_id
from planner.request.created_pods import as_admitted
from webhook.kube.state.gangs import Unbound

Selections = Mapping[str, Sequence[NodeSelection]]
"""By PodSet, the selections of its pods. A selection is the node selector and the tolerations of a pod."""


def of_pods(group: PodGroup, pods: Iterable[Unbound]) -> Selections:
    """Returns the distinct selections of a gang's unbound pods, without pods that Kueue has not admitted.

    The selection of a pod that names no PodSet counts for all PodSets: for example, the pods of a
    LeaderWorkerSet with one template for leader and workers name none. The selection of a pod that names a
    PodSet which `group` does not have counts for none. Such pods belong, for example, to an object that came
    late to a gang of several objects and has no place yet.
    """
    stated: dict[str, list[NodeSelection]] = {}
    for pod in pods:
        if pod.selection is not None and not pod.awaits_kueue:
            stated.setdefault(pod.pod_set, []).append(pod.selection)
    by_name = {name: _distinct(selections) for name, selections in stated.items()}
    of_all = by_name.get("", ())
    return {pod_set.name: _distinct((*by_name.get(pod_set.name, ()), *of_all)) for pod_set in group.pod_sets}


def _distinct(selections: Iterable[NodeSelection]) -> tuple[NodeSelection, ...]:
    """Returns each selection once: thousands of pods may have the same one, and callers compare every
    selection of a PodSet.
    """
    keyed = {(frozenset(own.node_selector.items()), own.tolerations): own for own in selections}
    return tuple(keyed.values())


def of_bound_pods(snapshot: Snapshot, group: PodGroup) -> Selections:
    """Returns the selections of a gang's bound pods. A `BoundPod` does not name its PodSet, so its selection
    counts for each PodSet whose pods have the same requests.
    """
    bound = list(snapshot.bound.of_gang(group.name, reservation_id(group.name)))
    group = as_admitted(snapshot, group)
    return {
        pod_set.name: [
            pod.selection
            for pod in bound
            if pod.selection is not None and pod.requests == pod_set.shape.requests
        ]
        for pod_set in group.pod_sets
    }


def outside_flavors(snapshot: Snapshot, held: Reservation, selections: Selections) -> dict[str, str]:
    """Returns the nodes of a reservation that do not suit a PodSet placed there, each with the reason as
    text: no selection of the PodSet has a node selector that matches the node. This happens if Kueue admits
    pods in another flavor than before.

    `selections`: those of the gang's unbound pods. Nodes with a bound pod of the gang are left out, because
    that pod stays.
    """
    standing = {pod.node for pod in snapshot.bound.of_gang(held.gang, held.id)}
    result: dict[str, str] = {}
    for seat in held.assignments:
        own, node = selections.get(seat.pod_set, ()), snapshot.nodes.get(seat.node)
        if not own or node is None or seat.node in standing:
            continue
        if not any(selects(selection.node_selector, node.labels) for selection in own):
            result[seat.node] = "not of its flavor in Kueue"
    return result


def within_flavors(group: PodGroup, selections: Selections) -> PodGroup:
    """Returns the gang with node labels and tolerations added to each PodSet: those that all selections of
    the PodSet have in common, because its pods may be in several flavors.
    """
    if not any(selections.values()):
        return group
    sets = (_within(pod_set, selections.get(pod_set.name, ())) for pod_set in group.pod_sets)
    return replace(group, pod_sets=tuple(sets))


def without_labels(group: PodGroup, selections: Selections) -> PodGroup:
    """Returns the gang with node selectors that lack the labels of its flavors (`selections`), because bound
    pods of the gang may be in another flavor, with other values of these labels.
    """

    def freed(pod_set: PodSet) -> PodSet:
        labels = {key for own in selections.get(pod_set.name, ()) for key in own.node_selector}
        selector = {key: value for key, value in pod_set.shape.node_selector.items() if key not in labels}
        return replace(pod_set, shape=replace(pod_set.shape, node_selector=selector))

    return replace(group, pod_sets=tuple(map(freed, group.pod_sets)))


def _within(pod_set: PodSet, selections: Sequence[NodeSelection]) -> PodSet:
    if not selections:
        return pod_set
    first, *others = selections
    labels = {
        key: value
        for key, value in first.node_selector.items()
        if all(other.node_selector.get(key) == value for other in others)
    }
    tolerations = (
        toleration
        for toleration in first.tolerations
        if all(toleration in other.tolerations for other in others)
    )
    shape = pod_set.shape
    shape = replace(
        shape,
        node_selector={**shape.node_selector, **labels},
        tolerations=tuple(dict.fromkeys((*shape.tolerations, *tolerations))),
    )
    return replace(pod_set, shape=shape)
