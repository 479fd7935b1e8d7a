"""The parameter objects to which a binding refers, and why there are none. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from operator import is_
from typing import Any, Literal

from webhook.policy.engine.inputs import Object, Params
from webhook.policy.model.policy import ParamKind, ParamRef, Policy, PolicyBinding
from webhook.wire.request import CLUSTER_SCOPED, AdmissionRequest, GroupVersionKind

_NAMESPACE = GroupVersionKind("", "v1", "Namespace")


@dataclass(slots=True)
class RequestParams:
    """The parameter objects of one request, selected once for all policies: nearly all policies of a set use
    the same object.
    """

    source: Params
    request: AdmissionRequest
    _selected: dict[tuple[int, int, bool], list[Object]] = field(default_factory=dict)
    """By the identities of a paramKind and a paramRef, which policies keep alive and share, and whether the
    policy has no binding.
    """
    _unchanged: dict[int, tuple[object, bool]] = field(default_factory=dict)
    """By the `id` of `former` (see `are_unchanged`): `former`, which is kept alive, and the result."""

    def objects(self, kind: ParamKind, ref: ParamRef, *, unbound: bool) -> list[Object]:
        """Returns the objects to which a paramRef refers (see `selected`)."""
        key = id(kind), id(ref), unbound
        if key not in self._selected:
            self._selected[key] = selected(self.source, kind, ref, self.request, unbound=unbound)
        return self._selected[key]

    def former(self, kind: ParamKind, ref: ParamRef, *, unbound: bool) -> list[Object] | None:
        """Returns what `objects` has returned; None if no policy has asked for it yet."""
        return self._selected.get((id(kind), id(ref), unbound))

    def are_unchanged(self, kind: ParamKind, ref: ParamRef, unbound: bool, former: list[Object]) -> bool:
        """Returns whether a paramRef refers to the same objects as in the request of `former`."""
        remembered = self._unchanged.get(id(former))
        if remembered is None:  # nearly all policies of a form share `former`
            objects = self.objects(kind, ref, unbound=unbound)
            unchanged = len(objects) == len(former) and all(map(is_, objects, former))
            remembered = self._unchanged[id(former)] = former, unchanged
        return remembered[1]


def selected(
    source: Params, kind: ParamKind, ref: ParamRef, request: AdmissionRequest, *, unbound: bool
) -> list[Object]:
    """Returns the objects of a paramKind to which a paramRef refers; none if it is wrong (`fault`).

    Without a namespace in paramRef these are objects of the request's namespace, as upstream; an object in a
    file without a namespace is used for every namespace. The implicit binding of a policy without bindings
    (`unbound`) refers to the objects of all namespaces.
    """
    if _names_a_namespace_in_vain(kind, ref):
        return []
    spaces = (None, "", _namespace(ref, request))
    return [
        item
        for item in source.objects(kind)
        if (not ref.name or _meta(item, "name") == ref.name)
        and (ref.selector is None or ref.selector.matches(_meta(item, "labels") or {}))
        and (unbound or _meta(item, "namespace") in spaces)
    ]


def fault(policy: Policy, binding: PolicyBinding, request: AdmissionRequest, source: Params) -> str:
    """Returns why a binding without a parameter object is a configuration error, as upstream; "" if it is
    none.

    The implicit binding (`name` is "") does not allow missing parameters.
    """
    kind, ref = policy.param_kind, binding.param_ref
    if kind is None or ref is None:
        return ""
    if not binding.name:
        return f"no parameters: there is no {kind.kind}"
    if _names_a_namespace_in_vain(kind, ref):
        return (
            f"no parameters: the paramRef of binding {binding.name!r} must not name a namespace, because "
            f"{kind.kind} is cluster-scoped"
        )
    allowed = not ref.deny_if_missing
    if allowed and policy.runs_without_params:
        return ""
    if not _namespace(ref, request) and _is_namespaced(kind, source):
        return (
            f"no parameters: the paramRef of binding {binding.name!r} needs a namespace, because "
            f"{kind.kind} is namespaced and {request.kind.kind} is not"
        )
    if allowed:
        return ""
    place = f"{ref.namespace}/" if ref.namespace else ""
    name = f"{place}{ref.name}" if ref.name else f"{place}* with the labels of the selector"
    return f"no parameters: {kind.kind} {name} was not found, which binding {binding.name!r} requires"


def _names_a_namespace_in_vain(kind: ParamKind, ref: ParamRef) -> bool:
    """Returns whether a paramRef states a namespace for a kind that is known to be cluster-scoped."""
    group = kind.api_version.rpartition("/")[0]
    return bool(ref.namespace) and kind.kind in CLUSTER_SCOPED.get(group, ())


def _namespace(ref: ParamRef, request: AdmissionRequest) -> str:
    """Returns the namespace of a namespaced parameter object; "" if the request is for a cluster-scoped
    object and the paramRef states none.

    A Namespace's request has the name of the Namespace as its namespace, if it comes from the API server.
    """
    return ref.namespace or request.namespace or (request.name if request.kind == _NAMESPACE else "")


def _is_namespaced(kind: ParamKind, source: Params) -> bool:
    """Returns whether a kind is known to be namespaced: its group is known, or one of its objects is.

    No object tells the scope of a custom kind that has none.
    """
    group = kind.api_version.rpartition("/")[0]
    if group in CLUSTER_SCOPED or "." not in group:  # Kubernetes' own have no dot, all others a domain
        return kind.kind not in CLUSTER_SCOPED.get(group, ())
    return any(_meta(item, "namespace") for item in source.objects(kind))


def _meta(item: Object, name: Literal["name", "namespace", "labels"]) -> Any:
    metadata = item.get("metadata")
    return metadata.get(name) if isinstance(metadata, Mapping) else None
