"""The admission request.

`webhook.wire.review` decodes it from an AdmissionReview; `from_object` makes one from a manifest. Field names
are those of `admission.k8s.io/v1` in snake case; `as_cel` returns the fields under their names in CEL.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from planner.model.pod import NAMESPACE_NAME_LABEL

Operation = Literal["CREATE", "UPDATE", "DELETE", "CONNECT"]


@dataclass(frozen=True, slots=True)
class GroupVersionKind:
    """A kind of object. `group`: "" for the core group."""

    group: str = ""
    version: str = ""
    kind: str = ""

    @classmethod
    def of(cls, obj: Mapping[str, Any]) -> GroupVersionKind:
        """Returns the kind of an object; a part that is missing or not a string is ""."""
        api_version, kind = obj.get("apiVersion"), obj.get("kind")
        group, _, version = (api_version if isinstance(api_version, str) else "").rpartition("/")
        return cls(group, version, kind if isinstance(kind, str) else "")

    @property
    def api_version(self) -> str:
        """The apiVersion, such as "v1" or "batch/v1"."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def as_cel(self) -> dict[str, str]:
        """Returns the value of `request.kind`."""
        return {"group": self.group, "version": self.version, "kind": self.kind}


@dataclass(frozen=True, slots=True)
class GroupVersionResource:
    """A resource of the API. `resource`: the lower-case plural of the kind."""

    group: str = ""
    version: str = ""
    resource: str = ""

    def as_cel(self) -> dict[str, str]:
        """Returns the value of `request.resource`."""
        return {"group": self.group, "version": self.version, "resource": self.resource}


@dataclass(frozen=True, slots=True)
class UserInfo:
    """The user who sent the request."""

    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def as_cel(self) -> dict[str, Any]:
        """Returns the value of `request.userInfo`."""
        extra = {key: list(values) for key, values in self.extra.items()}
        return {"username": self.username, "uid": self.uid, "groups": list(self.groups), "extra": extra}


@dataclass(frozen=True, slots=True)
class AdmissionRequest:
    """An admission request. `object`: None on DELETE. `old_object`: None on CREATE.

    `namespace`: "" for cluster-scoped kinds. `namespace_object`: the Namespace, whose labels a
    namespaceSelector matches; None if unknown. `request_kind`, `request_resource`: those of the original
    request, if the API server converted the object to another version for the webhook; None if not stated.
    """

    uid: str
    operation: Operation
    kind: GroupVersionKind
    resource: GroupVersionResource
    sub_resource: str = ""
    request_kind: GroupVersionKind | None = None
    request_resource: GroupVersionResource | None = None
    request_sub_resource: str = ""
    name: str = ""
    namespace: str = ""
    user_info: UserInfo = UserInfo()
    object: Mapping[str, Any] | None = None
    old_object: Mapping[str, Any] | None = None
    dry_run: bool = False
    options: Mapping[str, Any] | None = None
    namespace_object: Mapping[str, Any] | None = None

    @property
    def namespace_labels(self) -> Mapping[str, str]:
        """The labels of the namespace, with `kubernetes.io/metadata.name` added; {} without a namespace."""
        metadata = (self.namespace_object or {}).get("metadata")
        labels = metadata.get("labels") if isinstance(metadata, Mapping) else None
        stated = labels if isinstance(labels, Mapping) else {}
        return {**stated, NAMESPACE_NAME_LABEL: self.namespace} if self.namespace else stated

    @property
    def display_name(self) -> str:
        """NAMESPACE/KIND/NAME for messages; "" for a cluster-scoped object, or one without a name.

        A Namespace is cluster-scoped, although the API server sends its name as its namespace.
        """
        in_namespace = self.namespace and self.name and self.kind.kind != "Namespace"
        return f"{self.namespace}/{self.kind.kind}/{self.name}" if in_namespace else ""

    def as_cel(self) -> dict[str, Any]:
        """Returns the value of the variable `request`. `object` and `oldObject` are separate variables."""
        request_kind = self.request_kind or self.kind
        request_resource = self.request_resource or self.resource
        return {
            "uid": self.uid,
            "kind": self.kind.as_cel(),
            "resource": self.resource.as_cel(),
            "subResource": self.sub_resource,
            "requestKind": request_kind.as_cel(),
            "requestResource": request_resource.as_cel(),
            "requestSubResource": self.request_sub_resource or self.sub_resource,
            "name": self.name,
            "namespace": self.namespace,
            "operation": self.operation,
            "userInfo": self.user_info.as_cel(),
            "dryRun": self.dry_run,
            "options": self.options or {},
        }


