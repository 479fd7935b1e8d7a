"""Prints the result of `bayplan plan`: the table of gangs, their estimated bandwidth, and explanations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby

from rich.console import Console
from rich.text import Text

from planner.bandwidth.baseline import RULE
from planner.bandwidth.comparison import BandwidthComparison, GangLayout, compare_with_blind, placed
from planner.bandwidth.words import milliseconds, ratio
from planner.cluster.snapshot import Snapshot
from planner.explain.obstacles import by_object
from planner.model.answer import Answer, LevelAttempt
from planner.model.names import gangs_listed, object_of, part_listed
from planner.model.podgroup import PodGroup
from planner.model.topology import HOSTNAME, Domain
from planner.model.words import counted, listed
from planner.planning.details import Details, details
from webhook.placement.rank_order import ranks, runs
from webhook.report.printable import printable_name
from webhook.report.terminal import console, folded, table, width

_COLOURS = {"admitted": "green", "queued": "yellow", "rejected": "red"}


@dataclass(frozen=True, slots=True)
class PlannedGang:
    """A gang, the planner's answer, the cluster on which the gang was planned, and how many gangs its object
    has in `total`.

    `not_by_webhook`: why the webhook would not plan the gang, "" if it would.
    """

    answer: Answer
    group: PodGroup
    snapshot: Snapshot
    total: int
    not_by_webhook: str = ""

    @property
    def placed(self) -> PodGroup:
        """The gang with the number of pods that are placed; elastic gangs may get fewer than they request."""
        return placed(self.group, self.answer)

    def comparison(self) -> BandwidthComparison | None:
        """Returns the estimated all-reduce time of the placement and of a topology-blind one; None if
        there is nothing to compare.
        """
        return compare_with_blind(self.snapshot, self.placed, self.answer)

    def account(self) -> Details | None:
        """Returns how the answer was found: how many pods fit at each level, and why nodes are unusable.
        None if the request contradicts itself.
        """
        asked = self.placed if self.answer.assignments else self.group
        return details(self.snapshot, asked, self.answer)

    def to_json(self) -> dict[str, object]:
        """Returns the gang's entry in `-o json`: the keys of `Answer.to_json`; `search` (see `account`)
        unless the request contradicts itself; and `allReduce` (see `comparison`) if there is something to
        compare.
        """
        value, details = self.comparison(), self.account()
        search = {"search": details.to_json()} if details else {}
        return self.answer.to_json() | search | ({"allReduce": value.to_json()} if value else {})


def show(planned_gangs: Sequence[PlannedGang], *, explain: bool) -> None:
    """Prints the gangs as a table. `explain`: also prints how each answer was found.

    Successive replicas of an object share a row if each is on one host of the same rack, or none has a place.
    Successive gangs share an explanation if it is the same, and equal replicas on one host each that of the
    first of them.
    """
    out = console()
    if not planned_gangs:
        out.print("no gang in these manifests asks for anything that can be planned")
        return
    rows = [_row([planned.answer for planned in batch]) for batch in _batches(planned_gangs, _row_key)]
    out.print(table(("gang", "decision", "domain", "reserves", "pods"), rows))
    if not explain:
        _worths(out, planned_gangs)
    for batch in _batches(planned_gangs, partial(_explanation_key, explain=explain)):
        answer = batch[0].answer
        if answer.decision != "admitted" or answer.warnings or explain:
            reasons = listed(list(dict.fromkeys(planned.answer.reason for planned in batch)))
            out.print(f"\n{_names(batch)}{', each' if len(batch) > 1 else ''}: {reasons}")
            differ = any(planned.answer.message != answer.message for planned in batch)
            _print_text(out, f"the first: {answer.message}" if differ else answer.message)
        for warning in answer.warnings:
            _print_text(out, f"warning: {warning}")
        if explain:
            _explain(out, batch[0])


def _batches(
    planned_gangs: Sequence[PlannedGang], key: Callable[[PlannedGang], object]
) -> list[list[PlannedGang]]:
    """Returns the gangs in order; successive ones for which `key` returns the same are in one list."""
    return [list(batch) for _, batch in groupby(planned_gangs, key)]


def _row_key(planned: PlannedGang) -> object:
    answer = planned.answer
    row = object_of(answer.gang) or answer.gang, answer.decision, answer.holds, _around_host(answer)
    return (answer.gang, *row) if answer.assignments and answer.level != HOSTNAME else row


def _explanation_key(planned: PlannedGang, *, explain: bool) -> object:
    answer = planned.answer
    if answer.assignments and answer.level == HOSTNAME and (owner := object_of(answer.gang)):
        pod_sets = tuple((pod_set.name, pod_set.count) for pod_set in planned.group.pod_sets)
        return owner, pod_sets, answer.holds, answer.warnings
    # Equal gangs have the same search in the same snapshot. Comparing searches would take one for each gang.
    searched = (id(planned.snapshot), replace(planned.group, name="")) if explain else ()
    return answer.decision, answer.message, answer.warnings, searched


def _names(batch: Sequence[PlannedGang]) -> str:
    """Returns the gangs' names; for replicas of one object, with their share of all its replicas."""
    gangs = [planned.answer.gang for planned in batch]
    owner = object_of(gangs[0])
    of_owner = owner and all(object_of(gang) == owner for gang in gangs)
    return part_listed(gangs, batch[0].total) if of_owner else gangs_listed(gangs)


