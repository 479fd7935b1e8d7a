"""What an ApplyConfiguration merges, what it leaves unchanged, and what it must not contain."""

from __future__ import annotations

import pytest

from tests.webhook.policy.helpers import (
    apply,
    mutate,
    mutating,
    pod,
)

_NULL = "Object{{spec: Object.spec{{{}: null}}}}"


@pytest.mark.parametrize(
    ("field", "expression"),
    [
        ("spec.nodeSelector", 'Object{spec: Object.spec{nodeSelector: {"a": "b"}}}'),
        (
            "spec.tolerations",
            'Object{spec: Object.spec{tolerations: [Object.spec.tolerations{operator: "Exists"}]}}',
        ),
        (
            "spec.containers[0].command",
            'Object{spec: Object.spec{containers: [Object.spec.containers{name: "main", command: ["sh"]}]}}',
        ),
    ],
)
def test_apply_configuration_refuses_atomic_fields(field: str, expression: str) -> None:
    """The error names the field and says what works."""
    mutated = mutate([mutating(apply(expression))], pod())
    assert mutated.object == pod()
    assert f"{field}: ApplyConfiguration may not change an atomic" in mutated.errors[0].message
    assert "JSONPatch" in mutated.errors[0].message


def test_apply_configuration_merges_env_by_name() -> None:
    """A variable of the same name is replaced in its place, a new one comes last, the rest stays."""
    obj = pod()
    obj["spec"]["containers"][0]["env"] = [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]
    env = (
        'Object{spec: Object.spec{containers: [Object.spec.containers{name: "main", env: ['
        'Object.spec.containers.env{name: "A", value: "9"},'
        ' Object.spec.containers.env{name: "C", value: "3"}]}]}}'
    )
    container = mutate([mutating(apply(env))], obj).object["spec"]["containers"][0]
    assert container == {
        "name": "main",
        "image": "busybox:1.36",
        "env": [{"name": "A", "value": "9"}, {"name": "B", "value": "2"}, {"name": "C", "value": "3"}],
    }


def test_apply_configuration_adds_a_sidecar_once() -> None:
    """Kubernetes' own example: an init container that always restarts, unless it is there."""
    sidecar = mutating(
        apply(
            'Object{spec: Object.spec{initContainers: [Object.spec.initContainers{name: "mesh-proxy",'
            ' image: "mesh/proxy:v1.0.0", args: ["proxy", "sidecar"], restartPolicy: "Always"}]}}'
        ),
        matchConditions=[
            {
                "name": "does-not-already-have-sidecar",
                "expression": '!object.spec.?initContainers.orValue([]).exists(c, c.name == "mesh-proxy")',
            }
        ],
        reinvocationPolicy="IfNeeded",
    )
    # `args` is atomic, so upstream refuses exactly this way of writing it.
    assert "spec.initContainers[0].args" in mutate([sidecar], pod()).errors[0].message
    sidecar["spec"]["mutations"][0]["applyConfiguration"]["expression"] = (
        'Object{spec: Object.spec{initContainers: [Object.spec.initContainers{name: "mesh-proxy",'
        ' image: "mesh/proxy:v1.0.0", restartPolicy: "Always"}]}}'
    )
    once = mutate([sidecar], pod())
    assert once.object["spec"]["initContainers"] == [
        {"name": "mesh-proxy", "image": "mesh/proxy:v1.0.0", "restartPolicy": "Always"}
    ]
    assert mutate([sidecar], dict(once.object)).effects == ()


def test_apply_configuration_merges_labels_and_leaves_the_others() -> None:
    """A label is added beside those that are there."""
    obj = pod()
    obj["metadata"]["labels"] = {"team": "red"}
    label = apply('Object{metadata: Object.metadata{labels: {"environment": "test"}}}')
    assert mutate([mutating(label)], obj).object["metadata"]["labels"] == {
        "team": "red",
        "environment": "test",
    }


