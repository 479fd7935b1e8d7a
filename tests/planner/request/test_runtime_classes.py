"""A pod template with a RuntimeClass is planned as the API server will create its pods.

Only pods have the overhead, the node selector and the tolerations of their class; a template of a Job has its
name alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.cluster.snapshot import Snapshot
from planner.manifests.cluster import read
from planner.manifests.pods.pod import shape_of
from planner.model.errors import InputError, Where
from planner.model.pod import BoundPod, PodShape
from planner.model.podgroup import PodGroup
from planner.planning.plan import plan
from planner.planning.replay import fingerprint, replay
from planner.planning.reservation import reservation_for
from planner.request.resolve import resolve
from tests.builders import cluster, gang, node, pod_set

Json = dict[str, Any]

POOL = "example.com/kata"
KATA: Json = {
    "apiVersion": "node.k8s.io/v1",
    "kind": "RuntimeClass",
    "metadata": {"name": "kata"},
    "handler": "kata-qemu",
    "overhead": {"podFixed": {"memory": "160Mi", "cpu": "250m"}},
    "scheduling": {
        "nodeSelector": {POOL: "yes"},
        "tolerations": [{"key": "sandbox", "operator": "Exists", "effect": "NoSchedule"}],
    },
}
OVERHEAD_ONLY: Json = {key: value for key, value in KATA.items() if key != "scheduling"}


def with_classes(snapshot: Snapshot, *classes: Json) -> Snapshot:
    """The same cluster with these RuntimeClasses."""
    runtime_classes = read([("classes.yaml", [*classes])]).base.runtime_classes
    base = replace(snapshot.base, runtime_classes=runtime_classes)
    return snapshot.evolve(base=base, changed_nodes=frozenset())


def asking(count: int, *, cpu: str = "8", memory: str = "8Gi", **spec: Any) -> PodGroup:
    """A gang of pods of one container with these amounts; its pods reserve only what they use."""
    containers = [{"name": "main", "resources": {"requests": {"cpu": cpu, "memory": memory}}}]
    shape = shape_of({"containers": containers, **spec}, Where())
    return gang(pod_set(count, shape), reserve="nodes")


def test_the_overhead_of_the_class_is_counted_for_each_pod():
    """Eight pods of eight cores fill 64 cores; with a quarter of a core more each, seven fit."""
    moment = with_classes(cluster("r: n"), OVERHEAD_ONLY)
    assert plan(moment, asking(8)).decision == "admitted"
    assert plan(moment, asking(8, runtimeClassName="kata")).decision == "rejected"
    assert plan(moment, asking(7, runtimeClassName="kata")).decision == "admitted"


def test_only_the_nodes_of_the_class_are_used():
    """The class's node selector and toleration, of which the template has neither."""
    nodes = [node("plain"), node("sandboxed", labels={POOL: "yes"})]
    moment = with_classes(cluster("r: n").without_node("n"), KATA)
    for each in nodes:
        moment = moment.with_node(each)
    answer = plan(moment, asking(1, runtimeClassName="kata"))
    assert [seat.node for seat in answer.assignments] == ["sandboxed"]


def test_the_taint_of_the_nodes_of_the_class_is_tolerated():
    """By pods of the class and by no others."""
    moment = cluster("r: n taint=sandbox")
    tolerating = {**OVERHEAD_ONLY, "scheduling": {"tolerations": KATA["scheduling"]["tolerations"]}}
    moment = with_classes(moment, tolerating)
    assert plan(moment, asking(1, runtimeClassName="kata")).decision == "admitted"
    assert plan(moment, asking(1)).decision == "rejected"


def test_the_reservation_holds_the_overhead():
    """As the pods will use it."""
    moment, group = with_classes(cluster("r: n"), OVERHEAD_ONLY), asking(1, runtimeClassName="kata")
    held = reservation_for(moment, group, plan(moment, group))
    assert held is not None
    assert dict(held.requests) == {"worker": {"cpu": 8250, "memory": (8 * 1024 + 160) * 2**20, "pods": 1}}


def test_a_place_is_kept_when_the_overhead_of_the_class_changes():
    """The request of the gang is the same."""
    moment, group = with_classes(cluster("r: n"), OVERHEAD_ONLY), asking(1, runtimeClassName="kata")
    held = reservation_for(moment, group, plan(moment, group))
    larger = with_classes(moment, {**OVERHEAD_ONLY, "overhead": {"podFixed": {"cpu": "1"}}})
    assert held is not None
    assert replay(larger, group, held) is not None


