"""`plan`: where a whole gang goes, or why it cannot. The one entry to the planner.

The same snapshot and gang give the same answer, in whatever order the nodes came (invariant 8), and a gang
that holds a reservation gets its own plan again (invariant 4). Nothing is reserved here: an admitted answer
becomes a `Reservation` by `reservation_for`, which the shell puts into the ledger.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from planner.cluster.snapshot import Snapshot
from planner.cluster.tree import Subtree, TopologyTree
from planner.explain import messages
from planner.explain.alternatives import Alternatives, Plan, Steps
from planner.explain.diagnosis import not_placed
from planner.model.answer import Answer, Assignment
from planner.model.podgroup import PodGroup
from planner.model.topology import Topology, common_domain, held_domains
from planner.model.work_budget import WorkBudget
from planner.planning.extensions import follow
from planner.planning.replay import replay
from planner.request import topology_choice
from planner.request.device_claims import has_claims, in_one_clique, with_devices
from planner.request.problem import PlacementProblem, ask, when_alone
from planner.request.relaxation import relaxations
from planner.request.resolve import settled
from planner.request.validation import Refusal, check
from planner.search.level_search import LevelSearch
from planner.search.mixtures.piecemeal import one_by_one
from planner.search.result import Placement, SearchResult
from planner.search.rules.rules import climb_by_rules
from planner.search.space import search_space


def plan(snapshot: Snapshot, group: PodGroup) -> Answer:
    """The planner's answer for one gang; see `Answer` for what it carries. A bad request is no error."""
    own = snapshot.holding(group.name)
    refused = None
    try:
        group = with_devices(snapshot, group)
    except Refusal as refusal:
        refused = messages.refused(group, refusal)
    if own is not None:
        again = replay(snapshot, group, own)
        if again is not None:
            return again
        snapshot = snapshot.without(group.name)
    if refused is not None:
        return refused
    near = near_to(snapshot, group)
    steps = Steps(lambda moment, asked: _plan(moment, asked, near), _seek(WorkBudget, now=True), near)
    return _answer(snapshot, group, steps)


def _answer(snapshot: Snapshot, group: PodGroup, steps: Steps) -> Answer:
    group = within_reach(snapshot, group)
    return follow(snapshot, group, steps) if group.wishes else steps.plan(snapshot, group)


def within_reach(snapshot: Snapshot, group: PodGroup) -> PodGroup:
    """The gang with the pods of a ComputeDomain kept where its channel reaches."""
    return in_one_clique(snapshot.base.devices, snapshot.topologies, group) if has_claims(group) else group


def _trial(snapshot: Snapshot, group: PodGroup, budget: WorkBudget, *, now: bool) -> Answer:
    """Whether a request would be admitted, as `plan` has it, within this budget; or in the empty cluster."""
    try:
        group = with_devices(snapshot, group)
    except Refusal as refusal:
        return messages.refused(group, refusal)
    seek = _seek(lambda: budget, now=now)
    return _answer(snapshot, group, Steps(seek, seek, None, now))


def _seek(budget: Callable[[], WorkBudget], *, now: bool) -> Plan:
    """A plan of ordinary groups that tells a place, and where there is none not why."""

    def seek(snapshot: Snapshot, group: PodGroup) -> Answer:
        try:
            asks = requests_of(snapshot, group)
        except Refusal as refusal:
            return messages.refused(group, refusal)
        best = _best(search(snapshot, group, asks, budget, now=now))
        return Answer(group.name, "queued") if best is None else _admitted(group, best)

    return seek


def _plan(snapshot: Snapshot, group: PodGroup, near: Alternatives) -> Answer:
    """The answer to what the constraints say, in a snapshot in which the gang holds nothing.

    `near`: the request as it came, for what would work in its place.
    """
    try:
        asks = requests_of(snapshot, group)
    except Refusal as refusal:
        return messages.refused(group, refusal)
    tried = search(snapshot, group, asks, now=True)
    best = _best(tried)
    if best is not None:
        return _admitted(group, best)
    ever = search(snapshot, group, asks, now=False)
    return not_placed(snapshot, group, tried, ever, fits_empty=_best(ever) is not None, near=near)


def when_empty(snapshot: Snapshot, group: PodGroup) -> Answer:
    """Where the gang would go if nothing else were in the cluster; without words where it has no place."""
    return _trial(snapshot, group, WorkBudget(), now=False)


def near_to(snapshot: Snapshot, group: PodGroup) -> Alternatives:
    """What would work in the place of this request, in a snapshot in which the gang holds nothing."""
    return Alternatives(snapshot, group, _trial)


def requests_of(snapshot: Snapshot, group: PodGroup) -> list[tuple[Topology, PlacementProblem]]:
    """What the gang asks for in each topology that it may mean. Raises `Refusal`."""
    asked = settled(snapshot, group)
    check(group)
    rules = {key for one in asked.pod_sets for key in (*one.shape.anti_affinity, *dict(one.shape.shuns))}
    trees = snapshot.base.trees
    return [
        (topology, ask(asked, topology, [key for key in rules if trees[topology.name].repeats(key)]))
        for topology in topology_choice.candidates(snapshot, group)
    ]


