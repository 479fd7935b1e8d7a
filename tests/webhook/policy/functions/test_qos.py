"""What makes a pod Guaranteed never harms it: laws over random pods and nodes."""

from __future__ import annotations

import weakref
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from planner.manifests.pods.pod import effective_request
from planner.model.errors import Where
from planner.model.node import Node
from planner.model.quantity import amount
from planner.node.node_groups import node_groups
from webhook.policy.functions.qos import guaranteed, unraised

Json = dict[str, Any]
GI = 2**30
RULES = {
    "direction": "raise",
    "threadsPerCore": 1,
    "perGpu": {"cpu": "8", "memory": "64Gi"},
    "perSlice": {"cpu": "1", "memory": "8Gi"},
    "small": {"cpu": "1", "memory": "1Gi"},
}
CPU = st.sampled_from(["100m", "500m", "1", "1500m", "6", "40", "400"])
MEMORY = st.sampled_from(["100M", "128Mi", "4Gi", "96G", "200Gi", "9Ti"])


def around(*nodes: Node, step: int = 1) -> Json:
    """What a policy hands on."""
    rules = {**RULES, "threadsPerCore": step}
    return {"nodeKinds": node_groups(nodes), "claims": [], "ranges": [], "rules": rules}


@st.composite
def sides(draw: st.DrawFn, gpus: int) -> Json:
    """The resources of a container: requests never above limits."""
    resources: Json = {"requests": {}, "limits": {"nvidia.com/gpu": gpus} if gpus else {}}
    for name, values in (("cpu", CPU), ("memory", MEMORY)):
        texts = sorted((draw(values), draw(values)), key=lambda text: amount(name, text, Where(), up=True))
        if draw(st.booleans()):
            resources["requests"][name] = texts[0]
        if draw(st.booleans()):
            resources["limits"][name] = texts[1]
    return resources


@st.composite
def pods(draw: st.DrawFn) -> Json:
    """A pod with GPUs in its first container, perhaps sidecars, ordinary init containers and neighbours."""
    init = [
        {"name": f"i{index}", "resources": draw(sides(0)), **({"restartPolicy": "Always"} if lasts else {})}
        for index, lasts in enumerate(draw(st.lists(st.booleans(), max_size=3)))
    ]
    main = [{"name": "main", "resources": draw(sides(draw(st.integers(1, 8))))}]
    others = [{"name": f"c{index}", "resources": draw(sides(0))} for index in range(draw(st.integers(0, 2)))]
    return {"metadata": {"name": "p"}, "spec": {"initContainers": init, "containers": main + others}}


def mended(pod: Json, cluster: Json) -> Json:
    """The pod with what the function says."""
    by_name = {
        (entry["list"], entry["name"]): entry["amounts"] for entry in guaranteed(pod, cluster)["containers"]
    }
    spec = {
        part: [with_amounts(box, by_name[part, box["name"]]) for box in pod["spec"][part]]
        for part in ("initContainers", "containers")
    }
    return {**pod, "spec": spec}


def with_amounts(box: Json, amounts: Json) -> Json:
    """A container with these requests and limits."""
    return {
        **box,
        "resources": {side: {**box["resources"][side], **amounts} for side in ("requests", "limits")},
    }


def effective(pod: Json) -> dict[str, int]:
    """What the scheduler counts."""
    return effective_request(pod["spec"], Where())


def node(cpu: int, memory: int, gpus: int) -> Node:
    """A node with so many cores, GiB and GPUs."""
    return Node("n", {}, {"cpu": cpu * 1000, "memory": memory * GI, "nvidia.com/gpu": gpus, "pods": 110})


@settings(max_examples=300)
@given(pod=pods(), step=st.sampled_from([1, 2]))
def test_nothing_that_is_stated_gets_smaller_and_a_second_pass_changes_nothing(pod: Json, step: int) -> None:
    """In no container, on no side."""
    cluster = around(step=step)
    after = mended(pod, cluster)
    for part in ("initContainers", "containers"):
        for old, new in zip(pod["spec"][part], after["spec"][part], strict=True):
            for side in ("requests", "limits"):
                for name in ("cpu", "memory"):
                    raised = amount(name, new["resources"][side][name], Where(), up=True)
                    assert raised >= amount(name, old["resources"][side].get(name, 0), Where(), up=True)
    assert mended(after, cluster) == after