def _row(answers: Sequence[Answer]) -> tuple[str | Text, ...]:
    """Returns a row of the table for replicas with the same `_row_key`, or for one gang."""
    answer = answers[0]
    domains = {other.domain for other in answers}
    domain = path(answer.domain if len(domains) == 1 else _around_host(answer))
    whole = f"(all of {answer.topology or 'the cluster'})" if answer.assignments else "–"
    reserves = list(dict.fromkeys(domain for other in answers for domain in other.reserves))
    held = ", ".join(map(path, reserves)) if len(domains) == 1 else _nodes(len(reserves))
    pods: Counter[tuple[str, str]] = Counter()
    for assignment in (assignment for other in answers for assignment in other.assignments):
        pods[assignment.pod_set, assignment.node] += assignment.count
    return (
        gangs_listed([other.gang for other in answers]),
        Text(answer.decision, _COLOURS[answer.decision]),
        domain or whole,
        held if reserves else "what it uses" if answer.holds == "nodes" else "–",
        _pods(pods),
    )


def _around_host(answer: Answer) -> Domain:
    """Returns the domain of a gang; for a gang on one host, the domain in which the host is."""
    return answer.domain[:-1] if answer.level == HOSTNAME else answer.domain


def _print_text(out: Console, text: str) -> None:
    """Prints a message with an indent; on a terminal, folded to its width."""
    out.print(folded(text, "  ", width(out)) if out.is_terminal else f"  {text}")


def path(domain: Domain) -> str:
    """Returns a domain as text, such as `zone-a/rack-3`; "" for the whole topology."""
    return printable_name("/".join(part for part in domain if part))


def _pods(counts: Mapping[tuple[str, str], int]) -> str:
    """Returns text for numbers of pods by PodSet and node."""
    first = [f"{count}×{pod_set} on {node}" for (pod_set, node), count in list(counts.items())[:4]]
    nodes = len({node for _, node in counts})
    return ", ".join(first) + (f", … ({_nodes(nodes)})" if len(counts) > 4 else "")


def _worths(out: Console, planned_gangs: Sequence[PlannedGang]) -> None:
    """Prints the all-reduce times of each gang of several pods with GPUs, the name of the model, and the
    rule of the topology-blind placement.
    """
    worths = [
        (planned, value)
        for planned in planned_gangs
        if planned.group.size > 1 and (value := planned.comparison())
    ]
    if not worths:
        return
    figures = [
        (
            object_of(planned.answer.gang) or planned.answer.gang,
            _time(value.placement),
            _baseline_words(planned.placed, value),
            value.placement.rates.words,
        )
        for planned, value in worths
    ]
    names = (planned.answer.gang for planned, _ in worths)
    batches = [[*batch] for _, batch in groupby(zip(figures, names, strict=True), lambda pair: pair[0])]
    rows = [(gangs_listed([name for _, name in batch]), *batch[0][0][1:]) for batch in batches]
    out.print()
    out.print(table(("all-reduce of 1 GB", "here", "topology-blind", "links"), rows))
    out.print(f"  model: {worths[0][1].placement.estimate.model}; topology-blind: {RULE}")


