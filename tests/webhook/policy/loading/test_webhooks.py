"""Which objects the API server asks the shipped webhooks about: those that Bayplan could do anything to."""

from __future__ import annotations

from typing import Any

import pytest

from tests.webhook.workloads import objects as o
from webhook.cli.common.inputs import shipped
from webhook.files.reader import objects
from webhook.policy.loading.webhooks import asks_about, webhooks_from
from webhook.wire.request import from_object

Json = dict[str, Any]
MUTATING, VALIDATING = (doc.value for doc in objects([str(shipped("manifests") / "70-webhooks.yaml")]))
HOOKS = webhooks_from(MUTATING, "70-webhooks.yaml")


def asked(obj: Json, operation: str = "CREATE", hooks: Any = HOOKS, **labels: str) -> bool:
    """Whether a webhook is called for an object in a namespace with these labels."""
    space = {"metadata": {"name": obj["metadata"]["namespace"], "labels": labels}}
    return asks_about(hooks, from_object(obj, operation, namespace_object=space))


def deployment(gpus: int) -> Json:
    """With so many GPUs a pod."""
    return o.changed(o.DEPLOYMENT, ("spec", "template"), o.pod_template(gpus))


def test_it_is_asked_about_gpus_alone() -> None:
    """A Deployment without any is nobody's concern, whatever policies would write into it."""
    assert asked(deployment(1))
    assert not asked(deployment(0))
    assert asked(o.annotated(deployment(0), {"bayplan.dev/gang": "true"}))


def test_the_namespace_counts_as_the_selectors_say() -> None:
    """Neither the cluster's own programs nor those in `off`; any other mode, and none, is asked about."""
    assert not asked(o.changed(deployment(1), ("metadata", "namespace"), "kube-system"))
    for mode, called in (("off", False), ("audit", True), ("warn", True), ("enforce", True), ("tpyo", True)):
        assert asked(deployment(1), **{"bayplan.dev/mode": mode}) is called


def test_the_operation_and_the_webhook_count() -> None:
    """Pods are asked about when they are made; what holds a place is told of when it is deleted."""
    pod = o.changed(o.POD, ("spec",), o.pod_template(1)["spec"])
    assert asked(pod)
    assert not asked(pod, operation="UPDATE")
    assert asked(pod, hooks=webhooks_from(VALIDATING, "70-webhooks.yaml"))


@pytest.mark.parametrize("configuration", [{}, {"webhooks": []}, {"webhooks": None}])
def test_a_configuration_without_webhooks_asks_about_nothing(configuration: Json) -> None:
    """As when the off switch has taken them away."""
    assert not asked(deployment(1), hooks=webhooks_from(configuration, "here"))
