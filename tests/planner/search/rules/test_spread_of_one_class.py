"""Pods spread over rows that cross the racks: the search finds a place or proves that there is none."""

from collections import Counter
from dataclasses import replace
from random import Random

import pytest

from planner.cluster.build import snapshot
from planner.model.labels import Requirement
from planner.model.pod import BoundPod, SpreadConstraint
from planner.planning.plan import plan
from tests.builders import GPU, gang, node, pod_set, shape, topology
from tests.effort import calls

ROWS = 24


def hall(nodes, rows, used, seed, per_rack=18):
    """Racks of nodes with 8 GPUs; every `rows`-th node is in the same row; this fraction of the nodes is
    used.
    """
    random = Random(seed)
    hosts = [
        node(f"n{place}", labels={"rack": f"r{place // per_rack}", "row": f"row{place % rows}"})
        for place in range(nodes)
    ]
    pods = [BoundPod(f"x/on-{n.name}", n.name, {GPU: 8, "pods": 1}) for n in hosts if random.random() < used]
    return snapshot(hosts, [topology("rack")], pods)


def spread(pods, skew=1):
    """This many pods of one node each, spread over the rows."""
    rule = SpreadConstraint("row", skew, (Requirement("app", "In", ("a",)),))
    pod = replace(shape(gpu=8), labels={"app": "a"}, spread=(rule,))
    return gang(pod_set(pods, pod), reserve="none")


def rows_used(moment, answer):
    """The number of pods in each row."""
    return Counter(moment.nodes[pod.node].labels["row"] for pod in answer.assignments)


def has_place(moment, pods, skew):
    """Returns whether the spread is possible, computed from the free nodes of each row for each minimum."""
    free = Counter({n.labels["row"]: 0 for n in moment.nodes.values()})
    used = {pod.node for pod in moment.pods}
    free.update(n.labels["row"] for n in moment.nodes.values() if n.name not in used)
    return any(
        fewest * len(free) <= pods <= sum(min(room, fewest + skew) for room in free.values())
        for fewest in range(min(free.values()) + 1)
    )


@pytest.mark.parametrize(("pods", "skew", "seed"), [(96, 2, 1), (72, 1, 1), (120, 2, 2), (120, 3, 11)])
def test_a_place_is_found_where_rows_of_a_used_cluster_have_one(pods, skew, seed):
    """504 nodes, 70 % of them used, 24 rows that cut every rack."""
    moment = hall(504, ROWS, 0.7, seed)
    answer = plan(moment, spread(pods, skew))
    assert (answer.decision, has_place(moment, pods, skew)) == ("admitted", True)
    rows = rows_used(moment, answer)
    assert (rows.total(), len(rows), max(rows.values()) - min(rows.values()) <= skew) == (pods, ROWS, True)


def test_where_rows_have_no_place_that_is_proved():
    """No doubt is left to the reader: the message says how many pods have a place, and warns of nothing. The
    numbers of the rows prove it, and no search goes on to its end for what they refute.
    """
    moment = hall(504, ROWS, 0.7, seed=1)
    answers = []
    work = calls(lambda: answers.append(plan(moment, spread(120))))
    (answer,) = answers
    assert work < 8_000_000
    assert (answer.decision, answer.warnings, has_place(moment, 120, 1)) == ("queued", (), False)
    max_pods = max(pods for pods in range(120) if has_place(moment, pods, 1))
    assert f"room for {max_pods} of 120 pods" in answer.message


def test_what_never_fits_the_rows_is_rejected():
    """One row has a single node: more than two pods in each other row are too many, whatever is free."""
    hosts = [node("alone", labels={"rack": "r0", "row": "row0"})]
    hosts += [node(f"n{n}", labels={"rack": f"r{n % 40}", "row": f"row{1 + n % 23}"}) for n in range(503)]
    random = Random(2)
    pods = [BoundPod(f"x/on-{n.name}", n.name, {GPU: 8, "pods": 1}) for n in hosts if random.random() < 0.7]
    moment = snapshot(hosts, [topology("rack")], pods)
    assert plan(moment, spread(48)).decision == "rejected"


@pytest.mark.parametrize("seed", range(60))
def test_a_search_that_ends_at_once_still_tells_whether_there_is_a_place(seed, monkeypatch):
    """Against what the rows have free, in small halls."""
    monkeypatch.setattr("planner.search.rules.search_effort._EFFORT", 0)
    random = Random(seed)
    moment = hall(random.randint(6, 30), random.randint(2, 5), random.random(), seed, random.randint(2, 5))
    pods, skew = random.randint(1, 12), random.choice((1, 1, 2))
    answer = plan(moment, spread(pods, skew))
    assert (answer.decision == "admitted") == has_place(moment, pods, skew)
