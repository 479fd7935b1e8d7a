"""Rules over labels that are not levels, on clusters of a thousand nodes: the search is complete.

block b0 … b3, 16 racks each, 18 nodes a rack; every third node is half used.
`ups` feeds whole racks, four of them in each block; `chassis` is two nodes of one rack;
`row` runs across blocks: 40 of them, each through many racks.
"""

from __future__ import annotations

from collections import Counter

import pytest

from planner.cluster.build import snapshot
from planner.cluster.snapshot import Snapshot
from planner.manifests.pods.pod import shape_of
from planner.model.errors import Where
from planner.model.pod import BoundPod
from planner.model.podgroup import PodSet
from planner.planning.plan import plan
from planner.request.resolve import resolve
from planner.search.place import place
from planner.search.rules import placement_under_rules
from tests.builders import amounts, gang, node, topology

RACKS, HOSTS = 64, 18


@pytest.fixture(scope="module")
def moment() -> Snapshot:
    """The cluster described above."""
    nodes, pods = [], []
    for number in range(RACKS * HOSTS):
        rack, place = divmod(number, HOSTS)
        labels = {
            "block": f"b{rack // 16}",
            "rack": f"r{rack}",
            "ups": f"u{rack // 16}-{rack % 4}",
            "chassis": f"c{rack}-{place // 2}",
            "row": f"w{(number * 7 + rack) % 40}",
        }
        nodes.append(node(f"n{number}", labels=labels))
        if number % 3 == 0:
            pods.append(BoundPod(f"x/p{number}", f"n{number}", amounts(gpu=4, pods=1)))
    return snapshot(nodes, [topology("block", "rack")], pods)


def pods(count: int, app: str = "a", *, apart: tuple[str, str] = ("", ""), near: tuple[str, str] = ("", "")):
    """A PodSet of whole nodes with affinity or anti-affinity to pods of an app over a label."""
    affinity = {}
    for field, (key, other) in (("podAntiAffinity", apart), ("podAffinity", near)):
        if key:
            term = {"topologyKey": key, "labelSelector": {"matchLabels": {"app": other}}}
            affinity[field] = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    spec = {"containers": [{"resources": {"limits": {"nvidia.com/gpu": "8"}}}], "affinity": affinity}
    return PodSet(app, count, shape_of(spec, Where(), labels={"app": app}))


def placed(moment: Snapshot, *sets: PodSet) -> dict[str, list[dict[str, str]]]:
    """The labels of the nodes of each PodSet's pods, after a complete search."""
    answer = plan(moment, gang(*sets, reserve="nodes"))
    assert answer.decision == "admitted", answer.message
    assert not answer.warnings
    return {
        pod_set.name: [
            dict(moment.nodes[a.node].labels) for a in answer.assignments if a.pod_set == pod_set.name
        ]
        for pod_set in sets
    }


@pytest.mark.parametrize(("key", "count", "racks"), [("ups", 4, 4), ("chassis", 9, 1), ("chassis", 40, 5)])
def test_pods_are_apart_over_a_label_within_or_around_racks(moment, key, count, racks):
    """In as few racks as there can be: one for each supply, nine pods to a rack of nine chassis."""
    where = placed(moment, pods(count, apart=(key, "a")))["a"]
    assert max(Counter(labels[key] for labels in where).values()) == 1
    assert len({labels["rack"] for labels in where}) == racks
    assert len({labels["block"] for labels in where}) == 1


def test_pods_are_apart_over_a_label_that_runs_across_blocks(moment):
    """Twelve rows in one rack."""
    where = placed(moment, pods(12, apart=("row", "a")))["a"]
    assert len({labels["row"] for labels in where}) == 12
    assert len({labels["rack"] for labels in where}) == 1


@pytest.mark.parametrize(("key", "count"), [("ups", 40), ("row", 15)])
def test_pods_are_together_over_a_label(moment, key, count):
    """All in the domain of one supply, or in one row, wherever its nodes are."""
    where = placed(moment, pods(count, near=(key, "a")))["a"]
    assert len({labels[key] for labels in where}) == 1


@pytest.mark.parametrize("key", ["ups", "chassis", "row"])
def test_a_leader_is_near_its_worker_or_away_from_all(moment, key):
    """Two PodSets, over any label."""
    where = placed(moment, pods(1, "l", near=(key, "a")), pods(1, "a"))
    assert where["l"][0][key] == where["a"][0][key]
    where = placed(moment, pods(1, "l", apart=(key, "a")), pods(16, "a"))
    assert where["l"][0][key] not in {labels[key] for labels in where["a"]}


@pytest.mark.parametrize(("key", "count"), [("ups", 17), ("row", 41)])
def test_more_pods_than_values_are_refused_with_the_number_that_would_work(moment, key, count):
    """There are 16 supplies and 40 rows."""
    answer = plan(moment, gang(pods(count, apart=(key, "a")), reserve="nodes"))
    assert (answer.decision, answer.warnings) == ("rejected", ())
    assert f"Would work: {count - 1} pods" in answer.message


def test_how_many_pods_fit_is_searched_only_if_an_answer_reads_it(monkeypatch, moment: Snapshot) -> None:
    """There are 40 rows, so 41 pods apart over rows have no place; that 40 have takes several searches."""
    searches = []
    run = placement_under_rules._RuleSearch.result
    monkeypatch.setattr(
        placement_under_rules._RuleSearch, "result", lambda search: searches.append(1) or run(search)
    )
    problem = resolve(moment, gang(pods(41, apart=("row", "a")), reserve="nodes"))
    outcome = place(problem)
    assert (outcome.best, len(searches)) == (None, 1)
    assert outcome.results[0].attempts[-1].fits == 40
    assert len(searches) > 1
