"""The request that applying a manifest would cause."""

from __future__ import annotations

import pytest

from webhook.wire.request import from_object


@pytest.mark.parametrize(
    ("api_version", "kind", "namespace"),
    [
        ("v1", "Node", ""),
        ("v1", "Pod", "default"),
        ("kueue.x-k8s.io/v1beta2", "Cohort", ""),
        ("kueue.x-k8s.io/v1beta2", "LocalQueue", "default"),
        ("networking.k8s.io/v1", "ServiceCIDR", ""),
        ("scheduling.run.ai/v2", "Queue", ""),
        ("queues.example.com/v1", "Queue", "default"),
        ("kai.scheduler/v1alpha1", "Topology", ""),
        ("example.com/v1", "Topology", "default"),
        ("storage.k8s.io/v1", "VolumeAttributesClass", ""),
    ],
)
def test_a_kind_is_cluster_scoped_by_its_api_group(api_version: str, kind: str, namespace: str) -> None:
    """A kind of the same name in another group may have a namespace."""
    manifest = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "a"}}
    request = from_object(manifest)
    assert request.namespace == namespace
    assert (request.namespace_object is None) is (namespace == "")
