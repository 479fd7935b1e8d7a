"""The schemas of the built-in kinds: fields, and how apply merges them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from webhook.cel import lookup
from webhook.cel.values import schema
from webhook.cel.values.schema import SchemaNode

POD_SPEC = schema.type_schema("PodSpec")

LISTS = [
    ("containers", "map", ("name",)),
    ("initContainers", "map", ("name",)),
    ("ephemeralContainers", "map", ("name",)),
    ("volumes", "map", ("name",)),
    ("imagePullSecrets", "map", ("name",)),
    ("hostAliases", "map", ("ip",)),
    ("topologySpreadConstraints", "map", ("topologyKey", "whenUnsatisfiable")),
    ("schedulingGates", "map", ("name",)),
    ("resourceClaims", "map", ("name",)),
    ("tolerations", "atomic", ()),
    ("readinessGates", "atomic", ()),
]
CONTAINER_LISTS = [
    ("env", "map", ("name",)),
    ("ports", "map", ("containerPort", "protocol")),
    ("volumeMounts", "map", ("mountPath",)),
    ("volumeDevices", "map", ("devicePath",)),
    ("envFrom", "atomic", ()),
    ("command", "atomic", ()),
    ("args", "atomic", ()),
]
TEMPLATES = [
    ("apps/v1", "Deployment", ("spec", "template")),
    ("apps/v1", "ReplicaSet", ("spec", "template")),
    ("apps/v1", "StatefulSet", ("spec", "template")),
    ("apps/v1", "DaemonSet", ("spec", "template")),
    ("batch/v1", "Job", ("spec", "template")),
    ("batch/v1", "CronJob", ("spec", "jobTemplate", "spec", "template")),
    ("v1", "PodTemplate", ("template",)),
]


@pytest.mark.parametrize(("field", "list_type", "keys"), LISTS)
def test_a_pods_lists_merge_as_the_api_declares(field: str, list_type: str, keys: tuple[str, ...]) -> None:
    """The list type and its keys are those of the OpenAPI document."""
    node = POD_SPEC.fields[field]
    assert (node.kind, node.list_type, node.list_map_keys) == ("list", list_type, keys)


@pytest.mark.parametrize(("field", "list_type", "keys"), CONTAINER_LISTS)
def test_a_containers_lists_merge_as_the_api_declares(
    field: str, list_type: str, keys: tuple[str, ...]
) -> None:
    """The same for the lists of each container."""
    containers = POD_SPEC.fields["containers"].items
    assert containers is not None
    node = containers.fields[field]
    assert (node.list_type, node.list_map_keys) == (list_type, keys)


@pytest.mark.parametrize(("api_version", "kind", "path"), TEMPLATES)
def test_every_workload_has_the_pod_template(api_version: str, kind: str, path: tuple[str, ...]) -> None:
    """A workload's template is a PodTemplateSpec wherever the kind keeps it."""
    root = lookup(api_version, kind)
    assert root is not None
    assert root.at_path(path) == schema.type_schema("PodTemplateSpec")
    assert root.at_path((*path, "spec", "containers", "0", "image")) == SchemaNode("string")


def test_a_node_selector_is_replaced_whole_and_labels_are_merged() -> None:
    """The map type tells the two apart."""
    assert POD_SPEC.fields["nodeSelector"].map_type == "atomic"
    assert schema.type_schema("ObjectMeta").fields["labels"].map_type == "granular"


def test_node_affinity_is_replaced_whole_below_required() -> None:
    """The required terms are one atomic object with atomic lists in it."""
    required = schema.type_schema("NodeAffinity").fields["requiredDuringSchedulingIgnoredDuringExecution"]
    assert required.map_type == "atomic"
    assert required.fields["nodeSelectorTerms"].list_type == "atomic"


def test_finalizers_are_a_set_and_owners_merge_by_uid() -> None:
    """The lists of the metadata."""
    fields = schema.type_schema("ObjectMeta").fields
    assert fields["finalizers"].list_type == "set"
    assert fields["ownerReferences"].list_map_keys == ("uid",)


def test_a_ports_protocol_is_tcp_unless_told() -> None:
    """The one default that a merge by key needs."""
    protocol = schema.type_schema("ContainerPort").fields["protocol"]
    assert (protocol.has_default, protocol.default) == (True, "TCP")


def test_an_unknown_kind_has_no_schema() -> None:
    """Kinds of other groups are not checked; nor is a built-in kind under another version."""
    assert lookup("kubeflow.org/v1", "PyTorchJob") is None
    assert lookup("v1", "Deployment") is None


def test_a_path_that_does_not_exist_has_no_node() -> None:
    """A misspelt field, or one below a scalar, is None; so is what lies beyond what is known."""
    pod = lookup("v1", "Pod")
    assert pod is not None
    assert pod.at_path(("spec", "nodeSelectors")) is None
    assert pod.at_path(("spec", "priority", "deeper")) is None
    assert pod.at_path(("metadata", "labels", "app")) == SchemaNode("string")


def _walk(node: SchemaNode) -> Iterator[SchemaNode]:
    yield node
    for child in [*node.fields.values(), *([node.items] if node.items else [])]:
        yield from _walk(child)


@pytest.mark.parametrize(("api_version", "kind"), schema.kinds())
def test_every_list_of_every_kind_says_how_it_merges(api_version: str, kind: str) -> None:
    """No list lacks its type, no keyed list its keys, and each key is a field of the element."""
    root = lookup(api_version, kind)
    assert root is not None
    lists = [node for node in _walk(root) if node.kind == "list"]
    assert len(lists) > 20
    for node in lists:
        assert node.list_type is not None
        assert node.items is not None
        assert bool(node.list_map_keys) == (node.list_type == "map")
        assert node.items.kind == "any" or set(node.list_map_keys) <= node.items.fields.keys()