def search(
    snapshot: Snapshot,
    group: PodGroup,
    asks: Sequence[tuple[Topology, PlacementProblem]],
    budget: Callable[[], WorkBudget] = WorkBudget,
    *,
    now: bool,
) -> list[SearchResult]:
    """Each topology's best placement; where none has any and the gang asks for no level, over all nodes.

    `budget` gives that of each topology's search.
    """
    base = snapshot.base
    tried = [_try(snapshot, base.trees[t.name], a, group, budget(), now=now) for t, a in asks]
    if any(one.found for one in tried) or group.constraint:
        return tried
    wide = [(t, a) for t, a in asks if len(base.trees[t.name].nodes) < len(base.nodes)]
    return tried + [_try(snapshot, base.wide_trees[t.name], a, group, budget(), now=now) for t, a in wide]


def _try(
    snapshot: Snapshot,
    tree: TopologyTree,
    asked: PlacementProblem,
    group: PodGroup,
    budget: WorkBudget,
    *,
    now: bool,
) -> SearchResult:
    """What a search of the tree finds; where it ends without a place, what is found piece by piece."""
    tried = _searched(snapshot, tree, asked, group, budget, now=now)
    if tried.found is None and not tried.complete and now and not budget.hard:
        return replace(tried, found=one_by_one(snapshot, tree, asked, group.reserve))
    return tried


def _searched(
    snapshot: Snapshot,
    tree: TopologyTree,
    asked: PlacementProblem,
    group: PodGroup,
    budget: WorkBudget,
    *,
    now: bool,
) -> SearchResult:
    """The first relaxation that has a place; of the empty cluster it matters only whether any has. Where the
    last has none, none has: it asks for the least."""
    asked = asked if now else when_alone(asked)
    view, steps = search_space(snapshot, tree, now=now), relaxations(asked)
    steps = steps if now else steps[-1:]
    climb = LevelSearch(view, asked, group.reserve, budget, [])
    last = LevelSearch(view, asked, group.reserve, budget if budget.hard else replace(budget), [])
    found = climb_by_rules(climb, steps[0], asked.required)
    if found is not None or len(steps) == 1:
        return SearchResult(tree, asked, found, tuple(climb.attempts), climb.complete)
    at_last = climb_by_rules(last, steps[-1], asked.required)
    if at_last is None and last.complete:
        return SearchResult(tree, asked, None, tuple(last.attempts), complete=True)
    for kinds in steps[1:-1]:
        found = climb_by_rules(climb, kinds, asked.required)
        if found is not None:
            return SearchResult(tree, asked, found, tuple(climb.attempts), climb.complete)
    return SearchResult(tree, asked, at_last, tuple(last.attempts), climb.complete and last.complete)


def _best(tried: Sequence[SearchResult]) -> SearchResult | None:
    """The placement in the finest domain, on the fewest hosts; then by topology name."""
    found = [one for one in tried if one.found is not None]
    return min(found, key=_compactness, default=None)


def _compactness(one: SearchResult) -> tuple[int, int]:
    assert one.found is not None, "only placements are compared"
    return (one.tree.topology.host_index - one.found.branch.level, len(one.found.placed))


def _admitted(group: PodGroup, tried: SearchResult) -> Answer:
    found, tree = tried.found, tried.tree
    assert found is not None, "an admitted gang has a placement"
    hosts = list(tree.root.leaves_at([node for node, _ in found.placed]))
    assignments = _assignments(hosts, found, group)
    paths = [host.path for host in hosts]
    domain = common_domain(paths)
    level = tree.topology.levels[len(domain) - 1] if domain else ""
    reserves = held_domains(tree.topology, domain, paths) if group.reserve == "domain" else ()
    warnings = (*group.warnings, *tried.asked.warnings)
    if not found.exact:
        warnings = (*warnings, messages.BUDGET_WARNING)
    return Answer(
        gang=group.name,
        decision="admitted",
        topology=tree.topology.name,
        level=level,
        domain=domain,
        reserves=reserves,
        assignments=assignments,
        reason="Placed",
        message=messages.placed(group, tree.topology, domain, assignments, reserves),
        warnings=warnings,
        attempts=tuple(reversed(tried.attempts)),
    )


def _assignments(hosts: Sequence[Subtree], found: Placement, group: PodGroup) -> tuple[Assignment, ...]:
    """The pods of each kind dealt to its PodSets in the order of the nodes; then by PodSet."""
    dealt: dict[str, list[Assignment]] = {pod_set.name: [] for pod_set in group.pod_sets}
    for place, kind in enumerate(found.kinds):
        parts = list(kind.parts)
        for host, (_, counts) in zip(hosts, found.placed, strict=True):
            left = counts[place]
            while left:
                name, wanted = parts[0]
                taken = left if left < wanted else wanted
                dealt[name].append(Assignment(name, host.node, taken))
                left -= taken
                if taken < wanted:
                    parts[0] = (name, wanted - taken)
                else:
                    del parts[0]
    return tuple(assignment for assignments in dealt.values() for assignment in assignments)