def with_overhead(moment: Snapshot, **amounts: str) -> Snapshot:
    """The same cluster after the overhead of the class has become this."""
    return with_classes(moment, {**OVERHEAD_ONLY, "overhead": {"podFixed": amounts}})


def test_a_place_in_which_the_pods_no_longer_fit_with_a_larger_overhead_is_not_kept():
    """Seven pods of eight cores leave eight of 64 for their overhead, not for 1250m each."""
    moment, group = with_classes(cluster("r: n m"), OVERHEAD_ONLY), asking(7, runtimeClassName="kata")
    held = reservation_for(moment, group, plan(moment, group))
    assert held is not None
    assert len({seat.node for seat in held.assignments}) == 1
    moment = moment.with_reservation(held)
    fits, full = with_overhead(moment, cpu="1142m"), with_overhead(moment, cpu="1250m")
    assert (plan(fits, group).reason, plan(fits, group).assignments) == ("AlreadyReserved", held.assignments)
    assert plan(full, group).reason == "Placed"
    assert {seat.node for seat in plan(full, group).assignments} == {"n", "m"}
    created = asking(7, runtimeClassName="kata", overhead={"cpu": "1250m"})
    assert plan(full, created) == plan(full, group)


def test_bound_pods_keep_their_place_when_the_overhead_of_the_class_grows():
    """They were created with the former overhead; only those that are still to come need more."""
    moment, group = with_classes(cluster("r: n"), OVERHEAD_ONLY), asking(7, runtimeClassName="kata")
    held = reservation_for(moment, group, plan(moment, group))
    assert held is not None
    moment, amounts = moment.with_reservation(held), dict(held.requests)["worker"]
    for number in range(7):
        assert plan(with_overhead(moment, cpu="7"), group).reason != "AlreadyReserved"
        moment = moment.with_pod(BoundPod(f"default/p{number}", "n", amounts, held.id))
    assert plan(with_overhead(moment, cpu="7"), group).reason == "AlreadyReserved"


def test_a_place_outside_the_nodes_of_the_class_is_not_kept():
    """The pods could never be bound there."""
    moment, group = with_classes(cluster("r: n"), OVERHEAD_ONLY), asking(1, runtimeClassName="kata")
    held = reservation_for(moment, group, plan(moment, group))
    assert held is not None
    assert replay(with_classes(moment, KATA), group, held) is None


UNKNOWN = (
    "RuntimeClass 'kat' is not in this cluster, so the API server refuses the pods; use kata, or leave "
    "runtimeClassName out"
)
OTHER_OVERHEAD = (
    "spec.overhead is 1 cpu, and RuntimeClass 'kata' has 160Mi memory, 250m cpu, so the API server refuses "
    "the pods; leave spec.overhead out"
)
OVERHEAD_ALONE = (
    "spec.overhead is 1 cpu, and no runtimeClassName means none, so the API server refuses the pods; leave "
    "spec.overhead out"
)
OTHER_LABEL = (
    f"nodeSelector {POOL}=no contradicts RuntimeClass 'kata', which selects {POOL}=yes, so the API server "
    f"refuses the pods; leave {POOL} out of the nodeSelector"
)


@pytest.mark.parametrize(
    ("spec", "warning"),
    [
        ({"runtimeClassName": "kat"}, UNKNOWN),
        ({"runtimeClassName": "kata", "overhead": {"cpu": "1"}}, OTHER_OVERHEAD),
        ({"overhead": {"cpu": "1"}}, OVERHEAD_ALONE),
        ({"runtimeClassName": "kata", "nodeSelector": {POOL: "no"}}, OTHER_LABEL),
    ],
)
def test_what_the_api_server_will_refuse_is_a_warning(spec: Json, warning: str):
    """With what would work."""
    assert warning in resolve(with_classes(cluster("r: n"), KATA), asking(1, **spec)).warnings


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"runtimeClassName": "kata"},
        {"runtimeClassName": "kata", "overhead": {"memory": "163840Ki", "cpu": 0.25}},
        {"runtimeClassName": "kata", "nodeSelector": {POOL: "yes"}},
    ],
)
def test_what_the_api_server_will_accept_is_silent(spec: Json):
    """Also what the class states in other words."""
    assert resolve(with_classes(cluster("r: n"), KATA), asking(1, **spec)).warnings == ()