CLUSTER_SCOPED: Mapping[str, frozenset[str]] = {
    "": frozenset({"Namespace", "Node", "PersistentVolume"}),
    "admissionregistration.k8s.io": frozenset(
        {
            "MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding", "MutatingWebhookConfiguration",
            "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding",
            "ValidatingWebhookConfiguration",
        }
    ),
    "apiextensions.k8s.io": frozenset({"CustomResourceDefinition"}),
    "apiregistration.k8s.io": frozenset({"APIService"}),
    "authentication.k8s.io": frozenset({"SelfSubjectReview", "TokenReview"}),
    "authorization.k8s.io": frozenset(
        {"SelfSubjectAccessReview", "SelfSubjectRulesReview", "SubjectAccessReview"}
    ),
    "bayplan.dev": frozenset({"Reservation", "Topology"}),
    "certificates.k8s.io": frozenset({"CertificateSigningRequest", "ClusterTrustBundle"}),
    "flowcontrol.apiserver.k8s.io": frozenset({"FlowSchema", "PriorityLevelConfiguration"}),
    "kai.scheduler": frozenset({"Config", "SchedulingShard", "Topology"}),
    "kueue.x-k8s.io": frozenset(
        {
            "AdmissionCheck", "ClusterQueue", "Cohort", "MultiKueueCluster", "MultiKueueConfig",
            "ProvisioningRequestConfig", "ResourceFlavor", "Topology", "WorkloadPriorityClass",
        }
    ),
    "networking.k8s.io": frozenset({"IPAddress", "IngressClass", "ServiceCIDR"}),
    "node.k8s.io": frozenset({"RuntimeClass"}),
    "rbac.authorization.k8s.io": frozenset({"ClusterRole", "ClusterRoleBinding"}),
    "resource.k8s.io": frozenset({"DeviceClass", "DeviceTaintRule", "ResourceSlice"}),
    "scheduling.k8s.io": frozenset({"PriorityClass"}),
    "scheduling.run.ai": frozenset({"Queue"}),
    "scheduling.volcano.sh": frozenset({"Queue"}),
    "storage.k8s.io": frozenset(
        {"CSIDriver", "CSINode", "StorageClass", "VolumeAttachment", "VolumeAttributesClass"}
    ),
    "storagemigration.k8s.io": frozenset({"StorageVersionMigration"}),
    "topology.node.k8s.io": frozenset({"NodeResourceTopology"}),
    "topology.volcano.sh": frozenset({"HyperNode"}),
}  # fmt: skip
"""The cluster-scoped kinds that `from_object` knows, by API group: those of Kubernetes, of schedulers and of
Bayplan. Any other kind counts as namespaced.
"""


def plural(kind: str) -> str:
    """Returns the resource of a kind: Pod → pods, Ingress → ingresses, NetworkPolicy → networkpolicies."""
    lower = kind.lower()
    if lower.endswith(("ss", "x", "ch", "sh")):
        return lower + "es"
    if lower.endswith("y") and lower[-2:-1] not in ("a", "e", "o", "u", ""):
        return lower[:-1] + "ies"
    return lower if lower.endswith("s") else lower + "s"


def namespace_named(name: str, labels: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Returns a Namespace object with this name and these labels."""
    metadata = {"name": name, "labels": {**(labels or {}), NAMESPACE_NAME_LABEL: name}}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}


def from_object(
    obj: Mapping[str, Any],
    operation: Operation = "CREATE",
    *,
    old_object: Mapping[str, Any] | None = None,
    namespace: str = "default",
    namespace_object: Mapping[str, Any] | None = None,
    user_info: UserInfo | None = None,
    uid: str = "",
    dry_run: bool = False,
    sub_resource: str = "",
) -> AdmissionRequest:
    """Returns the request that applying a manifest would cause.

    `namespace`: the namespace of namespaced objects that state none. `namespace_object`: by default, a
    Namespace without labels of its own. On DELETE, `obj` is the deleted object; as from the API server, the
    request then has it as `old_object`, and `object` is None.
    """
    kind = GroupVersionKind.of(obj)
    raw = obj.get("metadata")
    metadata: Mapping[str, Any] = raw if isinstance(raw, Mapping) else {}
    scoped = kind.kind in CLUSTER_SCOPED.get(kind.group, ())
    own_name, own_namespace = metadata.get("name"), metadata.get("namespace")
    place = "" if scoped else own_namespace if isinstance(own_namespace, str) and own_namespace else namespace
    deleted = operation == "DELETE"
    return AdmissionRequest(
        uid=uid,
        operation=operation,
        kind=kind,
        resource=GroupVersionResource(kind.group, kind.version, plural(kind.kind)),
        sub_resource=sub_resource,
        name=own_name if isinstance(own_name, str) else "",
        namespace=place,
        user_info=user_info or UserInfo(),
        object=None if deleted else obj,
        old_object=obj if deleted else old_object,
        dry_run=dry_run,
        namespace_object=namespace_object or (namespace_named(place) if place else None),
    )
