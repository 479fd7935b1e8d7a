"""Policies that the API server, Kyverno and Bayplan evaluate alike, for a fair comparison of their costs.

They do to a pod of GPUs what the shipped policies do, in the CEL of Kubernetes: without `gang`, `plan` and
`cluster`, which only Bayplan has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Json = dict[str, Any]
API_VERSION = "admissionregistration.k8s.io/v1"

_OF_GPUS = 'has(c.resources) && has(c.resources.limits) && "nvidia.com/gpu" in c.resources.limits'
_PODS = {"resourceRules": [
    {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
]}  # fmt: skip
_GPUS = {"asks-for-gpus": f"object.spec.containers.exists(c, {_OF_GPUS})"}
_UNBOUND = {"not-bound": '!has(object.spec.nodeName) || object.spec.nodeName == ""'}
_TERMS = "Object.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
_AMOUNTS = (
    '{"cpu": "cpu" in c.resources.limits ? c.resources.limits["cpu"] : "8",'
    ' "memory": "memory" in c.resources.limits ? c.resources.limits["memory"] : "64Gi"}'
)
_EQUAL = (
    "quantity(string(c.resources.requests[name])).compareTo(quantity(string(c.resources.limits[name]))) == 0"
)

MUTATING: Mapping[str, tuple[Mapping[str, str], str, str]] = {
    "guaranteed-qos": (
        _GPUS | _UNBOUND,
        "ApplyConfiguration",
        f"""Object{{spec: Object.spec{{containers: object.spec.containers.filter(c, {_OF_GPUS}).map(c,
          Object.spec.containers{{name: c.name, resources: Object.spec.containers.resources{{
            requests: {_AMOUNTS}, limits: {_AMOUNTS}}}}})}}}}""",
    ),
    "scheduler-name": (
        _GPUS,
        "ApplyConfiguration",
        """Object{spec: Object.spec{schedulerName:
          !has(object.spec.schedulerName) || object.spec.schedulerName == "default-scheduler"
          ? "kai-scheduler" : object.spec.schedulerName}}""",
    ),
    "queue": (
        _GPUS,
        "ApplyConfiguration",
        """Object{metadata: Object.metadata{labels: {"kai.scheduler/queue":
          has(object.metadata.labels) && "kai.scheduler/queue" in object.metadata.labels
          ? object.metadata.labels["kai.scheduler/queue"] : "default-queue"}}}""",
    ),
    "nccl-env": (
        _GPUS,
        "ApplyConfiguration",
        f"""Object{{spec: Object.spec{{containers: object.spec.containers.filter(c, {_OF_GPUS}
            && !(has(c.env) && c.env.exists(e, e.name == "NCCL_IB_GID_INDEX"))).map(c,
          Object.spec.containers{{name: c.name, env: [
            Object.spec.containers.env{{name: "NCCL_IB_GID_INDEX", value: "3"}},
            Object.spec.containers.env{{name: "NCCL_SOCKET_IFNAME", value: "eth0"}}]}})}}}}""",
    ),
    "gpu-affinity": (
        _GPUS | {"without-affinity": "!has(object.spec.affinity)"},
        "JSONPatch",
        f"""[JSONPatch{{op: "add", path: "/spec/affinity", value: Object.spec.affinity{{
          nodeAffinity: Object.spec.affinity.nodeAffinity{{requiredDuringSchedulingIgnoredDuringExecution:
            {_TERMS}{{nodeSelectorTerms: [{_TERMS}.nodeSelectorTerms{{matchExpressions: [
              {_TERMS}.nodeSelectorTerms.matchExpressions{{key: "nvidia.com/gpu.sharing-strategy",
                operator: "NotIn", values: ["time-slicing", "mps"]}}]}}]}}}}}}}}]""",
    ),
    "tolerations": (
        _GPUS | {"without-toleration": """!has(object.spec.tolerations)
          || !object.spec.tolerations.exists(t, has(t.key) && t.key == "nvidia.com/gpu")"""},
        "JSONPatch",
        """[has(object.spec.tolerations)
          ? JSONPatch{op: "add", path: "/spec/tolerations/-", value: Object.spec.tolerations{
              key: "nvidia.com/gpu", operator: "Exists", effect: "NoSchedule"}}
          : JSONPatch{op: "add", path: "/spec/tolerations", value: [Object.spec.tolerations{
              key: "nvidia.com/gpu", operator: "Exists", effect: "NoSchedule"}]}]""",
    ),
    "topology": (
        {"asks-for-a-level": """has(object.metadata.annotations)
          && "bayplan.dev/required" in object.metadata.annotations"""},
        "ApplyConfiguration",
        """Object{metadata: Object.metadata{annotations: {"kai.scheduler/topology-required-placement":
          object.metadata.annotations["bayplan.dev/required"]}}}""",
    ),
    "rdma-fabric": (
        {"asks-for-whole-nodes": f"""object.spec.containers.exists(c, {_OF_GPUS}
          && quantity(string(c.resources.limits["nvidia.com/gpu"])).asInteger() >= 8)"""},
        "ApplyConfiguration",
        """Object{spec: Object.spec{containers: object.spec.containers.map(c, Object.spec.containers{
          name: c.name, resources: Object.spec.containers.resources{
            limits: {"rdma/hca": "1"}, requests: {"rdma/hca": "1"}}})}}""",
    ),
    "told": (
        _GPUS,
        "ApplyConfiguration",
        """Object{metadata: Object.metadata{annotations: {"bench.bayplan.dev/policies": "all"}}}""",
    ),
}  # fmt: skip
"""Name → match conditions, patchType and expression of the mutation."""

VALIDATING: Mapping[str, tuple[Mapping[str, str], Sequence[str]]] = {
    "key-spelling": (
        {},
        (
            """!has(object.metadata.annotations) || object.metadata.annotations.all(key,
              !key.startsWith("kai.schedular/") && !key.startsWith("kai-scheduler/"))""",
            """!has(object.metadata.labels) || object.metadata.labels.all(key,
              !key.startsWith("kai.schedular/") && !key.startsWith("kai-scheduler/"))""",
        ),
    ),
    "mig-feasibility": (
        {},
        ("""object.spec.containers.all(c, !has(c.resources) || !has(c.resources.limits)
          || c.resources.limits.all(name, !name.startsWith("nvidia.com/mig-")
              || quantity(string(c.resources.limits[name])).asInteger() <= 56))""",),
    ),
    "multi-topology": (
        {},
        ("""!has(object.metadata.annotations) || object.metadata.annotations.map(key, key).filter(key,
          key in ["kai.scheduler/topology", "kueue.x-k8s.io/podset-required-topology"]).size() < 2""",),
    ),
    "equal-limits": (
        _GPUS,
        (f"""object.spec.containers.all(c, !({_OF_GPUS}) || (has(c.resources.requests)
          && ["cpu", "memory"].all(name, name in c.resources.requests && name in c.resources.limits
            && {_EQUAL})))""",),
    ),
    "nccl-env-check": (
        _GPUS,
        ("""object.spec.containers.all(c, !has(c.env) || c.env.all(e, e.name != "NCCL_DEBUG"
          || !has(e.value) || e.value in ["VERSION", "WARN", "INFO", "TRACE"]))""",),
    ),
}  # fmt: skip
"""Name → match conditions and expressions of the validations."""


def policies() -> list[Json]:
    """Returns the policies as objects of Kubernetes' kinds, mutating policies first."""
    return [*map(_mutating, MUTATING), *map(_validating, VALIDATING)]


