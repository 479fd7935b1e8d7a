"""Expressions in the manner of Kubernetes' published sample policies, on a Deployment and on a Pod."""

from __future__ import annotations

from typing import Any

import pytest

from webhook.cel import Declarations, compile, lookup, to_json
from webhook.cel.libraries.authorizer import Authorizer, Query, ResourceCheck, Unavailable

NAMES = ("object", "oldObject", "request", "params", "namespaceObject", "variables", "authorizer")
BINDINGS: dict[str, Any] = {
    "object": {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop", "labels": {"color": "blue"}},
        "spec": {
            "replicas": 4,
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {
                    "containers": [
                        {
                            "name": "web",
                            "image": "registry.example.com/web:1.2.3@sha256:0f",
                            "ports": [{"containerPort": 8080}],
                            "resources": {"limits": {"memory": "512Mi", "cpu": "500m"}},
                            "securityContext": {"allowPrivilegeEscalation": False, "runAsNonRoot": True},
                        }
                    ]
                },
            },
        },
    },
    "oldObject": None,
    "request": {"operation": "CREATE", "dryRun": False, "userInfo": {"username": "ada", "groups": ["dev"]}},
    "params": {"maxReplicas": 3, "registries": ["registry.example.com/", "quay.io/"]},
    "namespaceObject": {"metadata": {"labels": {"environment": "test"}}},
    "variables": {"containers": [{"name": "web"}]},
    "authorizer": Authorizer(),
}
SAMPLES = [
    ("object.spec.replicas <= params.maxReplicas", False),
    ("'at most ' + string(params.maxReplicas) + ' replicas'", "at most 3 replicas"),
    ("!has(object.metadata.labels) || object.metadata.labels['color'] in ['blue', 'red']", True),
    ("namespaceObject.metadata.labels.environment == 'test'", True),
    ("request.operation == 'UPDATE' ? object.spec == oldObject.spec : true", True),
    ("oldObject == null && has(request.userInfo) && 'dev' in request.userInfo.groups", True),
    ("object.spec.template.spec.containers.all(c, params.registries.exists(r, c.image.startsWith(r)))", True),
    ("object.spec.template.spec.containers.all(c, c.image.matches('^.+@sha256:[0-9a-f]+$'))", True),
    ("object.spec.template.spec.?hostNetwork.orValue(false) == false", True),
    ("object.spec.template.spec.containers + object.spec.template.spec.?initContainers.orValue([])", list),
    ("object.spec.template.spec.containers.all(c, isQuantity(c.resources.limits.memory))", True),
    ("object.spec.template.spec.containers.all(c, c.?securityContext.?runAsNonRoot.orValue(false))", True),
    ("variables.containers.map(c, c.name).join(', ')", "web"),
    ("variables.containers.map(c, has(c.ports), c.ports[0].containerPort).sum() == 0", True),
    ("object.spec.template.spec.containers.exists(c, c.image.split(':')[1].startsWith('1.'))", True),
    ("semver(object.spec.template.spec.containers[0].image.split(':')[1].split('@')[0]).major() >= 1", True),
    ("!format.dns1123Label().validate(object.metadata.name).hasValue()", True),
    ("'owners' in object.metadata.?annotations.orValue({})", False),
    ("authorizer.requestResource.check('list').errored()", True),
    ("object.metadata.labels.transformMap(k, v, k != 'skip', v.upperAscii()) == {'color': 'BLUE'}", True),
    ("type(object.spec.replicas) == int && type(object.spec) == map", True),
    ("timestamp('2026-11-20T00:00:00Z') - timestamp('2026-11-19T00:00:00Z') == duration('24h')", True),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), SAMPLES, ids=[text for text, _ in SAMPLES])
def test_a_sample_expression_has_its_documented_value(text: str, expected: Any) -> None:
    """What the documentation says of such expressions is what comes out, without any schema."""
    declared = Declarations(variables=dict.fromkeys((*NAMES, "authorizer.requestResource")))
    check = ResourceCheck(Unavailable(), Query(resource="deployments"))
    value = compile(text, declared).evaluate({**BINDINGS, "authorizer.requestResource": check})
    assert isinstance(value, list) if expected is list else value == expected


CHECKED = [text for text, _ in SAMPLES if "requestResource" not in text]


@pytest.mark.parametrize("text", CHECKED)
def test_a_sample_is_as_sound_with_the_schema(text: str) -> None:
    """Checked against the Deployment's fields the same expressions compile, and mean the same."""
    plain = Declarations(variables=dict.fromkeys(NAMES))
    typed = Declarations(variables={**dict.fromkeys(NAMES), "object": lookup("apps/v1", "Deployment")})
    assert compile(text, typed).evaluate(BINDINGS) == compile(text, plain).evaluate(BINDINGS)


def test_a_sidecar_is_added_unless_it_is_there() -> None:
    """The mutation that the documentation begins with, as apply configuration and as patches."""
    declared = Declarations(variables={"object": lookup("v1", "Pod")}, mutations=True)
    proxy = "Object.spec.initContainers{name: 'mesh-proxy', image: 'mesh:1', restartPolicy: 'Always'}"
    applied = compile(f"Object{{spec: Object.spec{{initContainers: [{proxy}]}}}}", declared)
    patched = compile(
        "has(object.spec.initContainers)"
        f" ? [JSONPatch{{op: 'add', path: '/spec/initContainers/-', value: {proxy}}}]"
        f" : [JSONPatch{{op: 'add', path: '/spec/initContainers', value: [{proxy}]}},]",
        declared,
    )
    wanted = {"name": "mesh-proxy", "image": "mesh:1", "restartPolicy": "Always"}
    pod: dict[str, Any] = {"spec": {"containers": []}}
    assert to_json(applied.evaluate({"object": pod})) == {"spec": {"initContainers": [wanted]}}
    assert to_json(patched.evaluate({"object": pod}))[0]["value"] == [wanted]
    pod["spec"]["initContainers"] = []
    assert to_json(patched.evaluate({"object": pod}))[0]["path"] == "/spec/initContainers/-"