def test_a_list_of_a_custom_resource_is_refused_as_atomic() -> None:
    """Without a schema nobody knows the keys by which its elements would merge."""
    rule = {"operations": ["*"], "apiGroups": ["ray.io"], "apiVersions": ["*"], "resources": ["rayclusters"]}
    grow = apply("Object{spec: Object.spec{workerGroupSpecs: [Object.spec.workerGroupSpecs{replicas: 2}]}}")
    ray = {"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": {"name": "r"}, "spec": {}}
    mutated = mutate([mutating(grow, rule=rule)], ray)
    assert "spec.workerGroupSpecs: the keys of this list are not known here; use JSONPatch" in str(
        mutated.errors
    )


def test_an_image_is_pulled_always_by_a_merge_on_every_container() -> None:
    """The elements of the list find theirs by name; nothing else of them changes."""
    pull = apply(
        "Object{spec: Object.spec{containers: object.spec.containers.map(c,"
        ' Object.spec.containers{name: c.name, imagePullPolicy: "Always"})}}'
    )
    containers = [{"name": name, "image": "x:1", "env": [{"name": "A", "value": "1"}]} for name in ("a", "b")]
    mutated = mutate([mutating(pull)], pod(containers=containers))
    assert mutated.object["spec"]["containers"] == [
        {**row, "imagePullPolicy": "Always"} for row in containers
    ]


@pytest.mark.parametrize(
    ("names", "merged"),
    [
        (["new", "main"], ["new", "main", "second"]),
        (["second", "main"], ["second", "main"]),
        (["second", "new"], ["main", "second", "new"]),
        (["new"], ["main", "second", "new"]),
    ],
)
def test_a_merged_list_has_the_order_of_the_apply_configuration(names: list[str], merged: list[str]) -> None:
    """Elements that only the object has come before the next one that both have."""
    obj = pod()
    obj["spec"]["containers"] = [{"name": "main", "image": "a"}, {"name": "second", "image": "b"}]
    rows = ", ".join(f'Object.spec.containers{{name: "{name}", image: "c"}}' for name in names)
    expression = f"Object{{spec: Object.spec{{containers: [{rows}]}}}}"
    result = mutate([mutating(apply(expression))], obj).object
    assert [row["name"] for row in result["spec"]["containers"]] == merged


def test_a_merged_set_has_the_order_of_the_apply_configuration() -> None:
    """A finalizer that is new comes where the expression places it."""
    obj = pod()
    obj["metadata"]["finalizers"] = ["x.io/a", "x.io/b"]
    expression = 'Object{metadata: Object.metadata{finalizers: ["x.io/c", "x.io/a"]}}'
    finalizers = mutate([mutating(apply(expression))], obj).object["metadata"]["finalizers"]
    assert finalizers == ["x.io/c", "x.io/a", "x.io/b"]


@pytest.mark.parametrize(
    ("message", "expression"),
    [
        (
            "spec.containers[1]: occurs twice",
            'Object{spec: Object.spec{containers: ["a", "a"].map(n, Object.spec.containers{name: n})}}',
        ),
        (
            "metadata.finalizers[1]: occurs twice",
            'Object{metadata: Object.metadata{finalizers: ["x.io/a", "x.io/a"]}}',
        ),
        ("spec.schedulerName: ApplyConfiguration may not write null", _NULL.format("schedulerName")),
        ("spec.securityContext: ApplyConfiguration may not write null", _NULL.format("securityContext")),
        (
            "metadata.labels.a: ApplyConfiguration may not write null",
            'Object{metadata: Object.metadata{labels: {"a": null}}}',
        ),
    ],
)
def test_apply_configuration_refuses_null_and_elements_that_occur_twice(
    message: str, expression: str
) -> None:
    """The API server cannot read such an apply configuration as an object of the kind."""
    mutated = mutate([mutating(apply(expression))], pod())
    assert mutated.object == pod()
    assert message in mutated.errors[0].message