@settings(max_examples=300)
@given(pod=pods())
def test_an_init_container_without_limits_never_raises_what_the_pod_asks_for(pod: Json) -> None:
    """It may use what the lasting containers have anyway, and no less than it requests."""
    boxes = pod["spec"]["initContainers"]
    for box in boxes:
        if "restartPolicy" not in box:
            box["resources"] = {"requests": {}, "limits": {}}
    after = mended(pod, around())
    lasting = [box for box in after["spec"]["initContainers"] if "restartPolicy" in box]
    alone = {"spec": {**after["spec"], "initContainers": lasting}}
    assert effective(after) == effective(alone)


@settings(max_examples=300)
@given(pod=pods(), cpu=st.integers(4, 500), memory=st.integers(8, 3000), gpus=st.integers(1, 8))
def test_a_pod_that_some_node_could_take_still_has_one(pod: Json, cpu: int, memory: int, gpus: int) -> None:
    """Where raising requests would cost it its only node they stay, and that is told."""
    cluster = around(node(cpu, memory, gpus))
    (kind,) = cluster["nodeKinds"]
    after = mended(pod, cluster)
    if kind.has_amounts(effective(pod)):
        assert kind.has_amounts(effective(after))
        assert unraised(pod, cluster) == unraised(after, cluster)
    else:
        assert unraised(pod, cluster) == []


@settings(max_examples=100)
@given(drawn=st.lists(pods(), min_size=2, max_size=2), step=st.sampled_from([1, 2]))
def test_pods_that_were_asked_about_before_do_not_change_the_answer(drawn: list[Json], step: int) -> None:
    """Answers are cached by content: other pods, rules and nodes get their own."""
    small, large = node(8, 64, 2), node(200, 2000, 8)
    clusters = [around(small), around(large), around(large, step=step)]
    cached = [guaranteed(pod, cluster) for _ in range(2) for pod in drawn for cluster in clusters]
    fresh = [
        guaranteed(pod, {**cluster, "nodeKinds": [*cluster["nodeKinds"]]})  # another list: no entry for it
        for pod in drawn
        for cluster in clusters
    ]
    assert cached == fresh * 2


@settings(max_examples=200)
@given(
    gpus=st.integers(1, 8),
    cpu=st.integers(16, 500),
    memory=st.integers(32, 3000),
    step=st.sampled_from([1, 2]),
)
def test_as_many_pods_that_state_nothing_fit_as_the_node_has_gpus(
    gpus: int, cpu: int, memory: int, step: int
) -> None:
    """Whether cores come by one thread or by two."""
    if (cpu - 2) // gpus < step:
        return
    cluster = around(node(cpu, memory, gpus), step=step)
    pod = {"spec": {"initContainers": [], "containers": [
        {"name": "main", "resources": {"requests": {}, "limits": {"nvidia.com/gpu": 1}}}]}}  # fmt: skip
    share = effective(mended(pod, cluster))
    assert all(share[name] * gpus <= cluster["nodeKinds"][0].allocatable[name] for name in ("cpu", "memory"))


def test_a_malformed_pod_gets_what_can_be_read_and_breaks_nothing() -> None:
    """The API server says what is wrong with it."""
    for spec in (
        None,
        [],
        {"containers": None},
        {"containers": ["x", {"name": 3}]},
        {"resources": "x"},
        {"containers": 5},
    ):
        assert guaranteed({"spec": spec}, around(node(16, 32, 1))) == {"containers": [], "pod": {}}
        assert unraised({"spec": spec}, around(node(16, 32, 1))) == []


class Kinds(list[Any]):
    """Kinds of nodes to which weak references are possible."""