def _time(layout: GangLayout) -> str:
    return f"{milliseconds(layout)}, {layout.estimate.bus_bandwidth:.0f} GB/s, {_nodes(layout.nodes)}"


def _baseline_words(group: PodGroup, value: BandwidthComparison) -> str:
    if value.baseline is None:
        return f"finds room for {value.baseline_pods} of {group.size} pods"
    times = ratio(value.baseline, value.placement)
    return f"{_time(value.baseline)}{f' ({times})' if times else ''}"


def _nodes(count: int) -> str:
    return counted(count, "node")


def _explain(out: Console, planned: PlannedGang) -> None:
    """Prints the levels of the search, the unusable nodes by cause, the nearest requests that would be
    admitted, the ranks of pods by node, and the estimated bandwidth.
    """
    answer, details = planned.answer, planned.account()
    if details is not None:
        _tree(out, answer, details)
        _left_out(out, answer.gang, details)
        if answer.reason != "WaitsForAll":  # the requests are tried for this gang alone, which has room
            out.print(f"  nearest request admitted now: {' or '.join(details.admitted_now) or 'none'}")
            out.print(f"  nearest request ever admitted: {' or '.join(details.admitted_if_empty) or 'none'}")
    for pod_set in dict.fromkeys(assignment.pod_set for assignment in answer.assignments):
        laid = [f"{_span(first, last)} on {node}" for first, last, node in runs(ranks(answer, pod_set))]
        out.print(f"  ranks of {pod_set}: {listed(laid)}")
    if value := planned.comparison():
        baseline = _baseline_words(planned.placed, value)
        out.print(f"  all-reduce of 1 GB: {_time(value.placement)}; topology-blind ({RULE}): {baseline}")
        out.print(f"    by the model: {value.placement.estimate.model}; {value.placement.rates.words}")


def _tree(out: Console, answer: Answer, details: Details) -> None:
    """Prints each level with its best domain, and how many pods fit there: in the current cluster, and in
    the empty one.
    """
    rows = []
    for depth, fit in enumerate(details.levels):
        name = fit.level or f"all of {details.topology or 'the cluster'}"
        marks = [
            word
            for word, level in (("required", details.required), ("preferred", details.preferred))
            if level and level == fit.level
        ]
        if answer.assignments and answer.level == fit.level:
            marks.append("placed here")
        branch = f"{'  ' * (depth - 1)}└ " if depth else ""
        shown = f"  {branch}{name}" + (f" ({', '.join(marks)})" if marks else "")
        rows.append((shown, _fit(fit.now), _place(fit.now), _fit(fit.empty), _place(fit.empty)))
    out.print(table(("  level", "fit now", "best domain", "fit when empty", "best domain"), rows))


def _fit(attempt: LevelAttempt) -> str:
    return f"{attempt.fits} of {attempt.wanted}{f' ({attempt.note})' if attempt.note else ''}"


def _place(attempt: LevelAttempt) -> str:
    return path(attempt.domain) if attempt.fits else "–"


def _left_out(out: Console, gang: str, details: Details) -> None:
    heading = ", left out" if details.excluded else ""
    out.print(f"  {_nodes(details.nodes)}: {details.usable} can take a pod now{heading}")
    excluded = by_object(details.excluded, gang)
    for cause in dict.fromkeys((*excluded, *details.excluded_ever)):
        ever = details.excluded_ever.get(cause, 0)
        out.print(f"    {excluded.get(cause, 0)} {cause}{f' (when empty {ever})' if ever else ''}")


def _span(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}–{last}"
