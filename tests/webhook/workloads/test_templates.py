"""A template shown as a Pod, and put back."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from tests.webhook.workloads import objects as o
from webhook.workloads import pod_of, read, write_pod


def every(obj: Any) -> Any:
    workload = read(obj)
    return (*workload.templates, *workload.inlined)


@pytest.mark.parametrize("obj", o.EVERY, ids=lambda obj: obj["kind"])
def test_put_back_unchanged_nothing_changes(obj: Any) -> None:
    """Showing a template and writing it back leaves the object as it was, and never touches the original."""
    before = copy.deepcopy(obj)
    for template in every(obj):
        assert write_pod(obj, template, pod_of(template, obj)) == before
    assert obj == before


@pytest.mark.parametrize("obj", o.EVERY, ids=lambda obj: obj["kind"])
def test_a_change_reaches_the_template(obj: Any) -> None:
    """What is changed in the Pod is found there when the template is shown again."""
    for template in every(obj):
        pod = pod_of(template, obj)
        pod["spec"]["schedulerName"] = "kai-scheduler"
        pod["metadata"].setdefault("annotations", {})["example.com/seen"] = "true"
        again = pod_of(template, write_pod(obj, template, pod))
        assert again == pod


def test_a_shown_template_is_a_pod_of_the_objects_namespace() -> None:
    """Policies see kind, apiVersion and namespace as on a real Pod."""
    pod = pod_of(read(o.JOB).templates[0], o.JOB)
    assert (pod["apiVersion"], pod["kind"], pod["metadata"]) == ("v1", "Pod", {"namespace": "team"})


def test_groves_labels_are_the_pods() -> None:
    """A clique's labels stand beside its spec; its name and replicas are not the pod's."""
    pod = pod_of(read(o.GROVE).inlined[0], o.GROVE)
    assert pod["metadata"] == {"labels": {"role": "prefill"}, "namespace": "team"}
    assert "containers" in pod["spec"]
