"""The targets of a policy: the object itself, and its pod templates, each shown to the policy as a Pod.

A Pod is shown as it is. A template is shown with `apiVersion`, `kind` and the workload's namespace, which are
removed when the result is written back. The CEL variable `request` then names the resource `pods` and the
operation of the original request. For rules and selectors, a template is always a pod to be created.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from webhook.jsontools.path import Path, find, replaced
from webhook.policy.engine.inputs import PolicyInputs
from webhook.wire.request import AdmissionRequest, GroupVersionKind, GroupVersionResource
from webhook.workloads import Template, pod_of, write_pod

POD = GroupVersionKind("", "v1", "Pod")


PODS = GroupVersionResource("", "v1", "pods")


@dataclass(frozen=True, slots=True)
class Target:
    """The value of the CEL variable `object`. `path`: a template's path in the whole object, `()` for the
    object itself.

    `raw` is the value in the whole object, `obj` the value as shown, `old` the value before an update, as
    shown. `pod_set`: the PodSet of a template. `request`: the value of the CEL variable `request`. `matched`:
    the request that rules and selectors are compared with. `inlined`: describes a template that is not a
    PodTemplateSpec (a clique of Grove).
    """

    request: AdmissionRequest
    matched: AdmissionRequest
    path: Path
    pod_set: str
    raw: Mapping[str, Any] | None
    obj: Mapping[str, Any] | None
    old: Mapping[str, Any] | None
    inlined: Template | None = None

    def as_in(self, whole: Mapping[str, Any] | None) -> Target:
        """Returns this target as it is in `whole`, the current object; `self` if it has not changed."""
        raw = _mapping_at(whole, self.path) if self.path else whole
        if self.inlined is not None and _mapping_at(whole, self.inlined.spec_path) is None:
            raw = None  # a policy has removed the pod
        if raw is self.raw:
            return self
        if whole is None or raw is None or not self.path:
            return replace(self, raw=raw, obj=raw)
        shown = pod_of(self.inlined, whole) if self.inlined else as_pod(raw, self.request.namespace)
        return replace(self, raw=raw, obj=shown)

    def write_back(self, whole: Mapping[str, Any], changed: Mapping[str, Any]) -> Mapping[str, Any]:
        """Returns the whole object with the changes of a policy to the target."""
        if not self.path:
            return changed
        if self.inlined is not None:
            return write_pod(whole, self.inlined, changed)
        written: Mapping[str, Any] = replaced(whole, self.path, _as_template(changed, self.raw or {}))
        return written


def own_target(request: AdmissionRequest, obj: Mapping[str, Any] | None) -> Target:
    """Returns the object itself as a target."""
    return Target(request, request, (), "", obj, obj, request.old_object)


def template_targets(
    request: AdmissionRequest, obj: Mapping[str, Any] | None, inputs: PolicyInputs
) -> Iterator[Target]:
    """Yields the templates in an object, for policies that run on templates.

    There are none in subresources (a Job's status, a Deployment's scale).
    """
    if obj is None or request.sub_resource or request.kind == POD:
        return
    if request.operation not in ("CREATE", "UPDATE"):
        return
    for path, pod_set in inputs.templates(obj):
        template = _mapping_at(obj, path) if path else None
        if template is not None:
            old = _mapping_at(request.old_object, path) if request.old_object else None
            yield _template_target(request, path, pod_set, template, old)
    for inlined in inputs.inlined(obj):
        pod = pod_of(inlined, obj)
        pod_request = _pod_request(request, pod)
        raw = _mapping_at(obj, inlined.path)
        yield Target(
            pod_request, _created(pod_request), inlined.path, inlined.pod_set, raw, pod, None, inlined
        )


def _template_target(
    request: AdmissionRequest,
    path: Path,
    pod_set: str,
    template: Mapping[str, Any],
    old: Mapping[str, Any] | None,
) -> Target:
    pod = as_pod(template, request.namespace)
    old_pod = as_pod(old, request.namespace) if old is not None else None
    pod_request = _pod_request(request, pod, old_pod)
    return Target(pod_request, _created(pod_request), path, pod_set, template, pod, old_pod)


def _created(request: AdmissionRequest) -> AdmissionRequest:
    return request if request.operation == "CREATE" else replace(request, operation="CREATE")


def _pod_request(
    request: AdmissionRequest, pod: Mapping[str, Any], old: Mapping[str, Any] | None = None
) -> AdmissionRequest:
    """Returns the request as if the pod had been sent."""
    return replace(
        request,
        kind=POD,
        resource=PODS,
        request_kind=None,
        request_resource=None,
        name="",
        object=pod,
        old_object=old,
    )


def as_pod(template: Mapping[str, Any], namespace: str) -> dict[str, Any]:
    """Returns a pod template as the Pod that it would create."""
    pod = {"apiVersion": "v1", "kind": "Pod", **template}
    metadata = template.get("metadata")
    if namespace and (metadata is None or isinstance(metadata, Mapping)):
        pod["metadata"] = {**(metadata or {}), "namespace": namespace}
    return pod


def _as_template(pod: Mapping[str, Any], template: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a Pod as a template, without the fields that were added to show it."""
    added = {"apiVersion", "kind", "status"} - template.keys()
    result = {key: value for key, value in pod.items() if key not in added}
    before, current = template.get("metadata"), pod.get("metadata")
    if isinstance(current, Mapping):
        metadata = {key: value for key, value in current.items() if key != "namespace"}
        if isinstance(before, Mapping) and "namespace" in before:
            metadata["namespace"] = before["namespace"]
        if metadata or isinstance(before, Mapping):
            result["metadata"] = metadata
        elif "metadata" in template:
            result["metadata"] = before
        else:
            del result["metadata"]
    return {key: result[key] for key in (*template, *result) if key in result}


def _mapping_at(obj: Any, path: Path) -> Mapping[str, Any] | None:
    value = find(obj, path)
    return value if type(value) is dict or isinstance(value, Mapping) else None
