"""Templates that differ only in fields that no policy reads are evaluated once, with the same result."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import racks
from tests.webhook.admission.test_growth_of_work import job_set
from tests.webhook.policy.helpers import (
    OURS,
    Inputs,
    apply,
    check,
    evaluations,
    mutate,
    mutating,
    patch,
    validate,
    validating,
)
from webhook.admission.decision import decide
from webhook.admission.decision_record import Decision
from webhook.admission.environment import Environment
from webhook.cli.common.inputs import shipped
from webhook.policy.engine.sharing.template_forms import Forms
from webhook.policy.loading.files import load_paths
from webhook.wire.request import from_object

Json = dict[str, Any]

SHIPPED = load_paths([str(shipped("policies"))])
ENVIRONMENT = Environment().with_policy_parameters(SHIPPED)
SNAPSHOT = racks(4, 6)
IMAGES = ("a:1", "b:1", "c:1")


def workload(*templates: Json) -> Json:
    """An object with these templates."""
    return {
        "apiVersion": "example.com/v1",
        "kind": "Many",
        "metadata": {"name": "many"},
        "spec": {"templates": list(templates)},
    }


def template(image: str, **spec: Any) -> Json:
    """A template whose container runs an image."""
    return {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "main", "image": image}], **spec},
    }


def of_images() -> Json:
    """Templates that differ in their image alone."""
    return workload(*map(template, IMAGES))


def inputs(count: int = len(IMAGES)) -> Inputs:
    """A caller that knows where the templates are."""
    paths = [(("spec", "templates", index), f"set-{index}") for index in range(count)]
    return Inputs(
        frozenset({"gang"}), paths=paths, values=lambda obj, pod_set: {"gang": {"podSet": pod_set, "size": 3}}
    )


def templates_of(obj: Mapping[str, Any]) -> list[Json]:
    """Its templates."""
    return list(obj["spec"]["templates"])


def test_templates_with_equal_defaults_differ_if_one_of_them_states_a_default() -> None:
    """After a policy has given a volume a source, it has no default source."""
    policies = [
        mutating(
            patch(
                '[JSONPatch{op: "add", path: "/spec/volumes/0/hostPath", value:'
                ' Object.spec.volumes.hostPath{path: "/data"}}]'
            ),
            name="a-source",
            api=OURS,
        ),
        mutating(
            patch(
                '[JSONPatch{op: "add", path: "/spec/hostname", value:'
                ' has(object.spec.volumes[0].emptyDir) ? "stated" : "none"}]'
            ),
            name="b-reads",
            api=OURS,
        ),
    ]
    stated, bare = [{"name": "v", "emptyDir": {}}], [{"name": "v"}]
    obj = workload(template("a:1", volumes=stated), template("b:1", volumes=bare))
    changed = templates_of(mutate(policies, obj, inputs(2)).object)
    assert [each["spec"]["hostname"] for each in changed] == ["stated", "none"]


@pytest.fixture
def evaluated(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The expressions that are evaluated, each as often as it is."""
    return evaluations(monkeypatch, lambda each: each.program.text)


ADD = 'JSONPatch{op: "add", path: "/metadata/labels/tested", value: "b"}'
NAME = 'Object{spec: Object.spec{schedulerName: "kai"}}'


def test_a_mutation_that_looks_at_no_image_is_made_once(evaluated: list[str]) -> None:
    """Each template has it, and keeps its own image."""
    mutated = mutate([mutating(apply(NAME), api=OURS)], of_images(), inputs())
    assert evaluated == [NAME]
    assert [row["spec"]["schedulerName"] for row in templates_of(mutated.object)] == ["kai"] * 3
    assert [row["spec"]["containers"][0]["image"] for row in templates_of(mutated.object)] == list(IMAGES)


def test_what_policies_changed_alike_stays_alike(evaluated: list[str]) -> None:
    """Three policies in turn, each of them once."""
    names = ("first", "second", "third")
    mutate(
        [mutating(apply(NAME.replace("kai", name)), name=name, api=OURS) for name in names],
        of_images(),
        inputs(),
    )
    assert evaluated == [NAME.replace("kai", name) for name in names]


def test_a_validation_that_looks_at_no_image_is_asked_once(evaluated: list[str]) -> None:
    """It holds for all templates; one that does not hold is asked for each."""
    held = validating(check("object.spec.containers.all(c, has(c.image))"), api=OURS)
    assert validate([held], of_images(), inputs()).allowed
    assert len(evaluated) == 1
    assert not validate([validating(check("false"), api=OURS)], of_images(), inputs()).allowed


