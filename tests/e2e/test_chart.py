"""The chart gives what kustomize gives, with its defaults and with each value that stands for a component."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e.api import Json
from tests.e2e.binaries import ROOT, find
from tests.e2e.helm import CHART, RELEASE, Helm, helm_program
from webhook.cli.main import parser

MANIFESTS = ROOT / "manifests"
COMPONENTS = {
    "enforce": ['mode="enforce"'],
    "cert-manager": ['certificates="cert-manager"'],
    "taint-fence": ['fence="taint"'],
    "defragmentation": ["defragmentation=true"],
    "git-sync": [
        'policies.source="git"',
        'policies.git.repository="https://git.example.com/platform/bayplan-policies"',
    ],
    "monitoring": [f"monitoring.{part}.enabled=true" for part in ("podMonitor", "rules", "dashboard")],
    "ui": ["ui.enabled=true"],
}
"""Values of the chart that do what a component does."""


@pytest.fixture(scope="module")
def helm(tmp_path_factory: pytest.TempPathFactory) -> Helm:
    """Without any cluster."""
    return Helm(helm_program(), tmp_path_factory.mktemp("helm"))


def kustomized(folder: Path) -> list[Json]:
    """What kubectl makes of a kustomization."""
    command = [find()["kubectl"], "kustomize", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return list(yaml.safe_load_all(done.stdout))


def by_identity(objects: list[Json]) -> dict[tuple[str, str, str], Json]:
    """The objects by kind, namespace and name, of which none occurs twice."""
    rows = {
        (body["kind"], body["metadata"].get("namespace", ""), body["metadata"]["name"]): body
        for body in objects
    }
    assert len(rows) == len(objects)
    return rows


def pod(objects: list[Json]) -> Any:
    """The pod of the replicas' Deployment."""
    deployment = by_identity(objects)["Deployment", "bayplan-system", "bayplan"]
    return deployment["spec"]["template"]["spec"]


def meant(objects: list[Json]) -> dict[tuple[str, str, str], Json]:
    """The same where order means nothing: arguments as they are understood, what has a name by its name."""
    spec = pod(objects)
    (container,) = spec["containers"]
    container["args"] = vars(parser("serve").parse_args(["serve", *container["args"]]))
    del container["args"]["run"]
    for part in (*spec["containers"], *spec.get("initContainers", ())):
        for field in ("volumeMounts", "env"):
            part[field] = sorted(part.get(field, ()), key=lambda row: str(row["name"]))
    spec["volumes"] = sorted(spec["volumes"], key=lambda row: str(row["name"]))
    return by_identity(objects)


def test_the_defaults_give_what_kustomize_gives_object_by_object(helm: Helm) -> None:
    """No object more, none less, no field of any another."""
    assert by_identity(helm.template()) == by_identity(kustomized(MANIFESTS))


@pytest.mark.parametrize("component", COMPONENTS)
def test_a_value_gives_what_its_component_gives(helm: Helm, component: str, tmp_path: Path) -> None:
    """Object by object too."""
    relative = os.path.relpath(MANIFESTS, tmp_path)
    kustomization = f"resources: [{relative}]\ncomponents: [{relative}/components/{component}]\n"
    (tmp_path / "kustomization.yaml").write_text(kustomization)
    assert meant(helm.template(COMPONENTS[component])) == meant(kustomized(tmp_path))


def test_helm_finds_no_fault_in_it(helm: Helm) -> None:
    """Nor with all components at once; recommendations count."""
    output = helm("lint", "--strict", str(CHART))
    assert output.status == 0, output.out
    sets = [word for values in COMPONENTS.values() for value in values for word in ("--set-json", value)]
    output = helm("lint", "--strict", str(CHART), *sets)
    assert output.status == 0, output.out


