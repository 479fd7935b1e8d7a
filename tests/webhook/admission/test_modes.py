"""Modes by namespace: enforce acts, warn sends warnings, audit writes the audit log, off does nothing."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.cluster.snapshot import Snapshot
from planner.ledger.conflicts import Wish
from tests.policies.helpers import cluster, policies
from tests.webhook.calls import example
from tests.webhook.policy.helpers import check, loaded, mutating, patch, validating
from tests.webhook.workloads import objects as o
from webhook.admission.configuration.settings import MODES, Settings, same_in_all_namespaces
from webhook.admission.decision import decide
from webhook.admission.decision_record import Decision, Phase
from webhook.admission.environment import Environment
from webhook.admission.ledger_steps import ReservationClaim, ReservationRelease
from webhook.admission.modes import MAX_ANNOTATION, MAX_TEXT, mode_in_force
from webhook.policy.model.policy import PolicySet
from webhook.wire.request import from_object
from webhook.wire.review import Response, fit_warnings
from webhook.workloads.options import MODE, NAMESPACE_MODES

Json = dict[str, Any]
HALL = cluster("superpod-32")
FITS, NEVER = "job-six-nodes-one-rack", "job-unknown-level"
QUIET = ("warn", "audit", "off")
JOBS = {"operations": ["CREATE"], "apiGroups": ["batch"], "apiVersions": ["v1"], "resources": ["jobs"]}
WRITE = '[JSONPatch{op: "add", path: "/metadata/annotations/KEY", value: "v"}]'


def space(mode: object) -> Json:
    """The namespace of the examples with this label."""
    labels = {} if mode is None else {MODE: mode}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "research", "labels": labels}}


def asked(
    obj: Json,
    mode: object,
    phase: Phase = "mutate",
    *,
    on: Snapshot | None = HALL,
    default: Any = "enforce",
    by: PolicySet | None = None,
    **words: Any,
) -> Decision:
    """The decision on an object in a namespace with this label; `default` is the mode of namespaces without
    it.
    """
    around = Environment({"research": space(mode)}, settings=same_in_all_namespaces(Settings(default)))
    return decide(from_object(obj, uid="uid", **words), by or policies(), on, phase, around)


def full() -> Snapshot:
    """The cluster, fully used by a gang of another namespace."""
    snapshot = HALL
    for number in range(40):
        job = example(FITS)
        job["metadata"] = {"name": f"filler-{number}", "namespace": "others"}
        plan = decide(from_object(job, uid=str(number)), policies(), snapshot, "mutate").plan
        assert plan is not None
        if not plan.reservations:
            return snapshot
        snapshot = snapshot.with_reservation(plan.reservations[0])
    raise AssertionError("the cluster is never full")


def test_the_modes_are_those_of_the_reference() -> None:
    """The table of keys has the same values as the settings."""
    assert MODES == NAMESPACE_MODES


@pytest.mark.parametrize("default", MODES)
@pytest.mark.parametrize("mode", MODES)
def test_the_label_of_a_namespace_is_its_mode(mode: Any, default: Any) -> None:
    """The label takes precedence over the mode of other namespaces."""
    force = mode_in_force(space(mode), Settings(default))
    assert (force.mode, force.warning) == (mode, "")


@pytest.mark.parametrize("default", MODES)
@pytest.mark.parametrize(
    "namespace", [None, {}, {"metadata": {}}, {"metadata": {"labels": None}}, space(None)]
)
def test_a_namespace_without_the_label_has_the_mode_of_the_settings(namespace: Any, default: Any) -> None:
    """So has a namespace that is deleted or unknown."""
    force = mode_in_force(namespace, Settings(default))
    assert (force.mode, force.warning) == (default, "")


@pytest.mark.parametrize(
    ("label", "shown"),
    [("enforced", '"enforced"'), ("", '""'), ("Warn", '"Warn"'), (False, "false, which is no string")],
)
def test_a_label_that_is_no_mode_is_told_and_the_default_serves(label: Any, shown: str) -> None:
    """The warning names the value and the valid ones; `off` without quotes is false in YAML."""
    force = mode_in_force(space(label), Settings("audit"))
    assert force.mode == "audit"
    for word in ("namespace research", MODE, shown, "enforce, warn, audit, off", "Mode audit applies"):
        assert word in force.warning
    response = asked(example(FITS), label, default="audit").response
    assert (response.allowed, list(response.patch), list(response.warnings)) == (True, [], [force.warning])


def test_enforce_does_not_change_the_answer() -> None:
    """Patch, steps and plan stay; an audit annotation states the mode."""
    decision = asked(example(FITS), "enforce", default="audit")
    assert decision.response.patch
    assert [type(step) for step in decision.steps] == [Wish]
    assert decision.response.audit_annotations["mode"] == "enforce"
    assert not asked(example(NEVER), "enforce", default="audit").response.allowed


def test_warn_says_what_would_be_changed_and_changes_nothing() -> None:
    """One warning lists policies and fields, and the plan stays for reports."""
    obj = example(FITS)
    decision = asked(obj, "warn")
    (warning,) = decision.response.warnings
    assert warning.startswith("would be changed by guaranteed-qos, kai-batch-min-member, kai-queue")
    assert "spec.template.spec.containers[0].resources" in warning
    assert decision.object == obj
    assert decision.plan is not None
    assert decision.plan.decision == "admitted"
    assert decision.outcome == "changed"


def test_warn_says_what_would_be_refused_and_refuses_nothing() -> None:
    """The warning has the message of the refusal and nothing about the patch."""
    refused, warned = asked(example(NEVER), "enforce").response, asked(example(NEVER), "warn").response
    assert (refused.allowed, warned.allowed) == (False, True)
    assert warned.warnings[0] == f"would be refused: {refused.message}"
    assert set(warned.warnings[1:]) <= set(refused.warnings), "what policies say of the object as it is"


def test_warn_says_what_would_be_queued_and_gates_nothing() -> None:
    """The warning says what the gang would wait for."""
    decision = asked(example(FITS), "warn", on=full())
    queued = [warning for warning in decision.response.warnings if "queued" in warning]
    assert len(queued) == 1
    assert queued[0].startswith("would be queued: research/Job/pretrain-medium: ")
    assert "is queued" not in " ".join(decision.response.warnings)
    assert "schedulingGates" not in str(decision.object)
    assert decision.outcome == "queued"


def test_warn_keeps_what_a_policy_warns_of_and_marks_what_enforce_would_warn_of() -> None:
    """A policy's own warning is about the object as it is; what is said of the patch has not come about."""
    old = copy.deepcopy(o.DEPLOYMENT)
    old["metadata"]["namespace"] = "research"
    new = copy.deepcopy(old)
    new["spec"]["template"]["spec"]["containers"][0]["image"] = "another"
    enforced = asked(new, "enforce", operation="UPDATE", old_object=old).response
    (replaced,) = [warning for warning in enforced.warnings if "will be replaced" in warning]
    warned = asked(new, "warn", operation="UPDATE", old_object=old).response
    assert f"would warn: {replaced}" in warned.warnings
    assert replaced not in warned.warnings
    spelt = o.annotated(example(FITS), {"kai.scheduler/topology-required-placment": "rack"})
    warnings = [warning for warning in asked(spelt, "enforce").response.warnings if "placment" in warning]
    assert warnings
    assert set(warnings) <= set(asked(spelt, "warn").response.warnings)