def test_an_unknown_class_is_no_warning_where_no_class_was_read():
    """Cluster files may lack them; the pods are planned as the template states them."""
    problem = resolve(cluster("r: n"), asking(1, runtimeClassName="kata"))
    assert (problem.warnings, problem.refusal) == ((), None)


def test_a_malformed_class_is_named_with_its_field():
    """As everything that is read."""
    bad = {**KATA, "overhead": {"podFixed": {"cpu": "much"}}}
    with pytest.raises(InputError, match=r"c.yaml: RuntimeClass kata: overhead.podFixed"):
        read([("c.yaml", bad)])


AMOUNTS = st.fixed_dictionaries(
    {}, optional={"cpu": st.sampled_from(["100m", "1", "0"]), "memory": st.sampled_from(["64Mi", "1Gi"])}
)
TOLERATIONS = st.lists(
    st.sampled_from([{"key": "a", "operator": "Exists"}, {"key": "b", "value": "x", "effect": "NoSchedule"}]),
    max_size=2,
    unique_by=lambda toleration: toleration["key"],
)
LABELS = st.fixed_dictionaries({}, optional={"zone": st.just("z1"), "pool": st.just("kata")})


@st.composite
def classes(draw: st.DrawFn) -> Json:
    """A RuntimeClass with or without each of its parts."""
    scheduling = draw(st.fixed_dictionaries({"nodeSelector": LABELS, "tolerations": TOLERATIONS}))
    parts = {"overhead": {"podFixed": draw(AMOUNTS)}, "scheduling": scheduling}
    present = draw(st.sets(st.sampled_from(sorted(parts))))
    head = {key: KATA[key] for key in ("apiVersion", "kind", "metadata", "handler")}
    return {**head, **{name: parts[name] for name in present}}


@st.composite
def templates(draw: st.DrawFn) -> Json:
    """The spec of a pod template that names the class and nothing that contradicts it."""
    containers = [{"name": "main", "resources": {"requests": draw(AMOUNTS)}}]
    own = {"resources": {"requests": draw(AMOUNTS)}} if draw(st.booleans()) else {}
    parts = {"nodeSelector": draw(LABELS), "tolerations": draw(TOLERATIONS)}
    return {"containers": containers, "runtimeClassName": "kata", **own, **parts}


def admitted(spec: Json, runtime_class: Json) -> Json:
    """The spec of the pod that the API server creates from the template, by the plugin's rules."""
    scheduling = runtime_class.get("scheduling", {})
    overhead = runtime_class.get("overhead", {}).get("podFixed")
    created = {
        **spec,
        "nodeSelector": {**spec["nodeSelector"], **scheduling.get("nodeSelector", {})},
        "tolerations": [*scheduling.get("tolerations", []), *spec["tolerations"]],
    }
    return created if overhead is None else {**created, "overhead": overhead}


def meaning(snapshot: Snapshot, spec: Json) -> Mapping[str, object]:
    """What the planner knows of a gang of such pods."""
    group = gang(pod_set(2, shape_of(spec, Where())))
    problem = resolve(snapshot, group)
    (own,) = problem.gang.pod_sets
    return {
        "requests": dict(own.shape.requests),
        "without overhead": dict(own.shape.requests_without_overhead),
        "selector": dict(own.shape.node_selector),
        "tolerations": set(own.shape.tolerations),
        "fingerprint": {fingerprint(group), fingerprint(problem.gang)},
        "warnings": problem.warnings,
        "answer": replace(plan(snapshot, group), request=None),
    }


@settings(max_examples=200)
@given(template=templates(), runtime_class=classes())
def test_a_template_means_the_same_as_the_pods_that_are_created_from_it(template: Json, runtime_class: Json):
    """Whatever the class adds: amounts, nodes, identity and answer."""
    moment = with_classes(cluster("z1: n m cpu=2", ["zone"]), runtime_class)
    created = admitted(template, runtime_class)
    assert meaning(moment, template) == meaning(moment, created)
    twice = admitted(created, {key: value for key, value in runtime_class.items() if key != "overhead"})
    assert meaning(moment, created) == meaning(moment, twice)


def test_pods_of_another_runtime_class_are_other_pods() -> None:
    """Otherwise an update that only changes the class would not be planned."""
    plain = PodShape({"cpu": 1000, "pods": 1})
    assert replace(plain, runtime_class="kata") != plain