def test_its_version_is_the_programs() -> None:
    """And so is the tag of the image, which is the chart's appVersion."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert {chart["version"], chart["appVersion"]} == {project["version"]}
    assert chart["description"] == project["description"]


def test_a_release_in_the_namespace_itself_does_not_make_it_again(helm: Helm) -> None:
    """Helm stores the release there before it makes anything, so it is there already."""
    in_namespace = by_identity(helm.template((), "--namespace", "bayplan-system"))
    every = by_identity(helm.template())
    assert every.keys() - in_namespace.keys() == {("Namespace", "", "bayplan-system")}


VALUES: dict[str, tuple[list[str], str, Any]] = {
    "replicas": (["replicas=5"], "Deployment.spec.replicas", 5),
    "resources": (
        ['resources={"requests":{"cpu":"2"},"limits":null}'],
        "Deployment.spec.template.spec.containers.0.resources",
        {"requests": {"cpu": "2", "memory": "512Mi"}},
    ),
    "image": (
        ['image={"repository":"registry.example.com/bayplan","tag":"1"}'],
        "Deployment.spec.template.spec.containers.0.image",
        "registry.example.com/bayplan:1",
    ),
    "digest": (
        [f'image.digest="sha256:{"0" * 64}"'],
        "Deployment.spec.template.spec.containers.0.image",
        f"bayplan:0.1.0@sha256:{'0' * 64}",
    ),
    "pull secrets": (
        ['image.pullSecrets=[{"name":"registry"}]'],
        "Deployment.spec.template.spec.imagePullSecrets",
        [{"name": "registry"}],
    ),
    "priority class": (
        ['priorityClassName="system-cluster-critical"'],
        "Deployment.spec.template.spec.priorityClassName",
        "system-cluster-critical",
    ),
    "topology spread": (
        ["topologySpreadConstraints=[]"],
        "Deployment.spec.template.spec.topologySpreadConstraints",
        None,
    ),
    "tolerations": (
        ['tolerations=[{"operator":"Exists"}]'],
        "Deployment.spec.template.spec.tolerations",
        [{"operator": "Exists"}],
    ),
    "affinity": (
        ['affinity={"nodeAffinity":{}}'],
        "Deployment.spec.template.spec.affinity",
        {"nodeAffinity": {}},
    ),
    "pod annotations": (
        ['podAnnotations={"example.com/team":"platform"}'],
        "Deployment.spec.template.metadata.annotations",
        {"example.com/team": "platform"},
    ),
    "pod labels": (
        ['podLabels={"example.com/team":"platform"}'],
        "Deployment.spec.template.metadata.labels",
        {"app.kubernetes.io/name": "bayplan", "example.com/team": "platform"},
    ),
    "annotations of the service account": (
        ['serviceAccount.annotations={"example.com/role":"reader"}'],
        "ServiceAccount/bayplan.metadata.annotations",
        {"example.com/role": "reader"},
    ),
    "environment": (
        ['env=[{"name":"HTTPS_PROXY","value":"http://proxy:3128"}]'],
        "Deployment.spec.template.spec.containers.0.env",
        [{"name": "HTTPS_PROXY", "value": "http://proxy:3128"}],
    ),
    "parameters": (
        ['parameters={"reserve.default":"nodes"}'],
        "ConfigMap/bayplan-parameters.data",
        {"reserve.default": "nodes"},
    ),
    "DNS policy": (['dnsPolicy="Default"'], "Deployment.spec.template.spec.dnsPolicy", "Default"),
    "budget": (["podDisruptionBudget.minAvailable=1"], "PodDisruptionBudget.spec.minAvailable", 1),
    "budget of a single replica": (["replicas=1"], "PodDisruptionBudget.spec.minAvailable", 0),
    "no budget": (["podDisruptionBudget.enabled=false"], "PodDisruptionBudget", None),
    "ports": (
        ["networkPolicy.egressPorts=[443,22]"],
        "NetworkPolicy.spec.egress.0.ports",
        [
            {"port": port, "protocol": protocol}
            for port, protocol in ((443, "TCP"), (22, "TCP"), (53, "UDP"), (53, "TCP"))
        ],
    ),
    "callers": (
        ['networkPolicy.apiServers=["10.0.0.1/32","10.0.0.2/32"]'],
        "NetworkPolicy.spec.ingress.0.from",
        [{"ipBlock": {"cidr": "10.0.0.1/32"}}, {"ipBlock": {"cidr": "10.0.0.2/32"}}],
    ),
    "readers of metrics": (
        ['networkPolicy.metricsFrom=[{"namespaceSelector":{"matchLabels":{"a":"b"}}}]'],
        "NetworkPolicy.spec.ingress.1",
        {
            "ports": [{"port": 8081, "protocol": "TCP"}],
            "from": [{"namespaceSelector": {"matchLabels": {"a": "b"}}}],
        },
    ),
    "no network policy": (["networkPolicy.enabled=false"], "NetworkPolicy", None),
    "open webhooks": (
        ['webhooks.failurePolicy="Ignore"'],
        "MutatingWebhookConfiguration.webhooks.0.failurePolicy",
        "Ignore",
    ),
    "kept kinds": (
        ["crds.keep=true"],
        "CustomResourceDefinition/reservations.bayplan.dev.metadata.annotations",
        {"helm.sh/resource-policy": "keep"},
    ),
    "metrics": (
        ["monitoring.podMonitor.enabled=true"],
        "PodMonitor.spec.podMetricsEndpoints",
        [{"port": "probes", "path": "/metrics", "interval": "30s"}],
    ),
}  # fmt: skip
"""Values, and what stands where because of them: KIND or KIND/NAME, then a path; None for nothing."""


def at_path(objects: list[Json], path: str) -> Any:
    """What stands there, None for nothing."""
    for body in objects:
        for head in (body["kind"], f"{body['kind']}/{body['metadata']['name']}"):
            if path == head or path.startswith(f"{head}."):
                value: Any = body
                for step in path.removeprefix(head).split(".")[1:]:
                    value = value[int(step)] if isinstance(value, list) else value.get(step)
                return value
    return None


@pytest.mark.parametrize("value", VALUES)
def test_a_value_says_what_stands_in_an_object(helm: Helm, value: str) -> None:
    """Another than by default."""
    settings, path, wanted = VALUES[value]
    before, after = helm.template(), helm.template(settings)
    assert at_path(before, path) != wanted
    assert at_path(after, path) == wanted


def test_the_live_page_is_scheduled_and_labelled_as_the_replicas_are(helm: Helm) -> None:
    """What is said of all pods."""
    settings = ['podLabels={"example.com/team":"a"}', 'affinity={"nodeAffinity":{}}', "ui.enabled=true"]
    page = by_identity(helm.template(settings))["Deployment", "bayplan-system", "bayplan-ui"]
    template = page["spec"]["template"]
    assert template["metadata"]["labels"] == {"app.kubernetes.io/name": "bayplan-ui", "example.com/team": "a"}
    assert template["spec"]["affinity"] == {"nodeAffinity": {}}


def test_an_issuer_of_the_platform_signs_the_certificate(helm: Helm) -> None:
    """The chart then makes no CA of its own."""
    reference = {"name": "platform-ca", "kind": "ClusterIssuer"}
    settings = ['certificates="cert-manager"']
    own = helm.template(settings)
    rendered = by_identity(helm.template([*settings, f"certManager.issuerRef={json.dumps(reference)}"]))
    certificate = rendered["Certificate", "bayplan-system", "bayplan"]
    assert certificate["spec"]["issuerRef"] == reference
    assert by_identity(own).keys() - rendered.keys() == {
        ("Issuer", "bayplan-system", "bayplan-root"),
        ("Certificate", "bayplan-system", "bayplan-ca"),
        ("Issuer", "bayplan-system", "bayplan"),
    }


def test_the_metrics_are_at_a_port_that_the_pods_have(helm: Helm) -> None:
    """And the PodMonitor selects them."""
    objects = helm.template(["monitoring.podMonitor.enabled=true"])
    (monitor,) = (body["spec"] for body in objects if body["kind"] == "PodMonitor")
    (container,) = pod(objects)["containers"]
    assert monitor["podMetricsEndpoints"][0]["port"] in {port["name"] for port in container["ports"]}
    (labels,) = (
        body["spec"]["template"]["metadata"]["labels"] for body in objects if body["kind"] == "Deployment"
    )
    assert monitor["selector"]["matchLabels"].items() <= labels.items()


OWN_POLICY = """\
# 'Quotes', "quotes", {{ braces }}, <angles> & a backslash \\ are the policy's own.
expression: object.spec.size < 3 && object.metadata.name != "a\\nb"
"""


@pytest.mark.parametrize(
    ("source", "folders"),
    [("image", ["/policies", "/additional-policies"]), ("none", ["/additional-policies"])],
)
def test_policies_of_a_users_own_are_in_a_config_map_of_the_release(
    helm: Helm, tmp_path: Path, source: str, folders: list[str]
) -> None:
    """As they are in their file, beside those of the image or alone."""
    file = tmp_path / "policy.yaml"
    file.write_text(OWN_POLICY)
    setting = f"policies.additional.gpu-owner={file}"
    objects = helm.template([f'policies.source="{source}"'], "--set-file", setting)
    config_map = by_identity(objects)["ConfigMap", "bayplan-system", "bayplan-additional-policies"]
    assert config_map["data"] == {"gpu-owner.yaml": OWN_POLICY}
    spec = pod(objects)
    (volume,) = (volume for volume in spec["volumes"] if volume["name"] == "additional-policies")
    assert volume["configMap"] == {"name": "bayplan-additional-policies"}
    (container,) = spec["containers"]
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    assert mounts == {"tmp": "/tmp", "additional-policies": "/additional-policies"}
    assert parser("serve").parse_args(["serve", *container["args"]]).policies == folders


def test_a_journal_has_a_volume_of_its_own(helm: Helm) -> None:
    """As docs/replay.md shows it: the volume beside those of the chart, and the argument that names it."""
    page = (ROOT / "docs" / "replay.md").read_text()
    (values,) = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    objects = helm.template([f"{key}={json.dumps(value)}" for key, value in yaml.safe_load(values).items()])
    spec = pod(objects)
    (container,) = spec["containers"]
    assert {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]} == {
        "tmp": "/tmp",
        "journal": "/journal",
    }
    assert [volume["name"] for volume in spec["volumes"]] == ["tmp", "journal"]
    serve = parser("serve").parse_args(["serve", *container["args"]])
    assert str(serve.journal) == "/journal"


def test_replicas_on_the_network_of_their_nodes_have_ports_of_their_own(helm: Helm) -> None:
    """Every port is a value, a name of a Service resolves, Pod Security lets them in, and a rollout takes a
    port from an old replica before a new one needs it, unless there is one replica alone."""
    ports = 'ports={"webhook":9443,"probes":9081,"gitSync":9234}'
    objects = helm.template(["hostNetwork=true", ports, *COMPONENTS["git-sync"]])
    spec, every = pod(objects), by_identity(objects)
    assert (spec["hostNetwork"], spec["dnsPolicy"]) == (True, "ClusterFirstWithHostNet")
    containers = (*spec["containers"], *spec["initContainers"])
    assert {row["name"]: row["containerPort"] for part in containers for row in part["ports"]} == {
        "https": 9443,
        "probes": 9081,
        "git-sync": 9234,
    }
    arguments = parser("serve").parse_args(["serve", *spec["containers"][0]["args"]])
    assert (arguments.port, arguments.probe_port) == (9443, 9081)
    assert "--http-bind=:9234" in spec["initContainers"][0]["args"]
    let_in = every["NetworkPolicy", "bayplan-system", "bayplan"]["spec"]["ingress"]
    assert [row["port"] for rule in let_in for row in rule["ports"]] == [9443, 9081]
    levels = every["Namespace", "", "bayplan-system"]["metadata"]["labels"]
    assert {value for key, value in levels.items() if "pod-security" in key} == {"privileged"}
    rollout = "Deployment.spec.strategy.rollingUpdate"
    assert at_path(objects, rollout) == {"maxUnavailable": 1, "maxSurge": 0}
    alone = helm.template(["hostNetwork=true", "replicas=1"])
    assert at_path(alone, rollout) == {"maxUnavailable": 0, "maxSurge": 1}


GIT_PORT = (
    'policies={"source":"git","git":{"repository":"https://git.example.com/p"}}',
    "ports.gitSync=8443",
)


@pytest.mark.parametrize("settings", [("ports.probes=8443",), GIT_PORT], ids=["probes", "git-sync"])
def test_two_listeners_on_one_port_are_refused(helm: Helm, settings: tuple[str, ...]) -> None:
    """The containers of a pod share its ports, whether it is on the network of its node or not."""
    sets = [word for setting in settings for word in ("--set-json", setting)]
    answer = helm("template", RELEASE, str(CHART), *sets)
    assert answer.status != 0
    assert "two listeners of a pod on one port (8443, " in answer.err
    assert helm.template(["ports.gitSync=8443"]), "without git-sync nothing listens there"


def test_policies_come_from_a_folder_of_a_private_repository(helm: Helm) -> None:
    """git-sync reads the token from the Secret, and the webhook the folder of what is checked out."""
    git = (
        '{"repository":"https://git.example.com/ops","ref":"v2","folder":"gpu/policies",'
        '"secret":"bayplan-git",'
        '"env":[{"name":"GITSYNC_PASSWORD_FILE","value":"/etc/git-secret/token"}]}'
    )
    spec = pod(helm.template(['policies.source="git"', f"policies.git={git}"]))
    (sidecar,) = spec["initContainers"]
    assert {row["name"]: row["value"] for row in sidecar["env"]} == {
        "GITSYNC_REPO": "https://git.example.com/ops",
        "GITSYNC_REF": "v2",
        "GITSYNC_PASSWORD_FILE": "/etc/git-secret/token",
    }
    assert {mount["name"] for mount in sidecar["volumeMounts"]} <= {
        volume["name"] for volume in spec["volumes"]
    }
    assert "-p=/policies/current/gpu/policies" in spec["containers"][0]["args"]


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ('mode="enforced"', "mode"),
        ("replicas=0", "replicas"),
        ('certificates="cert_manager"', "certificates"),
        ('fence="taints"', "fence"),
        ("parameters.a=1", "parameters"),
        ("replica=3", "replica"),
        ('policies.source="none"', "additional"),
        ('policies.additional={"a/b":"x"}', "a/b"),
        ('policies.additional={"owner":{}}', "additional"),
        ('policies.source="git"', "repository"),
        ('webhooks.failurePolicy="fail"', "failurePolicy"),
        ('podLabels={"app.kubernetes.io/name":"other"}', "podLabels"),
        ('certManager.issuerRef={"kind":"ClusterIssuer"}', "issuerRef"),
        ('affinity={"nodeAffinities":{}}', "affinity"),
        ("ports.webhook=443", "webhook"),
        ('dnsPolicy="None"', "dnsPolicy"),
    ],
)
def test_a_value_that_is_none_is_refused_by_name(helm: Helm, setting: str, message: str) -> None:
    """values.schema.json knows every value."""
    answer = helm("template", "bayplan", str(CHART), "--set-json", setting)
    assert answer.status != 0
    assert "values don't meet the specifications of the schema" in answer.err
    assert message in answer.err