def test_audit_is_warn_without_the_warnings() -> None:
    """The audit annotations are the same."""
    for name in (FITS, NEVER):
        warned, audited = (asked(example(name), mode).response for mode in ("warn", "audit"))
        assert list(audited.warnings) == []
        audit_annotations = {**warned.audit_annotations, "mode": "audit"}
        assert (audited.allowed, list(audited.patch), audited.audit_annotations) == (
            True,
            [],
            audit_annotations,
        )


def test_the_audit_log_is_told_what_would_have_been() -> None:
    """One annotation each for refused, queued or changed, in the conditional."""
    changed = asked(example(FITS), "audit").response.audit_annotations
    assert "guaranteed-qos" in changed["would-change"]
    assert {"would-refuse", "would-queue", "changed"}.isdisjoint(changed)
    refused = asked(example(NEVER), "audit").response.audit_annotations
    assert "there is no level" in refused["would-refuse"]
    assert {"would-change", "would-queue"}.isdisjoint(refused)
    queued = asked(example(FITS), "audit", on=full()).response.audit_annotations
    assert queued["would-queue"].startswith("research/Job/pretrain-medium: ")


def test_in_off_nothing_is_looked_at() -> None:
    """The object is admitted without any annotation or warning."""
    decision = asked(example(NEVER), "off")
    assert decision.response == Response(True, warnings=[])
    assert (decision.plan, decision.findings, decision.effects) == (None, None, ())


@pytest.mark.parametrize("mode", ["warn", "audit"])
def test_the_validating_call_says_nothing_of_what_nobody_changed(mode: str) -> None:
    """It gets the unpatched object, and would report what the mutating call already reported."""
    decision = asked(o.annotated(example(FITS), {}), mode, "validate")
    assert decision.response == Response(True, warnings=[], audit_annotations={"mode": mode})
    assert decision.steps == ()


@pytest.mark.parametrize("mode", QUIET)
def test_a_namespace_that_becomes_enforced_between_the_calls_holds_nothing_for_the_object(mode: str) -> None:
    """The object was not pinned, so a reservation would block others for nothing."""
    stored = {**asked(example(FITS), mode).object, "metadata": {**example(FITS)["metadata"], "uid": "job"}}
    decision = asked(stored, "enforce", "validate")
    assert (decision.response.allowed, decision.steps) == (True, ())


def test_a_place_that_expired_between_the_calls_is_held_again() -> None:
    """The mutating call pinned the object to it."""
    planned = asked(example(FITS), "enforce").object
    assert planned is not None
    stored = {**planned, "metadata": {**planned["metadata"], "uid": "job"}}
    steps = asked(stored, "enforce", "validate").steps
    assert [type(step) for step in steps] == [Wish, ReservationClaim]