def test_the_kinds_of_former_nodes_are_not_kept() -> None:
    """Some node changes every few seconds, and the kinds of 5,000 nodes are megabytes."""
    pod = {"spec": {"containers": [{"name": "main", "resources": {"limits": {"nvidia.com/gpu": 1}}}]}}
    former = []
    for cpu in range(16, 48):
        kinds = Kinds(node_groups([Node("n", {}, {"cpu": cpu * 1000, "nvidia.com/gpu": 8})]))
        guaranteed(pod, {**around(), "nodeKinds": kinds})
        former.append(weakref.ref(kinds))
    del kinds
    assert sum(kinds() is not None for kinds in former) <= 4


KATA: Json = {
    "overhead": {"cpu": 250, "memory": 2 * GI},
    "nodeSelector": {"sandbox": "kata"},
    "tolerations": [],
}


def of_kata(pod: Json) -> Json:
    """The pod of a template that names the RuntimeClass."""
    return {**pod, "spec": {**pod["spec"], "runtimeClassName": "kata"}}


def created(pod: Json) -> Json:
    """What the API server creates of it."""
    own = {"overhead": {"cpu": "250m", "memory": "2Gi"}, "nodeSelector": {"sandbox": "kata"}}
    return {**pod, "spec": {**pod["spec"], **own}}


def sandboxed(cpu: int, memory: int, gpus: int) -> Json:
    """What a policy hands on in a cluster of one node of the class and a small one that is not."""
    own = Node("k", {"sandbox": "kata"}, node(cpu, memory, gpus).allocatable)
    return {**around(own, node(4, 8, gpus)), "runtimeClasses": {"kata": KATA}}


@settings(max_examples=300)
@given(pod=pods(), cpu=st.integers(4, 500), memory=st.integers(8, 3000), gpus=st.integers(1, 8))
def test_a_template_gets_what_the_pods_get_that_are_created_from_it(
    pod: Json, cpu: int, memory: int, gpus: int
) -> None:
    """Policies run on both, and would else change the pods once more."""
    template, cluster = of_kata(pod), sandboxed(cpu, memory, gpus)
    assert guaranteed(template, cluster) == guaranteed(created(template), cluster)
    assert unraised(template, cluster) == unraised(created(template), cluster)


@settings(max_examples=300)
@given(pod=pods(), cpu=st.integers(4, 500), memory=st.integers(8, 3000), gpus=st.integers(1, 8))
def test_the_overhead_of_the_runtime_class_is_left_room_for(
    pod: Json, cpu: int, memory: int, gpus: int
) -> None:
    """A pod that fits its node with the overhead still fits with it once it is Guaranteed."""
    cluster = sandboxed(cpu, memory, gpus)
    kind = cluster["nodeKinds"][0]
    if kind.has_amounts(effective(created(of_kata(pod)))):
        after = mended(of_kata(pod), cluster)
        assert kind.has_amounts(effective(created({**pod, "spec": {**pod["spec"], **after["spec"]}})))


def test_the_overhead_is_no_part_of_the_amounts_of_the_pod_as_a_whole() -> None:
    """The QoS class is that of the stated amounts; the overhead counts on the node alone."""
    pod: Json = {
        "spec": {
            "resources": {"limits": {"cpu": "8"}},
            "containers": [{"name": "main", "resources": {"limits": {"nvidia.com/gpu": 1, "memory": "4Gi"}}}],
        }
    }
    cluster = sandboxed(64, 512, 8)
    assert guaranteed(of_kata(pod), cluster)["pod"] == {"cpu": "8", "memory": "4Gi"}
    assert guaranteed(created(of_kata(pod)), cluster)["pod"] == {"cpu": "8", "memory": "4Gi"}


def test_what_would_work_is_what_the_author_can_state() -> None:
    """The largest node less the overhead."""
    limits = {"nvidia.com/gpu": 1, "cpu": "64", "memory": "4Gi"}
    resources = {"limits": limits, "requests": {"cpu": "8", "memory": "4Gi"}}
    pod: Json = {"spec": {"containers": [{"name": "main", "resources": resources}]}}
    (sentence,) = unraised(of_kata(pod), sandboxed(64, 512, 8))
    assert sentence == (
        "to be Guaranteed it would ask for 64 cpu, and the most that any node has which could take it is "
        "63750m beside the overhead of its RuntimeClass: its requests stay at 8. What would work: limits of "
        "at most 63750m cpu together"
    )