@pytest.mark.parametrize(
    "expression",
    [
        # What is read, and what is passed on to another place, is each template's own.
        '[JSONPatch{op: "add", path: "/metadata/labels/image", value: object.spec.containers[0].image}]',
        '[JSONPatch{op: "copy", from: "/spec/containers/0/image", path: "/metadata/labels/image"}]',
        '[JSONPatch{op: "move", from: "/spec/containers/0/image", path: "/metadata/labels/image"}]',
        '[JSONPatch{op: "test", path: "/spec/containers/0/image", value: "b:1"}, ADD]',
        # A container that comes before it, and one that is copied.
        '[JSONPatch{op: "add", path: "/spec/containers/0", value: {"name": "first", "image": "x:1"}}]',
        '[JSONPatch{op: "copy", from: "/spec/containers/0", path: "/spec/initContainers"}]',
        '[JSONPatch{op: "replace", path: "/spec/containers", value: object.spec.containers}]',
        # One with another name, and one without.
        '[JSONPatch{op: "replace", path: "/spec/containers/0/name", value: "trainer"}]',
        '[JSONPatch{op: "remove", path: "/spec/containers/0/name"}]',
        # The default that depends on the image.
        '[JSONPatch{op: "remove", path: "/spec/containers/0/imagePullPolicy"}]',
        '[JSONPatch{op: "replace", path: "/spec/containers/0/image", value: "x:latest"}]',
        # The PodSet's own.
        '[JSONPatch{op: "add", path: "/metadata/labels/set", value: gang.podSet}]',
        'gang.size == 3 ? [JSONPatch{op: "add", path: "/metadata/labels/many", value: "3"}] : []',
        # An error in some templates.
        'object.spec.containers[0].image == "b:1" ? [JSONPatch{op: "remove", path: "/spec/affinity"}] : []',
    ],
)
def test_a_mutation_comes_to_the_same_as_on_each_template(
    expression: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever it does, the same comes out where every template is judged by itself, and of what follows."""
    pull = "string(object.spec.containers[0].?imagePullPolicy.orValue('-'))"
    seen = f'[JSONPatch{{op: "add", path: "/metadata/labels/policy", value: {pull}}}]'
    policies = [
        mutating(patch(expression.replace("ADD", ADD)), name="first", api=OURS, failurePolicy="Ignore"),
        mutating(patch(seen), name="second", api=OURS),
    ]
    obj = workload(*map(template, ("a:1", "b:1", "c:latest")))
    obj["spec"]["templates"][2]["spec"]["containers"][0]["imagePullPolicy"] = "IfNotPresent"
    together = mutate(policies, copy.deepcopy(obj), inputs())
    monkeypatch.setattr(Forms, "form", lambda *_: None)
    apart = mutate(policies, obj, inputs())
    assert (together.object, together.effects, together.errors, together.warnings) == (
        apart.object,
        apart.effects,
        apart.errors,
        apart.warnings,
    )


CONTAINER = st.fixed_dictionaries(
    {"image": st.sampled_from([*IMAGES, "c:latest", "", None, 5])},
    optional={
        "command": st.sampled_from([["run"], ["run", "--fast"], "run"]),
        "args": st.lists(st.sampled_from(["a", "b"]), max_size=2),
        "env": st.lists(
            st.fixed_dictionaries(
                {
                    "name": st.sampled_from(["NCCL_IB_DISABLE", "NCCL_DEBUG", "A"]),
                    "value": st.sampled_from(["0", "1", ""]),
                }
            ),
            max_size=2,
        ),
        "imagePullPolicy": st.sampled_from(["Always", "Never"]),
        "volumeMounts": st.just([{"name": "shm", "mountPath": "/dev/shm"}]),
    },
)
LABELS = st.dictionaries(
    st.sampled_from(["app", "kai.scheduler/queue", "kueue.x-k8s.io/queue-name", "runai/queue"]),
    st.sampled_from(["a", "b"]),
    max_size=2,
)
ANNOTATIONS = st.dictionaries(
    st.sampled_from(["note", "kai.scheduler/topology", "kai.scheduler/topology-required-placement"]),
    st.sampled_from(["a", "example.com/rack"]),
    max_size=1,
)
TEMPLATES = st.lists(
    st.tuples(st.lists(CONTAINER, min_size=1, max_size=2), LABELS, ANNOTATIONS, st.sampled_from([1, 1, 2])),
    min_size=2,
    max_size=4,
)


def drawn(rows: list[Any]) -> Json:
    """A JobSet with what was drawn in its templates."""
    obj = job_set(len(rows))
    for job, (containers, labels, notes, gpus) in zip(obj["spec"]["replicatedJobs"], rows, strict=True):
        pod = job["template"]["spec"]["template"]
        pod["metadata"] = {"labels": labels, "annotations": notes}
        resources = {"limits": {"nvidia.com/gpu": gpus}}
        pod["spec"]["containers"] = [
            {**container, "name": f"c{index}", **({"resources": resources} if index == 0 else {})}
            for index, container in enumerate(containers)
        ]
    return obj


def answer(decision: Decision) -> tuple[Any, ...]:
    """All that a caller sees of it, without the cost: that is what is saved."""
    findings = decision.findings and replace(decision.findings, cost=0)
    return decision.response, decision.object, decision.effects, findings, decision.notes


@given(TEMPLATES)
def test_the_shipped_policies_come_to_the_same_on_each_template(rows: list[Any]) -> None:
    """Answer, patch, warnings and annotations are those of a decision that judges each template by itself."""
    obj = drawn(rows)

    def decided() -> tuple[Any, ...]:
        return answer(decide(from_object(copy.deepcopy(obj)), SHIPPED, SNAPSHOT, "mutate", ENVIRONMENT))

    together = decided()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Forms, "form", lambda *_: None)
        assert together == decided()
