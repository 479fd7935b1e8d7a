"""A second `kubectl apply` of an object whose lists kubectl replaces: what admission wrote there stays."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from tests.webhook.workloads.objects import JOB_SET
from webhook.admission.reapply import LAST_APPLIED, with_former_templates
from webhook.workloads import read

GATE = [{"name": "bayplan.dev/queued"}]


def applied(manifest: dict[str, Any]) -> dict[str, Any]:
    """The manifest as kubectl sends it, with its own note of it."""
    noted = copy.deepcopy(manifest)
    noted["metadata"]["annotations"] = {LAST_APPLIED: json.dumps(manifest)}
    return noted


def stored(manifest: dict[str, Any]) -> dict[str, Any]:
    """What admission made of it when its gang was queued."""
    gated = applied(manifest)
    for replicated in gated["spec"]["replicatedJobs"]:
        replicated["template"]["spec"]["template"]["spec"]["schedulingGates"] = GATE
    return gated


def never() -> dict[str, Any]:
    """What it would get now, which is something else: its gang has a place."""
    return {**JOB_SET, "spec": {"replicatedJobs": []}}


def test_what_was_applied_before_gets_what_it_got_before() -> None:
    """The gate stays although the gang would not be queued now: the templates can never change."""
    old = stored(JOB_SET)
    after = with_former_templates(applied(JOB_SET), old, read(JOB_SET), never)
    assert after["spec"] == old["spec"]


def test_a_changed_manifest_is_taken_as_it_is() -> None:
    """Somebody wants fewer pods."""
    changed = copy.deepcopy(JOB_SET)
    changed["spec"]["replicatedJobs"][1]["template"]["spec"]["parallelism"] = 1
    update = applied(changed)
    assert with_former_templates(update, stored(JOB_SET), read(changed), never) is update


def test_an_edit_is_taken_as_it_is() -> None:
    """`kubectl edit` leaves the note alone, and what it changes is not what was applied."""
    update = stored(JOB_SET)
    update["spec"]["replicatedJobs"][1]["template"]["spec"]["template"]["spec"]["schedulingGates"] = []
    assert with_former_templates(update, stored(JOB_SET), read(JOB_SET), never) is update


@pytest.mark.parametrize("note", ["", "{", "[]", "null", "3"])
def test_a_note_that_does_not_read_tells_nothing(note: str) -> None:
    """Anybody can write an annotation."""
    update = applied(JOB_SET)
    update["metadata"]["annotations"][LAST_APPLIED] = note
    assert with_former_templates(update, stored(JOB_SET), read(JOB_SET), never) is update


def test_without_a_note_the_same_plan_again_is_the_same_object() -> None:
    """Server-side apply keeps none: what would be made of it now tells."""
    old = stored(JOB_SET)
    update = copy.deepcopy(JOB_SET)
    assert with_former_templates(update, old, read(update), lambda: old)["spec"] == old["spec"]
