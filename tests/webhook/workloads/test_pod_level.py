"""Devices among the resources of a whole pod, which the API server refuses, are told."""

from __future__ import annotations

import pytest

from tests.webhook.workloads import objects as o
from webhook.workloads import read

POD_SPEC = ("spec", "template", "spec")


def test_resources_that_are_indented_too_little_are_told() -> None:
    """They are then those of the pod, and not of its last container; the plan alone would not show it."""
    job = o.changed(o.JOB, (*POD_SPEC, "resources"), {"limits": {"nvidia.com/gpu": 8, "cpu": "4"}})
    (group,) = read(job).gangs
    (warning,) = group.warnings
    assert warning == (
        "spec.template.spec.resources: Kubernetes takes only cpu, memory and hugepages for a whole pod, not "
        "nvidia.com/gpu. What would work: these resources in a container"
    )


@pytest.mark.parametrize("limits", [{"cpu": "4", "memory": "8Gi"}, {"hugepages-2Mi": "64Mi"}])
def test_what_a_whole_pod_may_ask_for_is_not_told(limits: dict[str, str]) -> None:
    """Since Kubernetes 1.34 a pod may state these for all its containers."""
    (group,) = read(o.changed(o.JOB, (*POD_SPEC, "resources"), {"limits": limits})).gangs
    assert group.warnings == ()
