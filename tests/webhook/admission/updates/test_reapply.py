"""A second `kubectl apply` of an object whose lists kubectl replaces: what admission wrote there stays."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from tests.webhook.workloads.objects import JOB_SET
from webhook.admission.updates.reapply import with_applied, with_former_templates
from webhook.workloads import read
from webhook.workloads.keys.annotation_keys import APPLIED

GATE = [{"name": "bayplan.dev/queued"}]
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def with_image(manifest: dict[str, Any], image: str) -> dict[str, Any]:
    """A copy whose workers have another image."""
    changed = copy.deepcopy(manifest)
    pod = changed["spec"]["replicatedJobs"][1]["template"]["spec"]["template"]
    pod["spec"]["containers"][0]["image"] = image
    return changed


def noted(manifest: dict[str, Any], obj: dict[str, Any]) -> dict[str, Any]:
    """The object with kubectl's own note that the manifest is what it last applied."""
    copied = copy.deepcopy(obj)
    copied["metadata"].setdefault("annotations", {})[LAST_APPLIED] = json.dumps(manifest)
    return copied


def stored(manifest: dict[str, Any]) -> dict[str, Any]:
    """What admission made of it when its gang was queued."""
    gated = copy.deepcopy(manifest)
    for replicated in gated["spec"]["replicatedJobs"]:
        replicated["template"]["spec"]["template"]["spec"]["schedulingGates"] = GATE
    return dict(with_applied(gated, manifest, read(manifest)))


def never() -> dict[str, Any]:
    """What it would get now, which is something else: its gang has a place."""
    return {**JOB_SET, "spec": {"replicatedJobs": []}}


def without_plan(obj: dict[str, Any]) -> dict[str, Any]:
    """The object without the plan's fields, of which it has none."""
    return obj


def test_what_was_applied_before_gets_what_it_got_before() -> None:
    """The template keeps `queued`, although there is room now, because a Job's template cannot change."""
    old = stored(JOB_SET)
    after = with_former_templates(JOB_SET, old, read(JOB_SET), never, without_plan)
    assert after["spec"] == old["spec"]


def test_a_changed_manifest_is_taken_as_it_is() -> None:
    """The user reduced the number of pods."""
    changed = copy.deepcopy(JOB_SET)
    changed["spec"]["replicatedJobs"][1]["template"]["spec"]["parallelism"] = 1
    assert with_former_templates(changed, stored(JOB_SET), read(changed), never, without_plan) is changed


def test_an_edit_is_taken_as_it_is() -> None:
    """`kubectl edit` removes the gate, and sends something other than the applied manifest."""
    update = stored(JOB_SET)
    update["spec"]["replicatedJobs"][1]["template"]["spec"]["template"]["spec"]["schedulingGates"] = []
    assert with_former_templates(update, stored(JOB_SET), read(JOB_SET), never, without_plan) is update


@pytest.mark.parametrize("mended", [True, False], ids=["mended", "left as it came"])
def test_the_manifest_applied_again_takes_back_an_edit(mended: bool) -> None:
    """Of what admission left as it came, in `audit` or before Bayplan, it has nothing to keep; and kubectl's
    note of what was last applied is the same before and after, for `kubectl edit` leaves it alone."""
    edited = with_image(JOB_SET, "trainer:2")
    old = noted(JOB_SET, stored(edited) if mended else edited)
    again = noted(JOB_SET, JOB_SET)
    assert with_former_templates(again, old, read(again), never, without_plan) is again


@pytest.mark.parametrize("digests", ["", "/", "{", "null", "a/b/c", "0123456789abcdef/"])
def test_invalid_digests_are_ignored(digests: str) -> None:
    """A user can write any value into the annotation."""
    old = stored(JOB_SET)
    old["metadata"]["annotations"][APPLIED] = digests
    assert with_former_templates(JOB_SET, old, read(JOB_SET), never, without_plan) is JOB_SET


def test_without_digests_the_same_plan_again_is_the_same_object() -> None:
    """They are gone where a client replaced all annotations: what would be made of it now tells."""
    old = stored(JOB_SET)
    del old["metadata"]["annotations"][APPLIED]
    update = copy.deepcopy(JOB_SET)
    assert with_former_templates(update, old, read(update), lambda: old, without_plan)["spec"] == old["spec"]


@pytest.mark.parametrize("digests", [[], ["a/b"], 1, None, {"a": "b"}], ids=str)
def test_digests_of_any_type_are_written_anew(digests: object) -> None:
    """Annotations of a request may have any type until the API server validates them."""
    manifest = copy.deepcopy(JOB_SET)
    manifest["metadata"].setdefault("annotations", {})[APPLIED] = digests
    gated = copy.deepcopy(manifest)
    gated["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]["schedulingGates"] = GATE
    after = with_applied(gated, manifest, read(JOB_SET))
    assert after["metadata"]["annotations"][APPLIED].count("/") == 1
