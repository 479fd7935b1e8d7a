"""Malformed and hostile objects: a run always ends with a message."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import calls
from tests.webhook.policy.helpers import (
    OURS,
    Inputs,
    apply,
    check,
    deployment,
    loaded,
    mutating,
    patch,
    pod,
    validating,
)
from webhook.jsontools.diff import equal, patch_between
from webhook.jsontools.patch import apply as apply_patch
from webhook.policy import from_object, run_mutating, run_validating

EVERYTHING = {"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"]}
POLICIES = loaded(
    mutating(
        patch('[JSONPatch{op: "add", path: "/spec/schedulerName", value: "x"}]'),
        patch('[JSONPatch{op: "replace", path: "/spec/containers/0/image", value: "y:1"}]'),
        patch("object.spec.containers.map(c, JSONPatch{op: 'add', path: '/spec/hostname', value: c.name})"),
        apply('Object{metadata: Object.metadata{labels: {"a": "b"}}}'),
        apply('Object{spec: Object.spec{containers: [Object.spec.containers{name: "main", image: "z:1"}]}}'),
        api=OURS,
        reinvocationPolicy="IfNeeded",
        matchConstraints={"resourceRules": [EVERYTHING], "objectSelector": {}},
    ),
    validating(
        check(
            "object.spec.containers.all(c, c.image.startsWith('a'))", messageExpression="object.metadata.name"
        ),
        check("has(object.metadata.labels) && object.metadata.labels['a'] == 'b'"),
        api=OURS,
        matchConstraints={
            "resourceRules": [EVERYTHING],
            "objectSelector": {"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]},
        },
    ),
)
INPUTS = Inputs(paths=[(("spec", "template"), "main"), (("spec", 0, "x"), "odd")])
WRONG = st.recursive(
    st.sampled_from(
        [None, True, 0, -1, 10**30, 1.5, "", "x", "\ud800".encode("utf-16", "surrogatepass").hex()]
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(["name", "image", "labels", "spec", "metadata", ""]), inner, max_size=3
        ),
    ),
    max_leaves=6,
)


def paths(node: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in an object."""
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    return [path, *(place for key, value in items for place in paths(value, (*path, key)))]


@settings(max_examples=150)
@given(st.data())
def test_no_object_makes_a_run_fall(data: st.DataObject) -> None:
    """A valid object in which some place holds something else: errors in words, the input untouched."""
    obj = data.draw(st.sampled_from([pod(), deployment()]))
    obj = copy.deepcopy(obj)
    *way, last = data.draw(st.sampled_from(paths(obj)[1:]))
    node: Any = obj
    for step in way:
        node = node[step]
    node[last] = data.draw(WRONG)
    before = copy.deepcopy(obj)
    request = from_object(obj)
    mutated = run_mutating(POLICIES, request, obj, INPUTS)
    run_validating(POLICIES, request, mutated.object, INPUTS)
    assert equal(obj, before)
    assert all(str(failure).startswith("policy 'mutate'") for failure in mutated.errors)
    assert equal(apply_patch(obj, patch_between(obj, mutated.object)), mutated.object)


@settings(max_examples=100)
@given(st.sampled_from([pod(), deployment()]), st.data())
def test_the_effects_together_lead_from_the_object_to_the_result(
    obj: dict[str, Any], data: st.DataObject
) -> None:
    """Each effect's patch is made on what the former left."""
    images = data.draw(st.lists(st.sampled_from(["a", "b:1", "c:latest"]), min_size=1, max_size=3))
    containers = [{"name": f"c{index}", "image": image} for index, image in enumerate(images)]
    obj = copy.deepcopy(obj)
    spec = obj["spec"]["template"]["spec"] if "template" in obj["spec"] else obj["spec"]
    spec["containers"] = containers
    mutated = run_mutating(POLICIES, from_object(obj), obj, INPUTS)
    state: Any = obj
    for effect in mutated.effects:
        state = apply_patch(state, effect.patch)
    assert equal(state, mutated.object)


def test_a_pod_of_many_containers_costs_in_proportion() -> None:
    """Five times the containers, far less than twenty-five times the work."""

    def work(count: int) -> int:
        env = [{"name": f"V{index}", "value": "x" * 30} for index in range(20)]
        obj = pod(containers=[{"name": f"c{n}", "image": "x:1", "env": env} for n in range(count)])
        request = from_object(obj)
        run_mutating(POLICIES, request, obj, INPUTS)
        return calls(lambda: run_mutating(POLICIES, request, obj, INPUTS), builtins=True)

    assert work(100) < work(20) * 8
