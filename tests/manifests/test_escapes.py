"""Every annotation that leaves the plan is one that the admission policy of the escapes looks at."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import yaml

from planner.model.errors import Where
from tests.manifests import escapes
from tests.manifests.test_conditions import KIND_OF, annotated, pods_of, with_pods
from tests.webhook.workloads import objects as o
from webhook.cel import Declarations, Program, compile
from webhook.workloads import KINDS, WorkloadKind, read
from webhook.workloads.kinds import row_of
from webhook.workloads.left_alone import KUEUE_TOPOLOGY_GATE, is_placeholder

Json = dict[str, Any]
POLICY: Json = next(
    document
    for document in yaml.safe_load_all(escapes.FILE.read_text())
    if document["kind"] == "ValidatingAdmissionPolicy" and document["metadata"]["name"] == "bayplan-escapes"
)
SKIP = {"bayplan.dev/skip": "true"}
ROWS = [row for row in KINDS.values() if row.pods.metadata or row.pods.specs]
PLACES = [(row, path) for row in ROWS for path in ("metadata", *row.pods.metadata)]
IDS = [f"{row.name} {path}" for row, path in PLACES]


def variable(name: str) -> Program:
    """A variable of the policy that asks for nothing but the object before and after."""
    (expression,) = (row["expression"] for row in POLICY["spec"]["variables"] if row["name"] == name)
    return compile(expression, Declarations(variables={"object": None, "oldObject": None}))


NOTES, BEFORE = variable("notes"), variable("before")


def all_notes(lists: Any) -> list[Json]:
    """All annotations of the lists that the variables hold."""
    return [note for notes in lists for note in notes if note]


def with_note(path: str) -> Json:
    """An object that has the annotation at this path and nothing else: in a second item of a list."""
    value: Any = {"annotations": SKIP}
    for step in reversed(path.split(".")):
        name = step.rstrip("[]{}")
        if step.endswith("[]"):
            value = [{}, value]
        elif step.endswith("{}"):
            value = {"a": {}, "b": value}
        value = {name: value}
    return {"metadata": {}} | value  # type: ignore[no-any-return]


@pytest.mark.parametrize(("row", "path"), PLACES, ids=IDS)
def test_an_annotation_is_seen_wherever_the_kind_keeps_one(row: WorkloadKind, path: str) -> None:
    """After a change, and before it: who leaves it as it was needs nothing."""
    obj = with_note(path)
    assert all_notes(NOTES.evaluate({"object": obj, "oldObject": None})) == [SKIP]
    assert all_notes(BEFORE.evaluate({"object": {}, "oldObject": obj})) == [SKIP]
    assert BEFORE.evaluate({"object": obj, "oldObject": None}) == []


def test_what_the_code_takes_for_skipped_is_seen() -> None:
    """Of every kind that it reads, whichever template says so."""
    skipped = 0
    for kind, plain in KIND_OF.items():
        row = row_of(plain["apiVersion"], kind)
        assert row is not None
        for path in ("metadata", *row.pods.metadata):
            for obj in annotated(kind, path, SKIP):
                skipped += read(obj).skip
                assert SKIP in all_notes(NOTES.evaluate({"object": obj, "oldObject": None})), (kind, path)
    assert skipped > len(KIND_OF)


def test_what_a_train_job_patches_into_its_runtime_is_seen() -> None:
    """Kubeflow trainer v2.2 writes it onto the JobSet, its jobs and their pods."""
    noted = {"metadata": {"annotations": SKIP}}
    for template in (
        noted,
        {"spec": {"replicatedJobs": [{"name": "node", "template": noted}]}},
        {"spec": {"replicatedJobs": [{"name": "node", "template": {"spec": {"template": noted}}}]}},
    ):
        patch = {"manager": "team", "trainingRuntimeSpec": {"template": template}}
        obj = {"metadata": {}, "spec": {"runtimePatches": [patch]}}
        assert all_notes(NOTES.evaluate({"object": obj, "oldObject": None})) == [SKIP]


def test_the_policy_is_asked_about_every_kind_of_the_table() -> None:
    """Each whose objects have pods, or are handed on to such; on creation and on update. Beside them, the
    other kinds of Kubernetes itself that create pods."""
    rules = POLICY["spec"]["matchConstraints"]["resourceRules"]
    asked = {(group, name) for rule in rules for group in rule["apiGroups"] for name in rule["resources"]}
    beside = {("", "replicationcontrollers"), ("apps", "daemonsets")}  # kinds that it does not plan
    assert asked == {(row.group, row.resource) for row in ROWS} | beside
    assert all(rule["operations"] == ["CREATE", "UPDATE"] for rule in rules)


def test_the_expressions_are_what_the_table_of_kinds_gives() -> None:
    """A new row is looked at, or this fails until the file is written again."""
    text = escapes.FILE.read_text()
    assert escapes.written(text) == text


def test_the_recipe_of_who_may_skip_looks_where_the_table_of_kinds_says() -> None:
    """At the same kinds, and at the annotations of each of their templates."""
    text = escapes.RECIPE.read_text()
    assert escapes.written(text, escapes.OF_RECIPE) == text
    policy = next(iter(yaml.safe_load_all(text)))
    (rule,) = policy["spec"]["matchConstraints"]["resourceRules"]
    assert set(rule["apiGroups"]) == {row.group for row in ROWS}
    assert set(rule["resources"]) == {row.resource for row in ROWS}


def test_a_variable_that_is_not_there_is_told() -> None:
    """The file is edited by hand around the expressions."""
    text = escapes.FILE.read_text().replace("- name: claims", "- name: says")
    with pytest.raises(ValueError, match="has the variable claims 0 times"):
        escapes.written(text)


class Variables(Mapping[str, Any]):
    """The variables of the policy for one request; those that are asked for are evaluated."""

    def __init__(self, obj: Json, old: Json | None = None, *, user: str = "ann", resource: str = "") -> None:
        operation = "CREATE" if old is None else "UPDATE"
        request = {
            "operation": operation,
            "resource": {"resource": resource or f"{obj['kind'].lower()}s"},
            "userInfo": {"username": user},
        }
        self._bindings: Json = {"object": obj, "oldObject": old, "request": request, "variables": self}
        self._expressions = {row["name"]: row["expression"] for row in POLICY["spec"]["variables"]}

    def __getitem__(self, name: str) -> Any:
        program = compile(self._expressions[name], Declarations(variables=dict.fromkeys(self._bindings)))
        return program.evaluate(self._bindings)

    def __iter__(self) -> Any:
        return iter(self._expressions)

    def __len__(self) -> int:
        return len(self._expressions)


WITH_PODS = [kind for kind, plain in KIND_OF.items() if row_of(plain["apiVersion"], kind).pods.specs]  # type: ignore[union-attr]
CONTROLLER = {**o.DEPLOYMENT, "apiVersion": "v1", "kind": "ReplicationController"}
DAEMONS = {**o.DEPLOYMENT, "kind": "DaemonSet"}


@pytest.mark.parametrize("kind", WITH_PODS)
def test_a_node_in_any_template_is_seen(kind: str) -> None:
    """The pods would have it when their controller creates them: nobody is asked about these."""
    spec = o.pod_template()["spec"]
    obj, bound = with_pods(kind, spec), with_pods(kind, {**spec, "nodeName": "r1-n1"})
    assert not Variables(obj)["binds"]
    assert Variables(bound)["binds"]
    assert Variables(bound, obj)["binds"]
    assert Variables(with_pods(kind, {**spec, "nodeName": "r1-n2"}), bound)["binds"]
    assert not Variables(bound, bound)["binds"]


@pytest.mark.parametrize("kind", WITH_PODS)
def test_what_the_code_takes_for_a_placeholder_with_gpus_is_seen(kind: str) -> None:
    """Whatever a container named `pause` runs, it asks for GPUs and is not planned."""
    for image, gpus in (("registry.example.com/me/pause:train", 8), ("pause", 0), ("trainer:1", 8)):
        spec = o.pod_template(gpus)["spec"]
        spec["containers"][0]["image"] = image
        obj = with_pods(kind, spec)
        expected = all(is_placeholder(pod, Where()) for pod in pods_of(obj)) and gpus > 0
        assert Variables(obj)["poses"] is expected
        assert not Variables(obj, obj)["poses"]
        assert Variables(obj, with_pods(kind, o.pod_template(1)["spec"]))["poses"] is expected


def test_daemons_with_gpus_are_seen() -> None:
    """They run on every node, also on those that gangs hold; other kinds are planned."""
    plain = o.changed(DAEMONS, ("spec", "template"), o.pod_template(0))
    assert Variables(DAEMONS)["spreads"]
    assert Variables(DAEMONS, plain)["spreads"]
    assert not Variables(plain)["spreads"]
    assert not Variables(DAEMONS, DAEMONS)["spreads"]
    assert not Variables(o.DEPLOYMENT)["spreads"]


def test_a_replication_controller_is_read_as_a_deployment() -> None:
    """It copies the annotations and the node of its template too."""
    obj = o.changed(CONTROLLER, ("spec", "template"), o.pod_template(1, SKIP))
    assert Variables(obj)["skips"]
    assert Variables(o.changed(CONTROLLER, ("spec", "template", "spec", "nodeName"), "n"))["binds"]


def gated(gate: str, placement: str = "") -> Json:
    """A pod at a gate, with a placement annotation."""
    pod = o.changed(o.POD, ("spec", "schedulingGates"), [{"name": gate}] if gate else [])
    return o.annotated(pod, {"bayplan.dev/placement": placement} if placement else {})


BAYPLAN, KUEUE = "system:serviceaccount:bayplan-system:bayplan", "system:serviceaccount:kueue-system:kueue"
OWN = "system:serviceaccount:team:default"


@pytest.mark.parametrize(("user", "expected"), [("ann", True), (OWN, True), (BAYPLAN, False)])
def test_the_placement_of_a_pod_that_waits_is_bayplans(user: str, expected: bool) -> None:
    """By it a pod may be let in; a pod that does not wait, and an annotation that stays, say nothing."""
    waits, says = gated("bayplan.dev/queued"), '{"decision":"queued","waitsFor":"eviction"}'
    forged = gated("bayplan.dev/queued", says)
    assert Variables(forged, waits, user=user)["rewrites"] is expected
    assert not Variables(forged, forged, user=user)["rewrites"]
    assert not Variables(waits, forged, user=user)["rewrites"]
    assert not Variables(gated("", says), gated(""), user=user)["rewrites"]


@pytest.mark.parametrize(("user", "expected"), [("ann", True), (OWN, True), (KUEUE, False)])
def test_kueues_gate_is_kueues(user: str, expected: bool) -> None:
    """A pod with it is not planned, so it must not start without Kueue."""
    waits = gated(KUEUE_TOPOLOGY_GATE)
    assert Variables(gated(""), waits, user=user)["opensKueues"] is expected
    assert not Variables(waits, waits, user=user)["opensKueues"]
    assert not Variables(gated("example.com/other"), gated("example.com/other"), user=user)["opensKueues"]