def bindings() -> list[Json]:
    """Returns a binding for each policy, which the API server needs; Kyverno has none."""
    return [
        {
            "apiVersion": API_VERSION,
            "kind": f"{body['kind']}Binding",
            "metadata": {"name": body["metadata"]["name"]},
            "spec": {
                "policyName": body["metadata"]["name"],
                **({"validationActions": ["Deny"]} if body["kind"].startswith("Validating") else {}),
            },
        }
        for body in policies()
    ]


def _mutating(name: str) -> Json:
    conditions, patch_type, expression = MUTATING[name]
    field = "jsonPatch" if patch_type == "JSONPatch" else "applyConfiguration"
    spec = {
        "reinvocationPolicy": "IfNeeded",
        "mutations": [{"patchType": patch_type, field: {"expression": expression}}],
    }
    return _policy("MutatingAdmissionPolicy", name, conditions, spec)


def _validating(name: str) -> Json:
    conditions, expressions = VALIDATING[name]
    spec = {"validations": [{"expression": each, "message": f"{name} does not hold"} for each in expressions]}
    return _policy("ValidatingAdmissionPolicy", name, conditions, spec)


def _policy(kind: str, name: str, conditions: Mapping[str, str], spec: Json) -> Json:
    common: Json = {"failurePolicy": "Fail", "matchConstraints": _PODS}
    if conditions:
        common["matchConditions"] = [
            {"name": condition, "expression": expression} for condition, expression in conditions.items()
        ]
    metadata = {"name": f"bench-{name}"}
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": metadata, "spec": common | spec}
