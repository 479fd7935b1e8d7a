"""A gang is planned with the containers that another webhook adds to its pods."""

from __future__ import annotations

import pytest

from planner.model.errors import InputError
from tests.webhook.workloads import objects as o
from webhook.workloads import read

TEMPLATE = ("spec", "template")
MOUNTS = {"annotations": {"gke-gcsfuse/volumes": "true", "gke-gcsfuse/memory-limit": "1Ti"}}
MOUNTING = o.changed(o.JOB, (*TEMPLATE, "metadata"), MOUNTS)


def test_the_pods_of_a_job_request_what_the_sidecar_takes() -> None:
    """Else a node would look large enough on which the pod, with the sidecar, stays pending."""
    (without,), (group,) = read(o.JOB).gangs, read(MOUNTING).gangs
    before, after = (gang.pod_sets[0].shape.requests for gang in (without, group))
    assert after.get("memory", 0) - before.get("memory", 0) == 2**40


def test_an_error_names_the_index_that_the_container_has_in_the_manifest() -> None:
    """The sidecar comes before it, and is in no manifest."""
    wrong = [{"name": "load", "resources": {"requests": {"cpu": "many"}}}]
    with pytest.raises(InputError, match=r"initContainers\[0\]"):
        read(o.changed(MOUNTING, (*TEMPLATE, "spec", "initContainers"), wrong))