def test_a_malformed_object_is_refused_in_enforce_alone() -> None:
    """In the other modes the API server's validation decides."""
    obj = example(FITS)
    obj["spec"]["parallelism"] = "two"
    assert not asked(obj, "enforce").response.allowed
    warned = asked(obj, "warn")
    assert (warned.response.allowed, warned.malformed) == (True, True)
    assert "spec.parallelism" in warned.response.warnings[0]


@pytest.mark.parametrize("mode", MODES)
def test_a_deletion_releases_what_is_held_in_every_mode(mode: str) -> None:
    """A policy that refuses the deletion is not enforced in the other modes."""
    obj = example(FITS)
    plan = asked(obj, "enforce").plan
    assert plan is not None
    (held,) = plan.reservations
    on = HALL.with_reservation(held)
    gone = asked(obj, mode, "validate", on=on, operation="DELETE")
    assert gone.steps == (ReservationRelease(held.id),)
    keep = loaded(validating(check("false"), rule=JOBS | {"operations": ["DELETE"]}))
    kept = asked(obj, mode, "validate", on=on, by=keep, operation="DELETE")
    assert kept.response.allowed is (mode != "enforce")
    assert kept.steps == (() if mode == "enforce" else (ReservationRelease(held.id),))


def test_a_deletion_of_another_groups_object_releases_nothing() -> None:
    """Volcano has Jobs too: the place of the `batch` Job of that name stays."""
    obj = example(FITS)
    plan = asked(obj, "enforce").plan
    assert plan is not None
    (held,) = plan.reservations
    on = HALL.with_reservation(held)
    other = obj | {"apiVersion": "batch.volcano.sh/v1alpha1"}
    assert asked(other, "enforce", "validate", on=on, operation="DELETE").steps == ()


@pytest.mark.parametrize("mode", QUIET)
def test_a_pod_whose_owner_was_queued_before_is_not_gated_any_more(mode: str) -> None:
    """Its namespace has left enforce since."""
    pod = copy.deepcopy(o.POD)
    pod["metadata"]["namespace"] = "research"
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "waits", "uid": "1", "controller": True}
    pod["metadata"]["ownerReferences"] = [owner]
    response = asked(pod, mode, on=full()).response
    assert (response.allowed, list(response.patch)) == (True, [])


def test_warnings_are_bounded_whatever_policies_do() -> None:
    """Hundreds of policies, fields and a very long message become a few lines."""
    writers = [
        mutating(patch(WRITE.replace("KEY", f"key-{number}")), name=f"writer-{number}", rule=JOBS)
        for number in range(40)
    ]
    obj = o.annotated(example(FITS), {"a": "b"})
    warnings = asked(obj, "warn", by=loaded(*writers), on=None).response.warnings
    assert all(len(warning) <= MAX_TEXT for warning in warnings)
    assert " and 34 more: " in warnings[0]
    assert len(fit_warnings(warnings)) < 10
    loud = loaded(validating(check("false", message="x" * 4000), rule=JOBS))
    answers = [asked(obj, mode, by=loud).response for mode in ("warn", "audit")]
    assert len(answers[0].warnings[0]) == MAX_TEXT
    assert len(answers[1].audit_annotations["would-refuse"]) == MAX_ANNOTATION


EVERY = [
    *o.EVERY,
    *(example(name) for name in (FITS, NEVER, "job-76-gpus-one-rack", "job-without-resources")),
]


@given(
    obj=st.sampled_from(EVERY),
    mode=st.sampled_from(QUIET),
    phase=st.sampled_from(("mutate", "validate")),
    operation=st.sampled_from(("CREATE", "UPDATE", "DELETE")),
    with_cluster=st.booleans(),
    field=st.sampled_from(("", "spec", "metadata", "kind")),
)
def test_outside_enforce_nothing_is_ever_changed_refused_or_held(
    obj: Json, mode: str, phase: Phase, operation: Any, with_cluster: bool, field: str
) -> None:
    """For any object, also malformed ones; a dry run gets the same answer."""
    body = copy.deepcopy(obj)
    body["metadata"]["namespace"] = "research"
    if field in ("spec", "kind"):
        body[field] = [1] if field == "spec" else "Pod"
    words: Json = {"operation": operation, "on": HALL if with_cluster else None}
    words |= {"old_object": obj} if operation == "UPDATE" else {}
    decision = asked(body, mode, phase, **words)
    assert (decision.response.allowed, list(decision.response.patch)) == (True, [])
    assert all(isinstance(step, ReservationRelease) for step in decision.steps)
    assert decision.object == (None if operation == "DELETE" else body)
    assert asked(body, mode, phase, **words, dry_run=True) == decision


def test_those_that_are_not_enforced_are_told_by_name() -> None:
    """By their labels, or else by the default mode."""
    spaces = {"off": space("off"), "on": space("enforce"), "none": space(None)}
    for default, quiet in (("enforce", {"off"}), ("audit", {"off", "none", "unknown"})):
        around = Environment(spaces, settings=same_in_all_namespaces(Settings(default)))  # type: ignore[arg-type]
        assert around.observed(["off", "on", "none", "unknown", "off"]) == quiet
