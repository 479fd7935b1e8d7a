"""The plan of a workload: the planner's answers for its gangs, and what follows from all of them. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from planner.cluster.snapshot import Snapshot
from planner.model.answer import Answer, Verdict
from planner.model.labels import Term
from planner.model.names import first_replicas, part_listed
from planner.model.podgroup import PodGroup
from planner.model.reservation import Reservation
from planner.planning.node_affinity import requirements
from webhook.workloads import asks_for_gpus

_GRAVITY: dict[Verdict, int] = {"admitted": 0, "queued": 1, "rejected": 2}


@dataclass(frozen=True, slots=True)
class GangPlan:
    """One gang with the planner's answer, and the reservation that it gets (None for none).

    `first`: the gang when the answer was first given, before policies pinned its pods to the place; None if
    that is `group`.
    """

    group: PodGroup
    answer: Answer
    reservation: Reservation | None = None
    first: PodGroup | None = None

    @property
    def asked(self) -> PodGroup:
        """The gang as it was when it got its first answer (`first`)."""
        return self.first or self.group

    @property
    def lacks_devices(self) -> bool:
        """Whether a PodSet that does not fit requests devices; all PodSets count if none is named as the
        cause."""
        at_fault = [s for s in self.group.pod_sets if s.name in self.answer.culprits] or self.group.pod_sets
        shapes = [pod_set.shape for pod_set in at_fault]
        return any(asks_for_gpus(shape) or shape.claims for shape in shapes)


@dataclass(frozen=True, slots=True)
class WorkloadPlan:
    """The answers for all gangs of one object. `snapshot`: the cluster with the reservations of the gangs.

    `whole`: the gangs contain everything that starts together. False for a pod of a larger group, and for
    pods that run independently. `preview`: the object creates no pods now, and holds nothing. `unplanned`:
    number of further gangs of the object, which are planned when their pods are created."""

    placed: tuple[GangPlan, ...]
    snapshot: Snapshot
    whole: bool = False
    preview: bool = False
    unplanned: int = 0

    @property
    def total(self) -> int:
        """How many gangs the object has."""
        return len(self.placed) + self.unplanned

    @property
    def proves_never(self) -> bool:
        """Whether a rejection proves that the object never runs while the cluster has its current nodes.

        It is no proof if only a part of what starts together is rejected, or if the pods request no devices,
        because nodes without devices come and go."""
        return (
            self.whole
            and all(placed.answer.decision == "rejected" for placed in self.placed)
            and all(placed.lacks_devices for placed in self.placed)
        )

    @property
    def decision(self) -> Verdict:
        """Rejected if any gang can never run; otherwise admitted if any gang can run now; otherwise queued.

        The gangs of one object, for example the replicas of a LeaderWorkerSet, share its pod template. If
        only some can start, the object is therefore admitted, and the pods of the others wait."""
        verdicts = [placed.answer.decision for placed in self.placed]
        if "rejected" in verdicts:
            return "rejected"
        return "admitted" if "admitted" in verdicts or not verdicts else "queued"

    @property
    def first(self) -> GangPlan:
        """The gang that determines the decision: the first whose own decision is that of the object."""
        return next(placed for placed in self.placed if placed.answer.decision == self.decision)

    @property
    def reservations(self) -> tuple[Reservation, ...]:
        """The reservations of the gangs, in the order of the gangs."""
        return tuple(placed.reservation for placed in self.placed if placed.reservation is not None)

    @property
    def gated(self) -> bool:
        """Whether the object's pods wait in Bayplan's queue, at the gate.

        They do if the object is queued and not suspended (`preview`), its `on-unavailable` is `queue`, and
        some gang waits for something other than new nodes or evictions: autoscalers add no node for a gated
        pod, and schedulers evict nothing for it.
        """
        waiting = [placed for placed in self.placed if placed.answer.decision == "queued"]
        return (
            self.decision == "queued"
            and not self.preview
            and self.first.group.on_unavailable == "queue"
            and not all(placed.answer.waits_ungated for placed in waiting)
        )

    def by_text(self, text_of: Callable[[GangPlan], str]) -> Iterator[tuple[str, list[str]]]:
        """Yields each text that `text_of` returns, except "", with the names of its gangs."""
        gangs: dict[str, list[str]] = {}
        for placed in self.placed:
            gangs.setdefault(text_of(placed), []).append(placed.group.name)
        yield from ((text, names) for text, names in gangs.items() if text)

    def listed(self, gangs: Sequence[str]) -> str:
        """Returns the names of some of the gangs, and how many of the object's gangs they are."""
        return part_listed(gangs, self.total)

    def each(self, gangs: Sequence[str]) -> str:
        """Returns these names (`listed`) as the beginning of a text that is about each of several gangs."""
        return f"{self.listed(gangs)}{', each' if len(gangs) > 1 else ''}"

    @property
    def domains(self) -> list[list[str]]:
        """The domains that the gangs hold whole, each once: gangs that reserve nothing yet share them."""
        reserved = (domain for placed in self.placed for domain in placed.answer.reserves)
        return [list(domain) for domain in dict.fromkeys(reserved)]

    def message(self) -> str:
        """Returns the planner's message, preceded by the number of gangs per decision if these differ."""
        counts = Counter(placed.answer.decision for placed in self.placed)
        message = self.first.answer.message
        if len(counts) > 1:
            shares = ", ".join(f"{counts[v]} {v}" for v in sorted(counts, key=lambda v: _GRAVITY[v]))
            replicas = first_replicas(self.first.group.name, len(self.placed), self.total)
            return f"of {replicas} {shares}: {message}"
        return message

    def terms(self) -> Mapping[str, tuple[Term, ...]]:
        """Returns the ORed node-selector terms that pin the pods to their placement, by PodSet name.

        The key "" has the terms of all PodSets."""
        terms: dict[str, dict[Term, None]] = {"": {}}
        for placed in self.placed:
            if placed.answer.decision == "admitted":
                for name, required in requirements(self.snapshot, placed.group, placed.answer).items():
                    terms[""].update(dict.fromkeys(required))
                    terms.setdefault(name, {}).update(dict.fromkeys(required))
        return {name: tuple(required) for name, required in terms.items()}
